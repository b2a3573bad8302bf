"""Which columns of a table hold the texts and the labels: as told, or told from their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError, suggest
from testifai.support.types import Array, Floats, Record

Kind = Literal["number", "whole", "boolean", "category"]
NUMERIC: tuple[Kind, ...] = ("number", "whole")
DISCRETE: tuple[Kind, ...] = ("boolean", "category")

SAMPLED = 512  # rows that stand for all
_NORMAL_QUARTILES = 1.349  # between the quartiles of a normal distribution lie so many standard deviations


@dataclass(frozen=True)
class Column:
    """One column. `values` are what the numbers 0, 1, … of a boolean column or of one of categories stand for."""

    name: str
    kind: Kind = "number"
    values: tuple[Any, ...] = ()
    spread: float = 0.0

    def word(self, number: float) -> str:
        """What a number of it stands for.

        >>> Column("sex", "category", ("f", "m")).word(1.0), Column("age").word(41.5), Column("age").word(np.nan)
        ('m', '41.5', 'missing')
        """
        if np.isnan(number):
            return "missing"
        return str(self.values[int(number)]) if self.values else f"{number:.6g}"


@dataclass(frozen=True, eq=False)
class Table:
    """The columns of a table, in order. `missing` is what a model is handed for a missing value; None: NaN.

    >>> table = learn([Column("age"), Column("sex", "category", ("f", "m"))], np.array([[30, 0], [40, 1], [50, 1.0]]))
    >>> table.names, table.places(["sex"]).tolist()
    (('age', 'sex'), [1])
    """

    columns: tuple[Column, ...]
    sample: Floats
    missing: float | str | None = None

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def places(self, names: Iterable[str]) -> NDArray[np.intp]:
        """Where the columns of these names are, or an InputError."""
        known = {name: place for place, name in enumerate(self.names)}
        wanted = list(names)
        for name in wanted:
            if name not in known:
                raise InputError(f"columns: the data have no column {name!r}; {suggest(name, known)}")
        return np.array([known[name] for name in wanted], dtype=np.intp)

    def identity(self) -> str:
        """All that tells it from another with the same numbers."""
        told = [(column.name, column.kind, [repr(value) for value in column.values]) for column in self.columns]
        return repr((told, self.missing))


def learn(columns: Sequence[Column], rows: Floats, missing: float | str | None = None) -> Table:
    """A table of these columns with what its rows say about them: the spread of each, and rows that stand for all.

    The spread is a standard deviation that a few wild values do not change: from the quartiles, where these differ.
    """
    numbers = np.asarray(rows, np.float64)
    spreads = [spread(numbers[:, place]) if column.kind in NUMERIC else 0.0 for place, column in enumerate(columns)]
    chosen = np.unique(np.linspace(0, len(numbers) - 1, min(len(numbers), SAMPLED)).astype(np.intp))
    told = tuple(
        Column(column.name, column.kind, column.values, spread) for column, spread in zip(columns, spreads, strict=True)
    )
    return Table(told, numbers[chosen], missing)


def unnamed(rows: Array) -> Table:
    """What an array of numbers says of itself: columns x0, x1, …, whole or not, or of nothing but 0 and 1.

    >>> [column.kind for column in unnamed(np.array([[0.5, 3, 1], [1.5, 4, 0]])).columns]
    ['number', 'whole', 'boolean']
    """
    numbers = np.asarray(rows, np.float64)
    return learn([numeric(f"x{place}", numbers[:, place]) for place in range(numbers.shape[1])], numbers)


def numeric(name: str, numbers: Floats) -> Column:
    """A column of numbers by what it holds."""
    there = numbers[~np.isnan(numbers)]
    if len(there) and bool(np.isin(there, (0, 1)).all()):
        return Column(name, "boolean", (0, 1))
    return Column(name, "whole" if len(there) and bool((there == np.floor(there)).all()) else "number")


def spread(numbers: Floats) -> float:
    """How far numbers spread: their standard deviation as the quartiles tell it, where these differ."""
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
# Pairs of columns that go together and are not named alike but for a last 1 and 2, or a and b.
PAIRS = (("premise", "hypothesis"), ("question", "sentence"), ("question", "passage"), ("query", "passage"))
ENDINGS = (("1", "2"), ("_a", "_b"))
# A first line that is no name is a text: the file has no line of names.
_NAME = re.compile(r"\w[\w.-]*( [\w.-]+){0,2}")


@dataclass(frozen=True)
class Columns:
    """The columns to read: one of texts, or two for pairs; and that of the labels, where there is one."""

    text: tuple[str, ...]
    label: str | None


def choose(names: Sequence[str], text: str | Sequence[str] | None, label: str | None, file: str) -> Columns:
    """The columns meant; an InputError that says which there are, where that cannot be told.

    >>> choose(["id", "question1", "question2", "is_duplicate"], None, None, "pairs.csv")
    Columns(text=('question1', 'question2'), label='is_duplicate')
    """
    given = _given(text)
    for field, name in [*(("text", name) for name in given), ("label", label)]:
        if name is not None:
            _check_known(field, name, names, file)
    if label is not None and label in given:
        raise InputError(f"data: {file}: column {label!r} cannot be both text and label")
    chosen = label or _guessed_label(names, given, file)
    return Columns(given or _guessed_text(names, chosen, file), chosen)


def _given(text: str | Sequence[str] | None) -> tuple[str, ...]:
    if text is None:
        return ()
    names = (text,) if isinstance(text, str) else tuple(text)
    if len(names) not in (1, 2) or not all(isinstance(name, str) for name in names):
        raise InputError(f"data: text = {text!r} is not accepted; give one column, or two for pairs of texts")
    return names


def _check_known(field: str, name: str, names: Sequence[str], file: str) -> None:
    if name not in names:
        raise InputError(f"data: {file} has no column {name!r} for {field}; {suggest(name, names)}")
    if list(names).count(name) > 1:
        raise InputError(f"data: {file} has several columns {name!r}; rename all but one of them")


def _guessed_label(names: Sequence[str], taken: Sequence[str], file: str) -> str | None:
    found = [name for name in names if name.lower() in LABELS and name not in taken]
    if len(found) > 1:
        raise _unclear("label", "labels", names, file)
    return found[0] if found else None


def _guessed_text(names: Sequence[str], label: str | None, file: str) -> tuple[str, ...]:
    """The only columns that can be meant: a pair, one of a usual name, or the one that is left."""
    _check_separated(names, file)
    rest = [name for name in names if name != label and not is_number(name)]
    pairs = _pairs(rest)
    texts = [name for name in rest if name.lower() in TEXTS and not any(name in pair for pair in pairs)]
    found: list[tuple[str, ...]] = [*pairs, *((name,) for name in texts)]
    if not found and len(rest) == 1 and _NAME.fullmatch(rest[0]):
        found = [(rest[0],)]
    if len(found) != 1 or any(list(names).count(name) > 1 for name in found[0]):
        raise _unclear("text", "texts", names, file)
    return found[0]


def _check_separated(names: Sequence[str], file: str) -> None:
    """A line of names with another separator looks like one long name."""
    for separator, word in ((";", "semicolons"), ("\t", "tabs"), (",", "commas"), ("|", "bars")):
        if len(names) == 1 and separator in names[0]:
            raise InputError(
                f"data: {file}: its columns seem to be separated by {word}; accepted: commas in a .csv file, "
                "tabs in a .tsv file"
            )


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
    """Whether a column's name is that of a number of the row or of its texts (id, idx, qid1), or none at all."""
    bare = name.lower().rstrip("12")
    return bare in ("", "index", "idx", "id", "guid", "uid", "qid") or bare.endswith("_id")


