"""Texts and pairs of texts from tables: CSV, TSV, and JSON lines."""

from __future__ import annotations

import csv
import json
import re
from abc import abstractmethod
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar

from testifai.data.dataset import Data, DataPart, from_arrays
from testifai.data.table_columns import Columns, choose
from testifai.errors import InputError
from testifai.support.batches import Side
from testifai.support.files import existing, reading
from testifai.support.options_base import File
from testifai.support.types import Record

_LARGEST_NUMBER = 2**53  # larger numbers are names of something
_WHOLE = re.compile(r"[+-]?[0-9]{1,15}")


class TextsPart(DataPart):
    """Which columns of a table hold texts and labels, and which text of a pair is perturbed.

    Labels are integers, or words, which become classes. Columns that are not given are guessed from their names.
    """

    text: str | list[str] | None = None
    """The column of texts, or two columns of a pair."""
    label: str | None = None
    """The column of labels."""
    side: Side | None = None
    """Which text of a pair is perturbed."""

    def load(self, folder: Path) -> Data:
        path = existing(self.told(folder)[self.FILES[0]])
        inputs, labels = self._read(path)
        return from_arrays(inputs, labels, name=path.name, side=self.side or "both")

    @abstractmethod
    def _read(self, path: Path) -> tuple[list[Any], list[Any] | None]:
        """Return the texts or pairs of texts, and the labels if there are any."""

    def _read_cells(self, path: Path, reader: Any) -> tuple[list[Any], list[Any] | None]:
        inputs: list[Any] = []
        labels: list[str] = []
        try:
            names = [name.strip() for name in next(reader, [])]
            if not any(names):
                raise InputError(f"data: {path.name} does not begin with a line of column names")
            columns = choose(names, self.text, self.label, path.name)
            read_input = itemgetter(*map(names.index, columns.text))
            read_label = None if columns.label is None else itemgetter(names.index(columns.label))
            for row in reader:
                if not row:
                    continue
                where = f"data: {path.name}: line {reader.line_num}"
                if len(row) != len(names):
                    raise InputError(
                        f"{where} has {len(row)} cells for {len(names)} columns; "
                        "a cell with a separator or a line end in it needs quotes around it"
                    )
                inputs.append(read_input(row))
                if read_label is not None:
                    labels.append(read_label(row).strip())
                    if not labels[-1]:
                        raise InputError(f"{where} has no {columns.label}")
        except csv.Error as error:
            raise _QuoteError(
                f"data: {path.name}: line {reader.line_num} is not quoted properly ({error}); "
                "a quote inside a quoted cell is written twice"
            ) from None
        return inputs, None if read_label is None else _from_words(labels)


class _QuoteError(InputError):
    """Cells of a line that are not quoted as they are in CSV."""


class CsvPart(TextsPart):
    """Texts in a file with commas."""

    csv: File
    """The file."""

    FILES: ClassVar = ("csv",)
    suffixes: ClassVar = (".csv",)

    def _read(self, path: Path) -> tuple[list[Any], list[Any] | None]:
        with reading(path) as lines:
            return self._read_cells(path, csv.reader(lines, strict=True))


class TsvPart(TextsPart):
    """Texts in a file with tabs."""

    tsv: File
    """The file."""

    FILES: ClassVar = ("tsv",)
    suffixes: ClassVar = (".tsv",)

    def _read(self, path: Path) -> tuple[list[Any], list[Any] | None]:
        # Programs differ: some quote cells, to others a quote at the start of a cell is a part of the text.
        try:
            with reading(path) as lines:
                return self._read_cells(path, csv.reader(lines, "excel-tab", strict=True))
        except _QuoteError:
            with reading(path) as lines:
                return self._read_cells(path, csv.reader(lines, "excel-tab", quoting=csv.QUOTE_NONE))


