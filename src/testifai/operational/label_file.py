"""Label files: CSV tables of chosen examples that people fill in, in any editor or spreadsheet.

What comes back may have a byte-order mark, semicolons, other line ends, rows in another order, or `3.0` for `3`. All of
that is read; an invalid cell is reported with its line. Writing one label leaves every other byte as it was."""

from __future__ import annotations

import csv
import difflib
import io
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from testifai.errors import InputError
from testifai.support.files import write_bytes
from testifai.support.formatting import as_written, harmless, printable

MARK = "\ufeff"
_UNREADABLE = "surrogateescape"  # bytes that are no letters are kept as they are


class CsvRow(NamedTuple):
    line: int  # on which the row starts
    start: int  # its first character in the text
    cells: tuple[str, ...]


@dataclass(frozen=True)
class CsvFile:
    """A table in a file. `rows` are those after the header with any text in them."""

    path: Path
    content: bytes
    text: str
    encoding: str
    delimiter: str
    header: tuple[str, ...]
    rows: tuple[CsvRow, ...]

    def column(self, name: str) -> int:
        if self.header.count(name) != 1:
            problem = "no column" if name not in self.header else "several columns"
            raise InputError(f"{self.path.name}: has {problem} {name!r}; found: {', '.join(self.header) or 'none'}")
        return self.header.index(name)

    def cells(self, name: str) -> list[str]:
        if name not in self.header:
            return [""] * len(self.rows)
        place = self.header.index(name)
        return [as_written(row[place]).strip() if place < len(row) else "" for _, _, row in self.rows]

    def changed(self, row: int, column: int, cell: str) -> bytes:
        if self.text.encode(self.encoding, _UNREADABLE) != self.content:
            raise InputError(f"{self.path.name}: has letters that cannot be read; save it as UTF-8 first")
        pattern = re.compile(rf'(?:"(?:[^"]+|"")*"?)?[^{self.delimiter}\r\n]*')
        line, place, cells = self.rows[row]
        record: list[tuple[int, int]] = []  # of each cell, with its quotes
        while not record or self.text[place - 1 : place] == self.delimiter:
            found = pattern.match(self.text, place)
            assert found is not None
            record.append(found.span())
            place = found.end() + 1
        start, end = record[column] if column < len(record) else (record[-1][1],) * 2
        missing = self.delimiter * max(0, column + 1 - len(record))
        before, written = self.text[start:end], cell
        if before.startswith('"') or any(mark in cell for mark in f'{self.delimiter}"\r\n'):
            written = '"' + cell.replace('"', '""') + '"'
        text = self.text[:start] + missing + written + self.text[end:]
        try:
            content = text.encode(self.encoding, _UNREADABLE)
        except UnicodeEncodeError:
            raise InputError(f"{self.path.name}: cannot hold {cell!r}; save it as UTF-8 first") from None
        # Read back what is to be written: a label is not worth the rest of the user's file.
        expected = [list(one.cells) for one in self.rows]
        expected[row] += [""] * (column + 1 - len(cells))
        expected[row][column] = cell
        if [list(one.cells) for one in parse(self.path, content).rows] != expected:
            raise InputError(f"{self.path.name} line {line}: cannot be changed alone; save the file as plain CSV first")
        return content


def read(path: Path) -> CsvFile:
    try:
        return parse(path, path.read_bytes())
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; testifai label select writes such a file") from None
    except OSError as error:
        raise InputError(f"cannot read {path} ({error.strerror or error})") from None


def parse(path: Path, content: bytes) -> CsvFile:
    text, encoding = _decoded(path, content)
    begin = len(text) - len(text.removeprefix(MARK))
    stream = io.StringIO(text[begin:], newline="")
    head, skipped = stream.readline(), 0
    if head.lower().startswith("sep="):  # Excel's own way to name the delimiter
        begin += len(head)
        head, skipped = stream.readline(), 1
    delimiter = max(",;\t", key=head.count)
    line, start, reached = 1, begin, begin

    def lines() -> Iterator[str]:
        nonlocal reached
        for one in itertools.chain([head], stream):
            reached += len(one)
            yield one

    reader, rows = csv.reader(lines(), delimiter=delimiter), list[CsvRow]()
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append(CsvRow(line + skipped, start, tuple(row)))
            line, start = reader.line_num + 1, reached
    except csv.Error as error:
        raise InputError(f"{path.name} line {line + skipped}: not a CSV table ({error})") from None
    if not rows:
        raise InputError(f"{path}: is empty; a table with the columns id and label is expected")
    header = tuple(cell.strip().casefold() for cell in rows[0].cells)
    return CsvFile(path, content, text, encoding, delimiter, header, tuple(rows[1:]))


