"""`testifai explore`: runs in the browser."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testifai.commands.common import say, say_code
from testifai.errors import InputError
from testifai.support.libraries import load

if TYPE_CHECKING:
    from testifai.app.beside import Beside

PORT = 8050


def explore(
    run_files: Annotated[list[Path], typer.Argument(help="Run files made by testifai run.", metavar="RUN.db…")],
    host: Annotated[str, typer.Option(help="Address to serve on; any but this machine's own needs a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any free one.")] = PORT,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = False,
    spec: Annotated[Path | None, typer.Option(help="The spec, if it was moved since or the run is not yours.")] = None,
) -> None:
    """Look at one run, or compare several, in the browser. Ctrl-C ends it."""
    need_dash()
    if len({path.resolve() for path in run_files}) < len(run_files):
        raise InputError("run files: the same file is named twice")
    if spec is not None:
        from testifai.scans.spec import read

        say_code(read(spec))
    from testifai.app.state import Runs

    runs = Runs(run_files, spec)
    from testifai.app.security import is_loopback, new_token
    from testifai.app.server import build, listen

    token = None if is_loopback(host) else new_token()
    server = listen(build(runs, token), host, port)
    # Not before: the page, and a first picture on it, need no estimates.
    runs.warm()
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{server.port}/" + ("" if token is None else f"?token={token}")
    say(f"Exploring {', '.join(runs.names)} at {address} (Ctrl-C ends it)")
    if token is not None:
        say("note: other machines can reach this; whoever has the token sees the runs' inputs", err=True)
    if browser:
        typer.launch(address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        say("Stopped.")
    finally:
        server.server_close()


def need_dash() -> None:
    """Refuse where the explorer cannot be."""
    if find_spec("dash") is None:
        load("dash", extra="app")  # which says how to get it


def page_beside(run_file: Path) -> Beside:
    """The page of a run that is being made; what it says is not for standard output, which may be JSON."""
    from testifai.app.beside import Beside

    return Beside(run_file, PORT, partial(say, err=True))
