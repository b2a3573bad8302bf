"""CSV files as spreadsheets write them: read with their lines, and changed in one cell without touching another byte.

A byte-order mark, semicolons or tabs, other line ends, quotes where none are needed: whatever there is, is read and
stays.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from testifai.errors import InputError
from testifai.support.formatting import as_written

Span = tuple[int, int]
MARK = "\ufeff"
_UNREADABLE = "surrogateescape"  # bytes that are no letters are kept as they are


@dataclass(frozen=True)
class CsvFile:
    """A table in a file. `rows` hold something, each with the line it starts in, without the header."""

    path: Path
    content: bytes
    text: str
    encoding: str
    delimiter: str
    begin: int  # where the table starts in the text
    header: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]

    def column(self, name: str) -> int:
        """The place of a column that must be there, once."""
        if self.header.count(name) != 1:
            problem = "no column" if name not in self.header else "several columns"
            raise InputError(f"{self.path.name}: has {problem} {name!r}; found: {', '.join(self.header) or 'none'}")
        return self.header.index(name)

    def cells(self, name: str) -> list[str]:
        """What the rows hold in a column; empty where there is no such column."""
        if name not in self.header:
            return [""] * len(self.rows)
        place = self.header.index(name)
        return [as_written(row[place]).strip() if place < len(row) else "" for _, row in self.rows]

    def changed(self, row: int, column: int, cell: str) -> bytes:
        """The file with another text in one cell."""
        if self.text.encode(self.encoding, _UNREADABLE) != self.content:
            raise InputError(f"{self.path.name}: has letters that cannot be read; save it as UTF-8 first")
        record = next(itertools.islice(filter(self._holds_something, self._spans()), row + 1, None))
        start, end = record[column] if column < len(record) else (record[-1][1],) * 2
        missing = self.delimiter * max(0, column + 1 - len(record))
        text = self.text[:start] + missing + self._written(cell, self.text[start:end]) + self.text[end:]
        try:
            content = text.encode(self.encoding, _UNREADABLE)
        except UnicodeEncodeError:
            raise InputError(f"{self.path.name}: cannot hold {cell!r}; save it as UTF-8 first") from None
        self._check(content, row, column, cell)
        return content

    def _spans(self) -> Iterator[list[Span]]:
        """Where the cells of each record are in the text, with their quotes."""
        cell = re.compile(rf'(?:"(?:[^"]+|"")*"?)?[^{self.delimiter}\r\n]*')
        record: list[Span] = []
        place, size = self.begin, len(self.text)
        while place <= size:
            found = cell.match(self.text, place)
            assert found is not None
            record.append(found.span())
            place = found.end()
            if place < size and self.text[place] == self.delimiter:
                place += 1
                continue
            yield record
            record = []
            place += 2 if self.text.startswith("\r\n", place) else 1

    def _holds_something(self, record: list[Span]) -> bool:
        alone = io.StringIO(self.text[record[0][0] : record[-1][1]], newline="")
        return any(cell.strip() for cells in csv.reader(alone, delimiter=self.delimiter) for cell in cells)

    def _written(self, cell: str, before: str) -> str:
        """A text as a cell, quoted where it must be or the one before was."""
        if before.startswith('"') or any(mark in cell for mark in f'{self.delimiter}"\r\n'):
            return '"' + cell.replace('"', '""') + '"'
        return cell

    def _check(self, content: bytes, row: int, column: int, cell: str) -> None:
        """A label is not worth the rest of somebody's file: what was meant is read back before it is written."""
        line, cells = self.rows[row]
        expected = [list(one) for _, one in self.rows]
        expected[row] += [""] * (column + 1 - len(cells))
        expected[row][column] = cell
        if [list(one) for _, one in parse(self.path, content).rows] != expected:
            raise InputError(f"{self.path.name} line {line}: cannot be changed alone; save the file as plain CSV first")


def read(path: Path) -> CsvFile:
    """A table from its file."""
    try:
        return parse(path, path.read_bytes())
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; testifai label select writes such a file") from None
    except OSError as error:
        raise InputError(f"cannot read {path} ({error.strerror or error})") from None


def parse(path: Path, content: bytes) -> CsvFile:
    """A table from what its file holds."""
    text, encoding = _decoded(path, content)
    begin = len(text) - len(text.removeprefix(MARK))
    stream = io.StringIO(text[begin:], newline="")
    head, skipped = stream.readline(), 0
    if head.lower().startswith("sep="):  # Excel's own way to name the delimiter
        begin += len(head)
        head, skipped = stream.readline(), 1
    delimiter = max(",;\t", key=head.count)
    reader = csv.reader(itertools.chain([head], stream), delimiter=delimiter)
    rows = []
    line = 1
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append((line + skipped, tuple(row)))
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{path.name} line {line + skipped}: not a CSV table ({error})") from None
    if not rows:
        raise InputError(f"{path}: is empty; a table with the columns id and label is expected")
    header = tuple(cell.strip().casefold() for cell in rows[0][1])
    return CsvFile(path, content, text, encoding, delimiter, begin, header, tuple(rows[1:]))


def _decoded(path: Path, content: bytes) -> tuple[str, str]:
    """The text and how it was written."""
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
