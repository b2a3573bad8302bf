"""The explorer as a Dash application, and how it is served."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import logging
import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from testifai.app import callbacks, figures, layout
from testifai.app.live_updates import Follower
from testifai.app.state import Runs
from testifai.errors import InputError
from testifai.support.optional_imports import load

if TYPE_CHECKING:
    from flask import Flask, Response
    from werkzeug.serving import BaseWSGIServer


def listen(server: Flask, host: str, port: int) -> BaseWSGIServer:
    """A Flask server bound to its port, ready for `serve_forever`; port 0 takes any free one."""
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log_request(self, *_: object) -> None:
            """Log no request: its address may contain the token."""

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


log = logging.getLogger(__name__)

LARGEST_REQUEST = 1_000_000  # bytes
COOKIE = "testifai_token_"
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]", "::1")
# Plotly compiles shaders' wrappers at run time, and Dash starts from a script inside the page.
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

# A link that is followed from another site comes without the cookie (SameSite=Strict); from this page it comes with it.
NO_TOKEN = (
    "<!DOCTYPE html><title>testifai</title><p>a token is needed: open the address that testifai printed, "
    'then <a href="">this one again</a>\n'
)


def is_loopback(host: str) -> bool:
    """Return True if an address can only be reached from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def new_token() -> str:
    return secrets.token_urlsafe(24)


def cookie_of(token: str) -> str:
    """The name of a token's cookie: browsers share cookies among ports, and several pages may be open."""
    return COOKIE + hashlib.sha256(token.encode()).hexdigest()[:8]


def protect(server: Flask, token: str | None) -> None:
    """Guard a Flask server. Without a token it answers only requests to this machine's own names."""
    import flask
    from werkzeug.exceptions import HTTPException

    cookie = cookie_of(token or "")
    server.config["MAX_CONTENT_LENGTH"] = LARGEST_REQUEST

    @server.before_request
    def check() -> Response | None:
        if token is None:
            # Another site could let its own name point here (DNS rebinding); a page of it must get nothing.
            name = flask.request.host.rpartition(":")[0] or flask.request.host
            return None if name in LOOPBACK_NAMES or is_loopback(name) else _refused(403, "unknown host name")
        given = flask.request.args.get("token", ""), flask.request.cookies.get(cookie, "")
        return None if any(_same(one, token) for one in given) else flask.Response(NO_TOKEN, 401)

    @server.after_request
    def dress(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = POLICY
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        if token is not None and _same(flask.request.args.get("token", ""), token):
            response.set_cookie(cookie, token, httponly=True, samesite="Strict")
        return response

    @server.errorhandler(Exception)
    def failed(error: Exception) -> Response | HTTPException:
        """Answer and log one line: Dash raises for requests that its pages never send."""
        if isinstance(error, HTTPException):
            return error
        log.warning("a request could not be answered: %s", type(error).__name__)
        log.debug("the request", exc_info=error)
        return _refused(400, "this request could not be answered")

    def _refused(status: int, why: str) -> Response:
        return flask.Response(f"{why}\n", status, mimetype="text/plain")


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())


def build(runs: Runs, token: str | None = None) -> Any:
    """The Dash application. With a token, requests without it are rejected."""
    dash: Any = load("dash", extra="app")
    drawn, folder = figures.draw(runs.tomograms[0]), Path(__file__).parent
    app = dash.Dash(
        "testifai",
        title="testifai",
        update_title=None,
        index_string=(folder / "page.html").read_text("utf-8").replace("SKETCH", drawn or ""),
        assets_folder=str(folder / "assets"),
        serve_locally=True,
        suppress_callback_exceptions=True,
    )
    protect(app.server, token)
    session = uuid4().hex  # by which a page notices that the server was restarted
    follower = Follower(runs)
    app.server.add_url_rule("/following", "following", lambda: {"session": session, **follower.told()})
    app.layout = layout.page(runs, drawn, session)
    callbacks.connect(app, runs)
    return app