class JsonlPart(TextsPart):
    """Texts in a file with a JSON object on every line."""

    jsonl: File
    """The file."""

    FILES: ClassVar = ("jsonl",)
    suffixes: ClassVar = (".jsonl", ".ndjson")

    def _read(self, path: Path) -> tuple[list[Any], list[Any] | None]:
        inputs: list[Any] = []
        labels: list[Any] = []
        columns: Columns | None = None
        with reading(path) as lines:
            for number, line in enumerate(lines, start=1):
                if line.isspace():
                    continue
                where = f"data: {path.name}: line {number}"
                row = _object(line, where)
                columns = columns or choose(list(row), self.text, self.label, path.name)
                texts = [_text(row, name, where) for name in columns.text]
                inputs.append(texts[0] if len(texts) == 1 else tuple(texts))
                if columns.label is not None:
                    labels.append(_label(row, columns.label, where))
        if columns is None:
            raise InputError(f"data: {path.name} is empty; a JSON object on every line is accepted")
        if len({type(one) for one in inputs}) > 1:
            raise InputError(f"data: {path.name}: {columns.text[0]} holds a text on some lines and a pair on others")
        return inputs, _alike(labels, path) if labels else None


def columns(kind: str, path: Path) -> Columns:
    path = existing(path)
    with reading(path) as lines:
        if kind == "jsonl":
            number, line = next(((n, line) for n, line in enumerate(lines, 1) if not line.isspace()), (1, "{}"))
            return choose(list(_object(line, f"data: {path.name}: line {number}")), None, None, path.name)
        reader = csv.reader(lines, "excel" if kind == "csv" else "excel-tab")
        return choose([name.strip() for name in next(reader, [])], None, None, path.name)


def _from_words(cells: list[str]) -> list[Any]:
    different = set(cells)
    if all(map(_WHOLE.fullmatch, different)):
        numbers: Record = {cell: int(cell) for cell in different}
    elif all(map(_is_number, different)):
        numbers = {cell: float(cell) for cell in different}
    else:
        return cells
    return [numbers[cell] for cell in cells]


def _is_number(cell: str) -> bool:
    try:
        return abs(float(cell)) <= _LARGEST_NUMBER and "_" not in cell
    except ValueError:
        return False


def _object(line: str, where: str) -> Record:
    try:
        row = json.loads(line)
    except RecursionError:
        raise InputError(f"{where} is nested too deeply; an object with texts in it is accepted") from None
    except ValueError as error:
        hint = "; a whole list of objects is not accepted, one object on every line is" if line[:1] == "[" else ""
        raise InputError(f"{where} is not JSON ({error}){hint}") from None
    if not isinstance(row, dict):
        raise InputError(f"{where} is a {_kind(row)}; one JSON object on every line is accepted")
    return row


def _text(row: Record, name: str, where: str) -> Any:
    value = _field(row, name, where)
    pair = isinstance(value, list) and len(value) == 2 and all(isinstance(one, str) for one in value)
    if not pair and not isinstance(value, str):
        raise InputError(f"{where}: {name} is a {_kind(value)}; a text is accepted, or a list of two")
    for text in value if pair else [value]:
        _check_whole(text, name, where)
    return tuple(value) if pair else value


def _check_whole(text: Any, name: str, where: str) -> None:
    try:
        str(text).encode()
    except UnicodeEncodeError as error:  # JSON can spell halves of characters
        raise InputError(
            f"{where}: {name} holds half a character (\\u{ord(text[error.start]):04x}); write both halves, or none"
        ) from None


def _label(row: Record, name: str, where: str) -> Any:
    value = _field(row, name, where)
    several = isinstance(value, list) and all(isinstance(one, str | int) for one in value)
    number = isinstance(value, int | float) and abs(value) <= _LARGEST_NUMBER
    if not several and not number and not (isinstance(value, str) and value.strip()):
        raise InputError(f"{where}: {name} is {json.dumps(value)[:40]}; a number, a word or a list of them is accepted")
    for text in value if several else [value]:
        _check_whole(text, name, where)
    return frozenset(value) if several else value.strip() if isinstance(value, str) else value


def _alike(labels: list[Any], path: Path) -> list[Any]:
    kinds = {str if isinstance(one, str) else frozenset if isinstance(one, frozenset) else float for one in labels}
    if len(kinds) > 1:
        raise InputError(f"data: {path.name}: labels are numbers on some lines and words or lists on others")
    return _from_words(labels) if kinds == {str} else labels


def _field(row: Record, name: str, where: str) -> Any:
    if row.get(name) is None:
        missing = "null" if name in row else f"missing (found: {', '.join(map(str, row))})"
        raise InputError(f"{where}: {name} is {missing}; every line needs one")
    return row[name]


def _kind(value: Any) -> str:
    names = {list: "list", dict: "object", str: "text", bool: "truth value", type(None): "null"}
    return names.get(type(value), "number")
