"""Labelling one input after the other: the next input, the answers, and undo."""

from __future__ import annotations

import string
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from testifai.app import server as security
from testifai.errors import InputError
from testifai.operational.input_previews import KeptInputs
from testifai.operational.label_file import WHERE, Classes, Filling
from testifai.support.optional_imports import load
from testifai.support.types import Record

if TYPE_CHECKING:
    from flask import Flask

KEYS = "1234567890" + string.ascii_lowercase


class Labelling:
    """A file that is labelled from the top; inputs without an answer come again at the end."""

    def __init__(
        self, file: Filling, inputs: KeptInputs, *, show_prediction: bool = False, show_path: bool = False
    ) -> None:
        self._file, self._inputs = file, inputs
        self._show_prediction, self._show_path = show_prediction, show_path
        self._turn = threading.Lock()
        self._waiting: list[int] = []  # rows without a label, in the order in which they are shown
        self._put_off: set[int] = set()
        self._history: list[tuple[int, str]] = []  # answered rows with their labels before
        self._start()

    def task(self) -> Record:
        """The classes and the progress; the file is read again if it was changed."""
        with self._turn:
            if self._file.refresh():
                self._start()
            return {"file": self._file.path.name, "classes": classes_of(self._file.classes), **self._standing()}

    def row(self, row: int) -> Record:
        with self._turn:
            self._check(row)
            found: Record = {"label": self._file.labels[row], "input": self._inputs[self._file.examples[row]]}
            if self._show_prediction:
                found["predicted"] = self._file.cell(row, "predicted")
                found["confidence"] = self._file.cell(row, "confidence")
            if self._show_path:
                found["path"] = self._file.cell(row, WHERE)
            return found

    def answer(self, row: int, label: str) -> Record:
        """Write a label; for an empty one the cell stays empty and the input comes again at the end."""
        with self._turn:
            self._check(row)
            before = self._file.labels[row]
            self._file.put(row, label)
            self._history.append((row, before))
            self._waiting = [one for one in self._waiting if one != row] + ([] if label else [row])
            self._put_off = self._put_off - {row} if label else self._put_off | {row}
            return self._standing()

    def undo(self) -> Record:
        """Take back the last answer, and show its input again."""
        with self._turn:
            if not self._history:
                raise InputError("there is nothing to undo; the arrow keys go back to earlier inputs")
            row, before = self._history[-1]
            self._file.put(row, before)
            self._history.pop()
            self._put_off -= {row}
            self._waiting = ([] if before else [row]) + [one for one in self._waiting if one != row]
            return {**self._standing(), "next": row}

    @property
    def labelled(self) -> int:
        """Number of rows with a label."""
        return sum(label != "" for label in self._file.labels)

    @property
    def rows(self) -> int:
        return len(self._file.labels)

    def _start(self) -> None:
        self._inputs.check(self._file.examples)
        self._waiting = [row for row, label in enumerate(self._file.labels) if not label]
        self._put_off, self._history = set(), []

    def _standing(self) -> Record:
        return {
            "next": self._waiting[0] if self._waiting else None,
            "rows": self.rows,
            "labelled": self.labelled,
            "put_off": len(self._put_off),
        }

    def _check(self, row: int) -> None:
        if not 0 <= row < self.rows:
            raise InputError(f"row {row}: there are {self.rows}")


def classes_of(classes: Classes) -> list[dict[str, str]] | None:
    """The classes with their keys; None if any integer may be a label."""
    names = classes.names or (None if classes.count is None else tuple(map(str, range(classes.count))))
    if names is None:
        return None
    return [{"name": name, "key": key} for name, key in zip(names, keys_of(names), strict=True)]


def keys_of(names: Sequence[str]) -> list[str]:
    """A key for each class: its name if that is a key, else the next free one; no keys if there are too few."""
    if len(names) > len(KEYS):
        return [""] * len(names)
    own = [name.casefold() if len(name) == 1 and name.casefold() in KEYS else "" for name in names]
    own = [key if own.index(key) == place else "" for place, key in enumerate(own)]
    free = iter([key for key in KEYS if key not in own])
    return [key or next(free) for key in own]


def build(labelling: Labelling, token: str) -> Flask:
    """A Flask server. It writes a file, so it needs the token even on this machine."""
    load("flask", extra="app")
    import flask

    pages = Path(__file__).parent / "label_page"
    server = flask.Flask("testifai", static_folder=str(pages), static_url_path="/page")
    security.protect(server, token)

    def answer() -> Record:
        given = _posted()
        row, label = given.get("row"), given.get("label")
        if type(row) is not int or not isinstance(label, str):
            raise InputError("an answer is a row and a label")
        return labelling.answer(row, label.strip())

    def undo() -> Record:
        _posted()
        return labelling.undo()

    server.add_url_rule("/", endpoint="page", view_func=lambda: flask.send_from_directory(pages, "label.html"))
    server.add_url_rule("/task", view_func=labelling.task)
    server.add_url_rule("/rows/<int:row>", view_func=labelling.row)
    server.add_url_rule("/answer", view_func=answer, methods=["POST"])
    server.add_url_rule("/undo", view_func=undo, methods=["POST"])
    server.register_error_handler(InputError, lambda error: ({"problem": " ".join(str(error).split())}, 409))
    return server


def _posted() -> Record:
    """The posted JSON: of that type, browsers let no page of another origin post it."""
    import flask

    given = flask.request.get_json()
    return given if isinstance(given, dict) else {}
