"""Columns of tables: their kinds and numbers, and which of them hold texts and labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError, suggest
from testifai.support.types import Array, Floats, Record

Kind = Literal["number", "whole", "boolean", "category"]
NUMERIC: tuple[Kind, ...] = ("number", "whole")
DISCRETE: tuple[Kind, ...] = ("boolean", "category")

SAMPLED = 512  # rows of a table that are kept as a sample
_NORMAL_QUARTILES = 1.349  # standard deviations between the quartiles of a normal distribution


@dataclass(frozen=True)
class Column:
    """One column. `values` are the meanings of the numbers 0, 1, … in boolean and categorical columns."""

    name: str
    kind: Kind = "number"
    values: tuple[Any, ...] = ()
    spread: float = 0.0

    def word(self, number: float) -> str:
        if np.isnan(number):
            return "missing"
        return str(self.values[int(number)]) if self.values else f"{number:.6g}"


@dataclass(frozen=True, eq=False)
class Table:
    """The columns of a table, in order. `missing` is the value that a model gets for a missing one; None: NaN."""

    columns: tuple[Column, ...]
    sample: Floats
    missing: float | str | None = None

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def places(self, names: Iterable[str]) -> NDArray[np.intp]:
        known = {name: place for place, name in enumerate(self.names)}
        found = []
        for name in names:
            if name not in known:
                raise InputError(f"columns: the data have no column {name!r}; {suggest(name, known)}")
            found.append(known[name])
        return np.array(found, dtype=np.intp)

    def identity(self) -> str:
        """Return what distinguishes it from another table with the same numbers."""
        told = [(column.name, column.kind, [repr(value) for value in column.values]) for column in self.columns]
        return repr((told, self.missing))


def learn(columns: Sequence[Column], rows: Floats, missing: float | str | None = None) -> Table:
    """Return a table of these columns, with the spread of each and a sample of the rows."""
    numbers = np.asarray(rows, np.float64)
    chosen = np.unique(np.linspace(0, len(numbers) - 1, min(len(numbers), SAMPLED)).astype(np.intp))
    spreads = [spread(numbers[:, place]) if column.kind in NUMERIC else 0.0 for place, column in enumerate(columns)]
    learned = tuple(replace(column, spread=one) for column, one in zip(columns, spreads, strict=True))
    return Table(learned, numbers[chosen], missing)


def unnamed(rows: Array) -> Table:
    """Return the table of an array of numbers, with columns x0, x1, …"""
    numbers = np.asarray(rows, np.float64)
    return learn([numeric(f"x{place}", numbers[:, place]) for place in range(numbers.shape[1])], numbers)


def numeric(name: str, numbers: Floats) -> Column:
    there = numbers[~np.isnan(numbers)]
    if len(there) and bool(np.isin(there, (0, 1)).all()):
        return Column(name, "boolean", (0, 1))
    return Column(name, "whole" if len(there) and bool((there == np.floor(there)).all()) else "number")


def spread(numbers: Floats) -> float:
    """Return the standard deviation, estimated robustly from the quartiles if these differ."""
    there = numbers[np.isfinite(numbers)]
    if not len(there):
        return 0.0
    low, high = np.percentile(there, (25, 75))
    return float((high - low) / _NORMAL_QUARTILES if high > low else there.std())


TEXTS = frozenset({
    "text", "sentence", "question", "content", "review", "comment", "tweet", "message", "document", "utterance",
    "query", "input", "prompt", "passage",
})  # fmt: skip
LABELS = frozenset({
    "label", "labels", "is_duplicate", "class", "target", "category", "sentiment", "gold_label", "intent", "polarity",
    "y",
})  # fmt: skip
# Pairs of columns whose names differ in more than their endings.
PAIRS = (("premise", "hypothesis"), ("question", "sentence"), ("question", "passage"), ("query", "passage"))
ENDINGS = (("1", "2"), ("_a", "_b"))
# A first line that does not match is a text: the file has no line of names.
_NAME = re.compile(r"\w[\w.-]*( [\w.-]+){0,2}")


@dataclass(frozen=True)
class Columns:
    """The columns to read: one of texts, or two for pairs; and that of the labels, where there is one."""

    text: tuple[str, ...]
    label: str | None


def choose(names: Sequence[str], text: str | Sequence[str] | None, label: str | None, file: str) -> Columns:
    """Return the given columns, or those guessed from the names; InputError if that is ambiguous."""
    given = (text,) if isinstance(text, str) else tuple(text or ())
    if text is not None and (len(given) not in (1, 2) or not all(isinstance(name, str) for name in given)):
        raise InputError(f"data: text = {text!r} is not accepted; give one column, or two for pairs of texts")
    for field, name in [*(("text", name) for name in given), ("label", label)]:
        if name is not None and name not in names:
            raise InputError(f"data: {file} has no column {name!r} for {field}; {suggest(name, names)}")
        if name is not None and list(names).count(name) > 1:
            raise InputError(f"data: {file} has several columns {name!r}; rename all but one of them")
    if label is not None and label in given:
        raise InputError(f"data: {file}: column {label!r} cannot be both text and label")
    guessed = [name for name in names if name.lower() in LABELS and name not in given]
    if label is None and len(guessed) > 1:
        raise _unclear("label", "labels", names, file)
    chosen = label or next(iter(guessed), None)
    return Columns(given or _guessed_text(names, chosen, file), chosen)


def _guessed_text(names: Sequence[str], label: str | None, file: str) -> tuple[str, ...]:
    """The only candidate: a pair, a column with a usual name, or the only column left."""
    for separator, word in ((";", "semicolons"), ("\t", "tabs"), (",", "commas"), ("|", "bars")):
        if len(names) == 1 and separator in names[0]:
            raise InputError(
                f"data: {file}: its columns seem to be separated by {word}; accepted: commas in a .csv file, "
                "tabs in a .tsv file"
            )
    rest = [name for name in names if name != label and not is_number(name)]
    pairs = _pairs(rest)
    texts = [name for name in rest if name.lower() in TEXTS and not any(name in pair for pair in pairs)]
    found: list[tuple[str, ...]] = [*pairs, *((name,) for name in texts)]
    if not found and len(rest) == 1 and _NAME.fullmatch(rest[0]):
        found = [(rest[0],)]
    if len(found) != 1 or any(list(names).count(name) > 1 for name in found[0]):
        raise _unclear("text", "texts", names, file)
    return found[0]


def _pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    lower = {name.lower(): name for name in names}
    alike = [
        (name, name[: -len(one)] + other)
        for name in lower
        for one, other in ENDINGS
        if name.endswith(one) and name != one
    ]
    return [(lower[one], lower[other]) for one, other in [*alike, *PAIRS] if one in lower and other in lower]


def is_number(name: str) -> bool:
    """Return True for the name of a column of row or text numbers (id, idx, qid1), or an empty name."""
    bare = name.lower().rstrip("12")
    return bare in ("", "index", "idx", "id", "guid", "uid", "qid") or bare.endswith("_id")


def _unclear(field: str, what: str, names: Sequence[str], file: str) -> InputError:
    listing = ", ".join(name if len(name) <= 40 else name[:39] + "…" for name in names[:20])
    more = f", … {len(names)} in all" if len(names) > 20 else ""
    return InputError(
        f"data: {file}: which column holds the {what} is not clear; set {field} "
        f"(columns, as the first line names them: {' '.join(listing.split())}{more})"
    )


# Missing values in files of cells, as pandas reads them.
MISSING = frozenset({
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
})  # fmt: skip
_TRUTH = {"false": False, "true": True}

Raw = Array | Sequence[Any]  # cells of a file are words; None is a missing value


def read_words(cells: Sequence[str]) -> Raw:
    """Return cells of a file as numbers, truth values or words, whichever fits all; missing ones are None or NaN."""
    known: Record = {cell: None if cell.strip() in MISSING else cell.strip() for cell in set(cells)}
    words = {word for word in known.values() if word is not None}
    if all(map(_is_number, words)):
        return np.array([np.nan if known[cell] is None else float(known[cell]) for cell in cells])
    if {word.lower() for word in words} <= set(_TRUTH):
        known = {cell: None if word is None else _TRUTH[word.lower()] for cell, word in known.items()}
    return [known[cell] for cell in cells]


def encode(
    name: str,
    raw: Raw,
    *,
    category: bool = False,
    missing: float | str | None = None,
    values: Sequence[Any] | None = None,
) -> tuple[Column, Floats]:
    """Return a column and its numbers. With `category`, numbers are names too; `values` are known categories."""
    if isinstance(raw, np.ndarray) and raw.dtype.kind in "iuf":
        return _from_numbers(name, raw.astype(np.float64), category, missing)
    if isinstance(raw, np.ndarray) and raw.dtype.kind in "mM":
        raise InputError(f"data: column {name!r} holds times; make numbers of them, or leave it out of features")
    listed = raw.tolist() if isinstance(raw, np.ndarray) else raw
    cells = [None if _is_missing(cell, missing) else cell for cell in listed]
    there = [cell for cell in cells if cell is not None]
    if values is None and all(isinstance(cell, bool | int | float) for cell in there):
        numbers = np.array([np.nan if cell is None else float(cell) for cell in cells])
        if all(isinstance(cell, bool) for cell in there):
            return Column(name, "boolean", (False, True)), numbers
        return _from_numbers(name, numbers, category, missing)
    words = [cell if values is not None or cell is None else str(cell) for cell in cells]
    known = sorted({word for word in words if word is not None}) if values is None else values
    place = {value: float(number) for number, value in enumerate(known)}
    codes = np.array([np.nan if word is None else place[word] for word in words])
    return Column(name, "category", tuple(known)), codes


def _from_numbers(name: str, numbers: Floats, category: bool, missing: float | str | None) -> tuple[Column, Floats]:
    if isinstance(missing, int | float):
        numbers = np.where(numbers == missing, np.nan, numbers)
    if np.isinf(numbers).any():
        row = int(np.argmax(np.isinf(numbers)))
        raise InputError(f"data: column {name!r} holds infinity (row {row}); a number or nothing is accepted")
    if not category:
        return numeric(name, numbers), numbers
    known = np.unique(numbers[~np.isnan(numbers)])
    codes = np.where(np.isnan(numbers), np.nan, np.searchsorted(known, numbers).astype(np.float64))
    whole = bool((known == np.floor(known)).all())
    return Column(name, "category", tuple(int(one) if whole else float(one) for one in known)), codes


def _is_missing(cell: Any, missing: float | str | None) -> bool:
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return (isinstance(cell, float) and cell != cell) or (isinstance(cell, str) and cell == missing)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return "_" not in word
