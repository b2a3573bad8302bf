"""A port of this machine, and a page served on it."""

from __future__ import annotations

import socket
from typing import Any

from testifai.errors import InputError


def listen(server: Any, host: str, port: int) -> Any:
    """A Flask server that has its port, ready for `serve_forever`; port 0 takes any that is free."""
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log_request(self, *_: Any) -> None:
            """Requests are not listed: an address may hold the token."""

    try:
        socket.getaddrinfo(host, port)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "not a name"
        raise InputError(f"--host: {host!r} is not an address of this machine ({why}); leave it out") from None
    try:
        return make_server(host, port, server, threaded=True, request_handler=Quiet)
    except (OSError, SystemExit) as error:  # werkzeug itself ends the process when a port is taken
        why = error.strerror if isinstance(error, OSError) and error.strerror else "the port is taken"
        raise InputError(f"--port: cannot listen on {host}:{port}: {why}; try --port 0 for any free one") from None
