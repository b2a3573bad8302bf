"""`testifai explore`: runs in the browser."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testifai.commands import completion
from testifai.commands.common import SpecOption, say, say_code
from testifai.commands.serving import HostOption, OpenOption, PortOption, address_of, serve
from testifai.errors import InputError
from testifai.support.optional_imports import load

if TYPE_CHECKING:
    from testifai.app.explorer_process import Beside

PORT = 8050


def explore(
    run_files: Annotated[
        list[Path],
        typer.Argument(help="Run files made by testifai run.", metavar="RUN.db…", autocompletion=completion.runs),
    ],
    host: HostOption = "127.0.0.1",
    port: PortOption = PORT,
    browser: OpenOption = False,
    spec: SpecOption = None,
) -> None:
    """Look at one run, or compare several, in the browser. Ctrl-C ends it."""
    need_dash()
    if len({path.resolve() for path in run_files}) < len(run_files):
        raise InputError("run files: the same file is named twice")
    if spec is not None:
        from testifai.spec.parsing import read

        say_code(read(spec))
    from testifai.app.state import Runs

    runs = Runs(run_files, spec)
    from testifai.app.server import build, is_loopback, new_token
    from testifai.app.server import listen_for_pages as listen

    token = None if is_loopback(host) else new_token()
    server = listen(build(runs, token), host, port)
    # Not before: the page, and a first picture on it, need no estimates.
    runs.warm()
    note = None if token is None else "other machines can reach this; whoever has the token sees the runs' inputs"
    address = address_of(host, server.port, token)
    serve(server, f"Exploring {', '.join(runs.names)}", address, note=note, browser=browser)


def need_dash() -> None:
    """Refuse where the explorer cannot be."""
    if find_spec("dash") is None:
        load("dash", extra="app")  # which says how to get it


def page_beside(run_file: Path) -> Beside:
    """The page of a run that is being made; what it says is not for standard output, which may be JSON."""
    from testifai.app.explorer_process import Beside

    return Beside(run_file, PORT, partial(say, err=True))
