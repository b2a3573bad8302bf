"""Rows of a table with columns by name: the argument of a perturbation's function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.data.table_columns import Column, Kind, Table
from testifai.errors import InputError
from testifai.support.types import Array, Floats


class Rows:
    """Rows of a table as numbers: `rows["age"]` is a column, `rows.replaced({"age": …})` are rows with another.

    Categories are positions among the values of their column (`rows.column("sex").values`), missing values are NaN.
    `chosen` are the columns that the perturbation should change.

    >>> from testifai.data.table_columns import Column, learn
    >>> values = np.array([[30.0, 0.0], [40.0, 1.0], [50.0, 1.0]])
    >>> rows = Rows(values, learn([Column("age", "whole"), Column("sex", "category", ("f", "m"))], values))
    >>> rows.replaced({"age": rows["age"] + 0.6})["age"].tolist()
    [31.0, 41.0, 51.0]
    """

    def __init__(self, values: Array, table: Table, columns: Sequence[str] | None = None) -> None:
        self.values: Floats = np.asarray(values, np.float64)
        self.table = table
        self.chosen = table.names if columns is None else tuple(columns)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, name: str) -> Floats:
        return np.array(self.values[:, self.table.places([name])[0]])

    def column(self, name: str) -> Column:
        """Return the properties of a column."""
        return self.table.columns[int(self.table.places([name])[0])]

    def replaced(self, columns: Mapping[str, ArrayLike]) -> Rows:
        """Return the same rows with other values in these columns; columns of integers are rounded."""
        places = self.table.places(columns)
        return self.put(places, np.stack([np.asarray(one, np.float64) for one in columns.values()], axis=1))

    def of_kind(self, kinds: Sequence[Kind]) -> Block:
        """The chosen columns of some kinds, or an InputError if there is none."""
        places = [place for place in self.table.places(self.chosen) if self.table.columns[place].kind in kinds]
        if not places:
            held = ", ".join(f"{name} ({self.column(name).kind})" for name in self.chosen[:8])
            raise InputError(f"columns: none of {held} is of kind {' or '.join(kinds)}; choose others")
        columns = [self.table.columns[place] for place in places]
        return Block(
            np.array(places, dtype=np.intp),
            self.values[:, places],
            self.table.sample[:, places],
            np.array([column.spread for column in columns]),
            np.array([len(column.values) for column in columns]),
        )

    def put(self, places: NDArray[np.intp], columns: Floats) -> Rows:
        """The same rows with other values in the columns at these positions, rounded unless they are real numbers."""
        made = self.values.copy()
        whole = [self.table.columns[place].kind != "number" for place in places]
        made[:, places] = np.where(whole, np.rint(columns), columns)
        return Rows(made, self.table, self.chosen)


class Block(NamedTuple):
    """Columns of rows as one array (rows × columns), and their properties."""

    places: NDArray[np.intp]
    values: Floats
    sample: Floats  # of all rows of the table
    spread: Floats
    counts: NDArray[np.int64]  # of the values that each column can have

    @property
    def width(self) -> int:
        return len(self.places)
