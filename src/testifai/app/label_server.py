"""The page to label on: plain files, and four requests that they make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from testifai.app import security
from testifai.app.labelling import Labelling
from testifai.errors import InputError
from testifai.support.libraries import load


def build(labelling: Labelling, token: str) -> Any:
    """A Flask server. It writes, so that nobody is answered who does not have the token, not even on this machine."""
    flask: Any = load("flask", extra="app")
    pages = Path(__file__).parent / "label_page"
    server = flask.Flask("testifai", static_folder=str(pages), static_url_path="/page")
    security.protect(server, token)

    def page() -> Any:
        return flask.send_from_directory(pages, "label.html")

    def answer() -> Any:
        given = _posted(flask)
        row, label = given.get("row"), given.get("label")
        if type(row) is not int or not isinstance(label, str):
            raise InputError("an answer is a row and a label")
        return labelling.answer(row, label.strip())

    def undo() -> Any:
        _posted(flask)
        return labelling.undo()

    def refused(error: InputError) -> Any:
        return {"problem": " ".join(str(error).split())}, 409

    server.add_url_rule("/", view_func=page)
    server.add_url_rule("/task", view_func=labelling.task)
    server.add_url_rule("/rows/<int:row>", view_func=labelling.row)
    server.add_url_rule("/answer", view_func=answer, methods=["POST"])
    server.add_url_rule("/undo", view_func=undo, methods=["POST"])
    server.register_error_handler(InputError, refused)
    return server


def _posted(flask: Any) -> dict[str, Any]:
    """What was posted, as JSON: a page of another port would have to ask the browser for leave first, and gets none."""
    given = flask.request.get_json()
    return given if isinstance(given, dict) else {}
