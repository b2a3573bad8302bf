"""What is known of a table's columns: their names and kinds, how far their values spread, and rows that stand for all.

A table is an array of numbers, rows × columns, whatever its columns hold: a category is the place of its value among
the values of its column, and what is missing is NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError, suggest

Kind = Literal["number", "whole", "boolean", "category"]
NUMERIC: tuple[Kind, ...] = ("number", "whole")
DISCRETE: tuple[Kind, ...] = ("boolean", "category")
Floats = NDArray[np.float64]

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


def unnamed(rows: NDArray[Any]) -> Table:
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
