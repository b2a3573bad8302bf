"""The explorer as a Dash application, and how it is served."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

from testifai.app import callbacks, layout, listening, scripts, security, sketch
from testifai.app.following import Follower
from testifai.app.state import Runs
from testifai.support.libraries import load


def build(runs: Runs, token: str | None = None) -> Any:
    """The application. With a token, nobody is answered who does not have it."""
    dash: Any = load("dash", extra="app")
    drawn = sketch.draw(runs.tomograms[0])
    app = dash.Dash(
        "testifai",
        title="testifai",
        update_title=None,
        index_string=scripts.page(drawn),
        assets_folder=str(Path(__file__).parent / "assets"),
        serve_locally=True,
        suppress_callback_exceptions=True,
    )
    security.protect(app.server, token)
    session = uuid4().hex  # by which a page tells that it was made by another server than that which now answers
    follower = Follower(runs)
    app.server.add_url_rule("/following", "following", lambda: {"session": session, **follower.told()})
    app.layout = layout.page(runs, drawn, session)
    callbacks.connect(app, runs)
    return app


def listen(app: Any, host: str, port: int) -> Any:
    """A server that has its port, ready for `serve_forever`; port 0 takes any that is free."""
    return listening.listen(app.server, host, port)