def _decoded(path: Path, content: bytes) -> tuple[str, str]:
    if content.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise InputError(f"{path.name}: is a workbook; save the sheet as CSV first")
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if content.startswith(mark):
            return content.decode(encoding, "replace"), encoding
    if b"\0" in content:
        raise InputError(f"{path.name}: is not a text file; a table with the columns id and label is expected")
    try:
        return content.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        return content.decode("cp1252", _UNREADABLE), "cp1252"  # what spreadsheets on Windows write


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
        return self.names[number] if self.names is not None and 0 <= number < len(self.names) else str(number)

    def number(self, text: str) -> int:
        if self.names is not None and text in self.names:
            return self.names.index(text)
        plain = _whole(text)
        if self.names is not None:
            found = [number for number, name in enumerate(self.names) if name.strip().casefold() == text.casefold()]
            # A spreadsheet turns the name 7 into 7.0, as it does numbers.
            if not found and plain is not None:
                found = [number for number, name in enumerate(self.names) if name == str(plain)]
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
        try:
            path.hardlink_to(temporary)  # unlike a rename, never replaces a file that appeared meanwhile
        except FileExistsError:
            raise
        except OSError:  # not every file system can have two names for a file
            temporary.replace(path)
    except FileExistsError:
        raise InputError(f"out: {path} exists and is never overwritten; choose another name with -o") from None
    except OSError as error:
        raise InputError(f"out: cannot write {path} ({error.strerror or error})") from None
    finally:
        temporary.unlink(missing_ok=True)


def read_filled(path: Path, classes: Classes) -> Filled:
    return filled(read(path), classes)


def filled(file: CsvFile, classes: Classes) -> Filled:
    path = file.path
    for name in (ID, LABEL):
        file.column(name)
    labels: dict[int, int] = {}
    lines: dict[int, int] = {}
    where: dict[int, str] = {}
    cells = zip(file.rows, file.cells(ID), file.cells(LABEL), file.cells(WHERE), strict=True)
    for (line, _, _), number, text, place in cells:
        example = _whole(number)
        if example is None or example < 0:
            raise InputError(
                f"{path.name} line {line}: id {number[:_SHOWN]!r} is not the number of an example; "
                "leave the ids as they are"
            )
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
    file = read(path)
    if SELECTION not in file.header:
        return None
    found = {*file.cells(SELECTION)} - {""}
    if len(found) > 1:
        listed = ", ".join(printable(one)[:40] for one in sorted(found)[:5])
        raise InputError(f"{path.name}: has rows of different selections ({listed}); keep them apart")
    return next(iter(found), None)


def _whole(text: str) -> int | None:
    """The whole number in a text, also as 3.0; None if there is none."""
    found = re.fullmatch(r"([+-]?)0*([0-9]+?)(?:\.0*)?", text)
    # Python refuses to read numbers of thousands of digits, and no class or example has one of twenty.
    return int(found[1] + found[2]) if found is not None and len(found[2]) <= _DIGITS else None


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
        self._take(read(self.path))

    def refresh(self) -> bool:
        file = read(self.path)
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
        return self._file.cells(column)[row]

    def put(self, row: int, text: str) -> None:
        label = self.classes.text(self.classes.number(text)) if text else ""
        if label == self.labels[row]:
            return
        if read(self.path).content != self._file.content:
            raise ChangedError(
                f"{self.path.name} was changed by somebody else meanwhile, so this label was not written; reload the "
                "page to go on with what the file holds now"
            )
        content = self._file.changed(row, self._file.column(LABEL), harmless_text(label))
        write_bytes(self.path, content)
        self._file = parse(self.path, content)
        self.labels[row] = label
