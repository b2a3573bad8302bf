"""The file that people fill in: examples as rows with an empty label column, and what comes back.

It travels by mail and through spreadsheets, so what comes back may have a byte-order mark, semicolons, other line
ends, rows in another order, `3.0` for `3`. All of that is read; what cannot be meant is refused with its line.
"""

from __future__ import annotations

import csv
import difflib
import io
import itertools
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from testifai.errors import InputError
from testifai.support.printable import as_written, harmless, printable

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
    """What a file holds: labels by example, examples still without one, where the examples are."""

    path: Path
    labels: dict[int, int] = field(default_factory=dict)
    empty: tuple[int, ...] = ()
    where: dict[int, str] = field(default_factory=dict)

    @property
    def examples(self) -> set[int]:
        """All examples that have a row."""
        return {*self.labels, *self.empty}


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """A CSV file. Text that a spreadsheet would run as a formula is made plain text with an apostrophe."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_harmless(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
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
    rows = _rows(path)
    header = _header(rows)
    id_column, label_column = _column(path, header, ID), _column(path, header, LABEL)
    labels: dict[int, int] = {}
    lines: dict[int, int] = {}
    where: dict[int, str] = {}
    for line, row in rows[1:]:
        example = _example(path, line, _cell(row, id_column))
        if example in lines:
            raise InputError(
                f"{path.name} line {line}: id {example} is in line {lines[example]} already; keep one of them"
            )
        lines[example] = line
        if WHERE in header:
            where[example] = _cell(row, header.index(WHERE))
        text = _cell(row, label_column)
        if text:
            try:
                labels[example] = classes.number(text)
            except InputError as error:
                raise InputError(f"{path.name} line {line} (id {example}): {error}") from None
    empty = tuple(example for example in lines if example not in labels)
    return Filled(path, labels, empty, where)


def selection_of(path: Path) -> str | None:
    """Which selection a file says it belongs to; None where that column was dropped."""
    rows = _rows(path)
    header = _header(rows)
    if SELECTION not in header:
        return None
    found = {_cell(row, header.index(SELECTION)) for _, row in rows[1:]} - {""}
    if len(found) > 1:
        listed = ", ".join(printable(one)[:40] for one in sorted(found)[:5])
        raise InputError(f"{path.name}: has rows of different selections ({listed}); keep them apart")
    return next(iter(found), None)


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """Rows that hold something, with the lines they start in; the first is the header."""
    stream = io.StringIO(_text(path), newline="")
    head, skipped = stream.readline(), 0
    if head.lower().startswith("sep="):  # Excel's own way to name the delimiter
        head, skipped = stream.readline(), 1
    delimiter = max(",;\t", key=head.count)
    reader = csv.reader(itertools.chain([head], stream), delimiter=delimiter)
    rows = []
    line = 1
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append((line + skipped, row))
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{path.name} line {line + skipped}: not a CSV table ({error})") from None
    if not rows:
        raise InputError(f"{path}: is empty; a table with the columns id and label is expected")
    return rows


def _header(rows: list[tuple[int, list[str]]]) -> list[str]:
    return [cell.strip().casefold() for cell in rows[0][1]]


def _cell(row: list[str], column: int) -> str:
    text = row[column] if column < len(row) else ""
    return as_written(text).strip()


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; testifai select writes such a file") from None
    except OSError as error:
        raise InputError(f"cannot read {path} ({error.strerror or error})") from None
    if content.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise InputError(f"{path.name}: is a workbook; save the sheet as CSV first")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace")
    if b"\0" in content:
        raise InputError(f"{path.name}: is not a text file; a table with the columns id and label is expected")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")  # what spreadsheets on Windows write


def _column(path: Path, header: list[str], name: str) -> int:
    if header.count(name) != 1:
        problem = "no column" if name not in header else "several columns"
        raise InputError(f"{path.name}: has {problem} {name!r}; found: {', '.join(header) or 'none'}")
    return header.index(name)


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


def _harmless(text: str) -> str:
    # Lone carriage returns and zero bytes would not come back: readers take them for ends of rows and of files.
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    return str(harmless(text))
