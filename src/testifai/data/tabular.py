"""Tables of numbers and categories, from CSV, TSV and Parquet files and from data frames."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from testifai.data.dataset import Data, FilePart, from_arrays
from testifai.data.labels import read_labels
from testifai.data.table_columns import LABELS, TEXTS, Raw, choose, encode, is_number, learn, read_words
from testifai.errors import InputError, suggest
from testifai.support import optional_imports
from testifai.support.files import check_room, existing, reading
from testifai.support.options_base import Count, File
from testifai.support.types import Floats, RecordLike

NO_TARGET = ""
LOOKED_AT = 200  # rows that decide between a table and texts
_MOST_COLUMNS = 50_000
_WORDS = 3  # a cell of free text has more, on average


class TablePart(FilePart):
    """A file of rows; its columns by name."""

    table: File
    """The `.csv`, `.tsv` or `.parquet` file."""
    target: str | None = None
    """The column that the model is to predict."""
    features: list[str] | None = None
    """The columns that the model is given; default: all others."""
    categories: list[str] | None = None
    """Columns whose numbers are names of something."""
    missing: float | str | None = None
    """What stands for a missing value, besides empty cells and NaN."""
    max_bytes: Count | None = None
    """Memory that a Parquet file may take; default: 100 times its size, at least 256 MiB."""

    FILES: ClassVar = ("table",)
    suffixes: ClassVar = (".parquet", ".csv", ".tsv")

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return super().recognises(path) and (path.suffix.lower() == ".parquet" or is_table(path))

    @staticmethod
    def read(path: Path, max_bytes: int | None = None, **options: Any) -> Data:
        return from_columns(read_columns(existing(path), max_bytes=max_bytes), name=path.name, **options)


def from_columns(
    columns: Mapping[str, Raw],
    labels: Any = None,
    *,
    target: str | None = None,
    features: Sequence[str] | None = None,
    categories: Sequence[str] = (),
    missing: float | str | None = None,
    values: Mapping[str, Sequence[Any]] | None = None,
    name: str = "data",
) -> Data:
    """A data set of named columns.

    Args:
        columns: values by the name of the column
        labels: to predict, if they are in no column
        target: the column of labels or values to predict; None: told from its name; "": there is none
        features: the columns the model is given; None: all but the target
        categories: columns whose numbers are names of something
        missing: what stands for a missing value besides empty cells and NaN, in the data and for the model
        values: the categories of columns that have more than occur
        name: for people

    >>> data = from_columns({"age": [30, 41.5], "sex": ["f", "m"], "target": [0, 1]})
    >>> [(column.name, column.kind) for column in data.table.columns], data.labels.tolist()
    ([('age', 'number'), ('sex', 'category')], [0, 1])
    """
    names = list(columns)
    target = (guessed_target(names) if target is None else target) if labels is None else NO_TARGET
    _check_known("target", [target] if target else [], names, name)
    _check_known("features", features or [], names, name)
    _check_known("categories", categories, names, name)
    chosen = [one for one in names if one != target] if features is None else list(features)
    if target and target in chosen:
        raise InputError(f"data: {name}: column {target!r} cannot be both target and feature")
    if not chosen:
        raise InputError(f"data: {name} has no column for the model but the target {target!r}")
    made = [
        encode(one, columns[one], category=one in categories, missing=missing, values=(values or {}).get(one))
        for one in chosen
    ]
    rows: Floats = np.stack([numbers for _, numbers in made], axis=1)
    if not len(rows):
        raise InputError(f"data: {name}: has no rows; at least one is needed")
    schema = learn([column for column, _ in made], rows, missing)
    found = labels if labels is not None else _target(target, columns[target], name) if target else None
    array, classes = (None, None) if found is None else read_labels(found, len(rows))
    return Data(rows, array, classes, name, schema=schema)


def from_frame(frame: Any, labels: Any = None, **options: Any) -> Data:
    """A data set from a frame of pandas or polars: texts, where its columns hold these, else a table.

    Args:
        frame: of pandas or polars
        labels: to predict, if they are in no column
        options: of a table, as for `from_columns`
    """
    if _library(frame) == "polars":
        columns = {name: frame[name].to_list() for name in frame.columns}
        columns = {name: np.asarray(cells) if _are_numbers(cells) else cells for name, cells in columns.items()}
        return _from_either(columns, labels, options)
    values = {
        str(name): series.cat.categories.tolist()
        for name, series in frame.items()
        if hasattr(series.dtype, "categories")
    }
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        raise InputError("data: the frame has several columns of one name; rename all but one of them")
    columns = {
        str(name): series.to_numpy(object) if str(name) in values else series.to_numpy()
        for name, series in frame.items()
    }
    return _from_either(columns, labels, {"values": values, **options})


def _from_either(columns: RecordLike, labels: Any, options: RecordLike) -> Data:
    labels = labels.to_numpy() if hasattr(labels, "to_numpy") else labels
    asked = options.keys() - {"values"}
    head = {name: raw[:LOOKED_AT] if _are_numbers(raw) else [*raw[:LOOKED_AT]] for name, raw in columns.items()}
    if asked or holds_table(head, "the frame"):
        return from_columns(columns, labels, **options)
    found = choose(list(columns), None, None, "the frame")
    texts = [[str(cell) for cell in columns[name]] for name in found.text]
    if labels is None and found.label is not None:
        labels = np.asarray(columns[found.label])
    return from_arrays(texts[0] if len(texts) == 1 else list(zip(*texts, strict=True)), labels)


def _are_numbers(raw: Any) -> bool:
    array = np.asarray(raw)
    return array.ndim == 1 and array.dtype.kind in "biuf"


def _library(data: Any) -> str:
    return type(data).__module__.partition(".")[0]


def is_frame(data: Any) -> bool:
    """Return True for a frame of pandas or polars, without importing them."""
    return _library(data) in ("pandas", "polars") and hasattr(data, "columns")


def read_columns(path: Path, most: int | None = None, max_bytes: int | None = None) -> dict[str, Raw]:
    return _from_parquet(path, most, max_bytes) if path.suffix.lower() == ".parquet" else _from_cells(path, most)


def is_table(path: Path) -> bool:
    """Return True if the first rows of a file have numbers and categories, not texts."""
    try:
        head = read_columns(path, LOOKED_AT)
    except InputError:
        return False
    return holds_table(head, path.name)


def holds_table(head: Mapping[str, Raw], name: str) -> bool:
    """Return True if columns have numbers and categories, not texts, judging by their first rows."""
    try:
        texts = choose(list(head), None, None, name).text
    except InputError:  # a table has at least one column besides the target and row numbers
        features = [name for name in head if name.lower() not in LABELS and not is_number(name)]
        return len(head) > 1 and bool(features) and not any(map(_is_free_text, head.values()))
    if any(name.lower() in TEXTS for name in texts):
        return False
    return all(isinstance(head[name], np.ndarray) and len(head[name]) > 0 for name in texts)


def _is_free_text(raw: Raw) -> bool:
    words = [] if isinstance(raw, np.ndarray) else [cell for cell in raw if isinstance(cell, str)]
    if len(set(words)) <= len(words) / 2:
        return False
    return sum(len(word.split()) for word in words) > _WORDS * len(words)


def guessed_target(names: Sequence[str]) -> str:
    """Return the column with the name of a target; "" if there is none or several."""
    found = [name for name in names if name.lower() in LABELS]
    return found[0] if len(found) == 1 else NO_TARGET


def as_values(data: Data) -> Data:
    """Return the data with labels as values for regression, not classes."""
    return data if data.labels is None else replace(data, labels=data.labels.astype(np.float64))


def _target(target: str, raw: Raw, name: str) -> Any:
    column, numbers = encode(target, raw)
    absent = np.isnan(numbers)
    if absent.any():
        raise InputError(
            f"data: {name}: target {target!r} is missing in {int(absent.sum())} of {len(numbers)} rows (the first is "
            f"row {int(np.argmax(absent))}); leave these rows out"
        )
    return [str(column.values[int(code)]) for code in numbers] if column.kind == "category" else numbers


def _check_known(field: str, wanted: Sequence[str], names: Sequence[str], file: str) -> None:
    for place, name in enumerate(wanted):
        if name not in names:
            raise InputError(f"data: {field}: {file} has no column {name!r}; {suggest(name, names)}")
        if name in wanted[:place]:
            raise InputError(f"data: {field}: column {name!r} is listed twice")


def _from_cells(path: Path, most: int | None) -> dict[str, Raw]:
    rows: list[list[str]] = []
    with reading(path) as lines:
        reader = csv.reader(lines, "excel-tab" if path.suffix.lower() == ".tsv" else "excel")
        names = [name.strip() for name in next(reader, [])]
        _check_names(names, path)
        for row in reader:
            if not row:
                continue
            if len(row) != len(names):
                raise InputError(
                    f"data: {path.name}: line {reader.line_num} has {len(row)} cells for {len(names)} columns"
                )
            rows.append(row)
            if most is not None and len(rows) == most:
                break
    cells = list(zip(*rows, strict=True)) if rows else [() for _ in names]
    # pandas writes row numbers in a column without a name.
    return {name: read_words(column) for name, column in zip(names, cells, strict=True) if name}


def _check_names(names: Sequence[str], path: Path) -> None:
    if not any(names):
        raise InputError(f"data: {path.name} does not begin with a line of column names")
    if len(names) > _MOST_COLUMNS:
        raise InputError(f"data: {path.name}: expected at most {_MOST_COLUMNS:,} columns, got {len(names):,}")
    seen: set[str] = set()
    for name in names:
        if name and name in seen:
            raise InputError(f"data: {path.name} has several columns {name!r}; rename all but one of them")
        seen.add(name)


_NUMBER_BYTES, _OBJECT_BYTES = 16, 64  # that a cell takes while a table is read


def _from_parquet(path: Path, most: int | None, max_bytes: int | None) -> dict[str, Raw]:
    arrow = optional_imports.load("pyarrow", extra="parquet")
    parquet = optional_imports.load("pyarrow.parquet", extra="parquet")
    try:
        # A word is read once, however many cells hold it: a file may repeat a long one a million times in a few bytes.
        words = [one.name for one in parquet.read_schema(path) if _is_word(arrow.types, one.type)]
        with parquet.ParquetFile(path, read_dictionary=words) as file:
            kinds = {one.name: one.type for one in file.schema_arrow}
            _check_names(file.schema_arrow.names, path)
            nested = next((name for name, kind in kinds.items() if arrow.types.is_nested(kind)), None)
            if nested is not None:
                raise InputError(f"data: column {nested!r} holds lists; one value in each row is accepted")
            plain = [_is_plain(arrow.types, kind) for kind in kinds.values()]
            _check_parquet(path, file.metadata, plain, max_bytes, most)
            if most is None:
                table = file.read()
            else:
                table = arrow.Table.from_batches([*itertools.islice(file.iter_batches(most), 1)], file.schema_arrow)
            named = [name for name in table.column_names if not name.startswith("__index_level_")]
            return {name: _cells(arrow.types, table.column(name)) for name in named}
    except InputError:
        raise
    except (arrow.ArrowException, OSError, ValueError, OverflowError) as error:
        raise InputError(f"data: {path} cannot be read as Parquet ({str(error).splitlines()[0][:120]})") from None


def _cells(types: Any, column: Any) -> Raw:
    if types.is_temporal(column.type):
        return np.array([], "datetime64[s]")
    if types.is_dictionary(column.type):
        return [word for chunk in column.chunks for word in _words(chunk)]
    plain = _is_plain(types, column.type) and column.null_count == 0
    return np.asarray(column.to_numpy()) if plain else list(column.to_pylist())


def _is_word(types: Any, kind: Any) -> bool:
    return bool(types.is_string(kind) or types.is_binary(kind))


def _is_plain(types: Any, kind: Any) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind))


def _check_parquet(path: Path, about: Any, plain: Sequence[bool], max_bytes: int | None, most: int | None) -> None:
    """Refuse a table that takes too much memory: packed pages, and cells, of which a few bytes may hold millions."""
    rows = about.num_rows if most is None else min(most, about.num_rows)
    groups = about.num_row_groups if most is None else min(1, about.num_row_groups)
    pages = sum(about.row_group(place).total_byte_size for place in range(groups))
    cells = rows * sum(_NUMBER_BYTES if one else _OBJECT_BYTES for one in plain)
    check_room(path, pages + cells, max_bytes)


def _words(chunk: Any) -> list[Any]:
    known = [*chunk.dictionary.to_pylist(), None]
    return [known[place] for place in chunk.indices.fill_null(len(known) - 1).to_pylist()]
