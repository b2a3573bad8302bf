"""`testifai explore`: runs in the browser."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testifai.commands import common, completion
from testifai.errors import InputError
from testifai.support.optional_imports import load

if TYPE_CHECKING:
    from testifai.app.explorer_process import ExplorerProcess

PORT = 8050


def explore(
    run_files: Annotated[
        list[Path],
        typer.Argument(help="Run files written by testifai run.", metavar="RUN.db…", autocompletion=completion.runs),
    ],
    host: common.HostOption = "127.0.0.1",
    port: common.PortOption = PORT,
    browser: common.OpenOption = False,
    spec: common.SpecOption = None,
) -> None:
    """Open runs in the browser.

    One run, or several to compare. Ctrl-C ends it.
    """
    require_dash()
    if len({path.resolve() for path in run_files}) < len(run_files):
        raise InputError("run files: the same file is named twice")
    if spec is not None:
        common.read_spec(spec)
    from testifai.app.server import build, is_loopback, listen, new_token
    from testifai.app.state import Runs

    runs = Runs(run_files, spec)
    token = None if is_loopback(host) else new_token()
    server = listen(build(runs, token).server, host, port)
    # Not earlier: the page, and a first figure on it, need no estimates.
    runs.warm()
    note = None if token is None else "other machines can reach this; whoever has the token sees the runs' inputs"
    address = common.address_of(host, server.port, token)
    common.serve(server, f"Exploring {', '.join(runs.names)}", address, note=note, browser=browser)


def require_dash() -> None:
    """Raise InputError if the explorer's library is missing."""
    if find_spec("dash") is None:
        load("dash", extra="app")  # its error says how to install it


def live_page(run_file: Path) -> ExplorerProcess:
    """Return the page of a run in progress; its messages go to standard error, since output may be JSON."""
    from testifai.app.explorer_process import ExplorerProcess

    return ExplorerProcess(run_file, PORT, partial(common.say, err=True))
