"""A run file that is read again and again while it grows: each time only what is new."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from testifai.runs.outcomes import Outcomes


@dataclass(frozen=True)
class Signature:
    """What changes with every outcome that is saved in a run file."""

    file: tuple[int, int]  # which file it is
    written: tuple[tuple[int, int], ...]  # bytes, and when they were written, of the file and of its log

    @classmethod
    def of(cls, path: Path) -> Signature | None:
        """That of a run file now; None where there is none."""
        try:
            about = [path.stat()]
        except OSError:
            return None
        with suppress(OSError):
            about.append(path.with_name(path.name + "-wal").stat())
        return cls((about[0].st_dev, about[0].st_ino), tuple((one.st_size, one.st_mtime_ns) for one in about))


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
