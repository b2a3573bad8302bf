"""A page of ours, served until Ctrl-C."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

import typer

from testifai.commands.common import say

HostOption = Annotated[
    str, typer.Option("--host", help="Address to serve on; any but this machine's own needs a token.")
]
PortOption = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0: any free one.")]
OpenOption = Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")]


def address_of(host: str, port: int, token: str | None) -> str:
    """Where a page is found.

    >>> address_of("::1", 8050, None), address_of("0.0.0.0", 8050, "secret")
    ('http://[::1]:8050/', 'http://0.0.0.0:8050/?token=secret')
    """
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/" + ("" if token is None else f"?token={token}")


def serve(server: Any, what: str, address: str, *, note: str | None = None, browser: bool = False) -> None:
    """Say where the page is, with a note where others can reach it, and serve it until Ctrl-C."""
    say(f"{what} at {address} (Ctrl-C ends it)")
    if note is not None:
        say(f"note: {note}", err=True)
    if browser:
        typer.launch(address)
    try:
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    finally:
        server.server_close()
    say("Stopped.")
