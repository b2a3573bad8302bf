"""Columns in the forms that files and frames keep them in, turned into numbers and what they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.support.tables import Column, Floats, numeric

# What stands for a missing value in files of cells: what pandas takes for one.
MISSING = frozenset({
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
})  # fmt: skip
_TRUTH = {"false": False, "true": True}

Raw = NDArray[Any] | Sequence[Any]  # cells of a file are words; None is a missing value


def read_words(cells: Sequence[str]) -> Raw:
    """Cells of a file as numbers where all of them are, or truth values, or words; those missing are None or NaN.

    >>> read_words(["1", "", "2.5"]).tolist(), list(read_words(["true", "False"])), read_words(["a", "NA"])
    ([1.0, nan, 2.5], [True, False], ['a', None])
    """
    known: dict[str, Any] = {cell: None if cell.strip() in MISSING else cell.strip() for cell in set(cells)}
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
