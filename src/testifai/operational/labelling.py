"""The file that people fill in: examples as rows with an empty label column, and what comes back.

It travels by mail and through spreadsheets, so what comes back may have a byte-order mark, semicolons, other line
ends, rows in another order, `3.0` for `3`. All of that is read; what cannot be meant is refused with its line.
"""

from __future__ import annotations

import csv
import difflib
import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from testifai.errors import InputError
from testifai.operational import label_file
from testifai.operational.label_file import CsvFile
from testifai.support.files import write_bytes
from testifai.support.formatting import harmless, printable

ID, LABEL, SELECTION, WHERE = "id", "label", "selection", "where"
_DIGITS = 18
_SHOWN = 60  # letters of a label in a message
_LISTED = 20  # more class names than this are not listed in a message


@dataclass(frozen=True)
class Classes:
    """How labels are written: by name where the classes have names, else by number."""

    names: tuple[str, ...] | None = None
    count: int | None = None

    def text(self, number: int) -> str:
        """A class as people read it."""
        return self.names[number] if self.names is not None and 0 <= number < len(self.names) else str(number)

    def number(self, text: str) -> int:
        """The class that a label means; its number is accepted too, unless numbers are names here.

        >>> Classes(("cat", "dog")).number("Dog"), Classes(("cat", "dog")).number("1.0"), Classes(None, 3).number("2")
        (1, 1, 2)
        """
        if self.names is not None and text in self.names:
            return self.names.index(text)
        plain = _whole(text)
        if self.names is not None:
            found = [number for number, name in enumerate(self.names) if name.strip().casefold() == text.casefold()]
            # A spreadsheet turns the name 7 into 7.0 as readily as the number.
            found = found or [
                number for number, name in enumerate(self.names) if plain is not None and name == str(plain)
            ]
            if len(found) == 1:
                return found[0]
            if any(_whole(name) is not None for name in self.names):
                plain = None
        count = len(self.names) if self.names is not None else self.count
        if plain is None or plain < 0 or (count is not None and plain >= count):
            shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
            raise InputError(f"label {shown!r} is not a class; {self._accepted(text, count)}")
        return plain

    def _accepted(self, text: str, count: int | None) -> str:
        if self.names is None:
            return f"accepted: 0 … {count - 1}" if count is not None else "accepted: whole numbers from 0"
        close = difflib.get_close_matches(text, self.names, n=1, cutoff=0.6)
        hint = f"did you mean {close[0]!r}? " if close else ""
        if len(self.names) > _LISTED:
            return f"{hint}accepted: the {len(self.names)} class names, such as {self.names[0]!r}"
        return f"{hint}accepted: {', '.join(self.names)}"


@dataclass(frozen=True)
class Filled:
    """What a file holds: labels by example, examples still without one, where the examples are, their order."""

    path: Path
    labels: dict[int, int] = field(default_factory=dict)
    empty: tuple[int, ...] = ()
    where: dict[int, str] = field(default_factory=dict)
    rows: tuple[int, ...] = ()

    @property
    def examples(self) -> set[int]:
        """All examples that have a row."""
        return {*self.labels, *self.empty}


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """A CSV file. Text that a spreadsheet would run as a formula is made plain text with an apostrophe."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([harmless_text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    text = buffer.getvalue()
    # Excel takes a file for UTF-8 only if it begins with a mark; other readers are better off without one.
    return text.encode("utf-8" if text.isascii() else "utf-8-sig", "replace")


def write_new(path: Path, content: bytes) -> None:
    """Write a whole file or none; one that exists is left alone and refused, unless it holds the same."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        if path.exists():
            if path.read_bytes() != content:
                raise FileExistsError
            return
        temporary.write_bytes(content)
        _rename_new(temporary, path)
    except FileExistsError:
        raise InputError(f"out: {path} exists and is never overwritten; choose another name with -o") from None
    except OSError as error:
        raise InputError(f"out: cannot write {path} ({error.strerror or error})") from None
    finally:
        temporary.unlink(missing_ok=True)