def _unclear(field: str, what: str, names: Sequence[str], file: str) -> InputError:
    listing = ", ".join(name if len(name) <= 40 else name[:39] + "…" for name in names[:20])
    more = f", … {len(names)} in all" if len(names) > 20 else ""
    return InputError(
        f"data: {file}: which column holds the {what} is not clear; set {field} "
        f"(columns, as the first line names them: {' '.join(listing.split())}{more})"
    )


# What stands for a missing value in files of cells: what pandas takes for one.
MISSING = frozenset({
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
})  # fmt: skip
_TRUTH = {"false": False, "true": True}

Raw = Array | Sequence[Any]  # cells of a file are words; None is a missing value


def read_words(cells: Sequence[str]) -> Raw:
    """Cells of a file as numbers where all of them are, or truth values, or words; those missing are None or NaN.

    >>> read_words(["1", "", "2.5"]).tolist(), list(read_words(["true", "False"])), read_words(["a", "NA"])
    ([1.0, nan, 2.5], [True, False], ['a', None])
    """
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
    """A column and its numbers. `category` makes values of numbers too; `values` are its categories, where known."""
    if isinstance(raw, np.ndarray) and raw.dtype.kind in "iuf":
        return _from_numbers(name, raw.astype(np.float64), category, missing)
    if isinstance(raw, np.ndarray) and raw.dtype.kind in "mM":
        raise InputError(f"data: column {name!r} holds times; make numbers of them, or leave it out of features")
    cells = [None if _is_missing(cell, missing) else cell for cell in _listed(raw)]
    there = [cell for cell in cells if cell is not None]
    if values is None and all(isinstance(cell, bool) for cell in there):
        return Column(name, "boolean", (False, True)), _floats(cells)
    if values is None and all(isinstance(cell, bool | int | float) for cell in there):
        return _from_numbers(name, _floats(cells), category, missing)
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
    """None, NaN, what pandas has instead of them, or what the user says stands for a missing value."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return (isinstance(cell, float) and cell != cell) or (isinstance(cell, str) and cell == missing)


def _listed(raw: Raw) -> Sequence[Any]:
    cells: Sequence[Any] = raw.tolist() if isinstance(raw, np.ndarray) else raw
    return cells


def _floats(cells: Sequence[Any]) -> Floats:
    return np.array([np.nan if cell is None else float(cell) for cell in cells])


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return "_" not in word
