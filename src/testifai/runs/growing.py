"""A run file that is read again and again while it grows: each time only what is new."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from testifai.runs.outcomes import Outcomes

Signature: TypeAlias = tuple[
    tuple[int, int, int] | None, ...
]  # of a file and its log: number, bytes, when it was written


def signature(path: Path) -> Signature | None:
    """What changes with every outcome that is saved in a run file; None where there is no file."""
    found = tuple(map(_about, (path, path.with_name(path.name + "-wal"))))
    return None if found[0] is None else found


def _about(path: Path) -> tuple[int, int, int] | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_ino, about.st_size, about.st_mtime_ns


class Loaded:
    """The outcomes that were read of a run file so far, and which of its rows they came from.

    Who was given them by `Store.load` keeps a snapshot: the next look adds to them.
    """

    def __init__(self) -> None:
        self.outcomes: Outcomes | None = None
        self._rows: set[int] = set()

    def onto(self, inputs: int, *, anew: bool) -> Outcomes:
        """What to add new rows to; anew: all of them are."""
        if self.outcomes is None or anew or self.outcomes.inputs != inputs:
            self.outcomes = Outcomes(inputs)
            self._rows.clear()
        return self.outcomes

    def is_new(self, *row: object) -> bool:
        """Whether a row, by its key and checksum, was not read before; from now on it was."""
        mark = hash(row)
        if mark in self._rows:
            return False
        self._rows.add(mark)
        return True