def _rename_new(old: Path, new: Path) -> None:
    """Give a file a name that nothing has; somebody may have taken it since it was looked for."""
    try:
        new.hardlink_to(old)
    except FileExistsError:
        raise
    except OSError:  # not every file system can have two names for a file
        old.replace(new)


def read_filled(path: Path, classes: Classes) -> Filled:
    """The labels in a file; a mistake names the line."""
    return filled(label_file.read(path), classes)


def filled(file: CsvFile, classes: Classes) -> Filled:
    """The labels in a table; a mistake names the line."""
    path = file.path
    for name in (ID, LABEL):
        file.column(name)
    labels: dict[int, int] = {}
    lines: dict[int, int] = {}
    where: dict[int, str] = {}
    cells = zip(file.rows, file.cells(ID), file.cells(LABEL), file.cells(WHERE), strict=True)
    for (line, _), number, text, place in cells:
        example = _example(path, line, number)
        if example in lines:
            raise InputError(
                f"{path.name} line {line}: id {example} is in line {lines[example]} already; keep one of them"
            )
        lines[example] = line
        if WHERE in file.header:
            where[example] = place
        if text:
            try:
                labels[example] = classes.number(text)
            except InputError as error:
                raise InputError(f"{path.name} line {line} (id {example}): {error}") from None
    empty = tuple(example for example in lines if example not in labels)
    return Filled(path, labels, empty, where, tuple(lines))


def selection_of(path: Path) -> str | None:
    """Which selection a file says it belongs to; None where that column was dropped."""
    file = label_file.read(path)
    if SELECTION not in file.header:
        return None
    found = {*file.cells(SELECTION)} - {""}
    if len(found) > 1:
        listed = ", ".join(printable(one)[:40] for one in sorted(found)[:5])
        raise InputError(f"{path.name}: has rows of different selections ({listed}); keep them apart")
    return next(iter(found), None)


def _example(path: Path, line: int, text: str) -> int:
    number = _whole(text)
    if number is None or number < 0:
        raise InputError(
            f"{path.name} line {line}: id {text[:_SHOWN]!r} is not the number of an example; leave the ids as they are"
        )
    return number


def _whole(text: str) -> int | None:
    """The whole number in a text, also as 3.0; None if there is none."""
    head, point, tail = text.partition(".")
    if point and tail.strip("0"):
        return None
    digits = head[1:] if head[:1] in ("-", "+") else head
    # Python refuses to read numbers of thousands of digits, and no class or example has one of twenty.
    known = digits.isascii() and digits.isdigit() and len(digits.lstrip("0")) <= _DIGITS
    return int(head[:1].strip("0123456789") + (digits.lstrip("0") or "0")) if known else None


def harmless_text(text: str) -> str:
    """Text as a cell that no spreadsheet runs and every reader brings back."""
    # Lone carriage returns and zero bytes would not come back: readers take them for ends of rows and of files.
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    return str(harmless(text))


class ChangedError(InputError):
    """Somebody else wrote to the file since it was read."""


class Filling:
    """A file that is being filled in: its examples and labels, row by row, as they were last read or written."""

    def __init__(self, path: Path, classes: Classes) -> None:
        # A link stays a link: the file that it names is written.
        self.path, self.classes = path.resolve(), classes
        self._take(label_file.read(self.path))

    def refresh(self) -> bool:
        """Read the file again; whether it was changed."""
        file = label_file.read(self.path)
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
        if label_file.read(self.path).content != self._file.content:
            raise ChangedError(
                f"{self.path.name} was changed by somebody else meanwhile, so this label was not written; reload the "
                "page to go on with what the file holds now"
            )
        content = self._file.changed(row, self._file.column(LABEL), harmless_text(label))
        write_bytes(self.path, content)
        self._file = label_file.parse(self.path, content)
        self.labels[row] = label
