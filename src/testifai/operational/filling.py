"""Labels put into a file one at a time: each is on disk before the next is asked for, and all else stays as it is."""

from __future__ import annotations

from pathlib import Path

from testifai.errors import InputError
from testifai.operational import csv_file
from testifai.operational.csv_file import CsvFile
from testifai.operational.labelling import LABEL, Classes, filled, harmless_text
from testifai.support.files import write_bytes


class ChangedError(InputError):
    """Somebody else wrote to the file since it was read."""


class Filling:
    """A file that is being filled in: its examples and labels, row by row, as they were last read or written."""

    def __init__(self, path: Path, classes: Classes) -> None:
        # A link stays a link: the file that it names is written.
        self.path, self.classes = path.resolve(), classes
        self._take(csv_file.read(self.path))

    def refresh(self) -> bool:
        """Read the file again; whether it was changed."""
        file = csv_file.read(self.path)
        if file.content == self._file.content:
            return False
        self._take(file)
        return True

    def _take(self, file: CsvFile) -> None:
        found = filled(file, self.classes)
        if not found.rows:
            raise InputError(f"{self.path.name}: has no row to label")
        numbers = [found.labels.get(example) for example in found.rows]
        self.labels = ["" if number is None else self.classes.text(number) for number in numbers]
        self._file, self.examples = file, found.rows

    def cell(self, row: int, column: str) -> str:
        """What a row holds in some column; empty where there is no such column."""
        return self._file.cells(column)[row]

    def put(self, row: int, text: str) -> None:
        """Write a label, or none; nothing is written over what was not read."""
        label = self.classes.text(self.classes.number(text)) if text else ""
        if label == self.labels[row]:
            return
        if csv_file.read(self.path).content != self._file.content:
            raise ChangedError(
                f"{self.path.name} was changed by somebody else meanwhile, so this label was not written; reload the "
                "page to go on with what the file holds now"
            )
        content = self._file.changed(row, self._file.column(LABEL), harmless_text(label))
        write_bytes(self.path, content)
        self._file = csv_file.parse(self.path, content)
        self.labels[row] = label
