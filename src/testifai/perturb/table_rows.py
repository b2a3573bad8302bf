"""What the function of a perturbation of tables gets: some rows of a table, with columns by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.data.table_columns import Column, Kind, Table
from testifai.errors import InputError
from testifai.support.types import Array, Floats


class Rows:
    """Rows of a table as numbers: `rows["age"]` is a column, `rows.replaced({"age": …})` are rows with another.

    Categories are places among the values of their column (`rows.column("sex").values`), what is missing is NaN.
    `chosen` are the columns that the perturbation is to change: those it was told, or all.

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
        column: Floats = self.values[:, self.table.places([name])[0]].copy()
        return column

    def column(self, name: str) -> Column:
        """What is known of a column."""
        return self.table.columns[int(self.table.places([name])[0])]

    def replaced(self, columns: Mapping[str, ArrayLike]) -> Rows:
        """The same rows with other values in these columns; those of whole numbers are rounded."""
        places = self.table.places(columns)
        return self._put(places, np.stack([np.asarray(one, np.float64) for one in columns.values()], axis=1))

    def of_kind(self, kinds: Sequence[Kind]) -> Block:
        """The chosen columns of some kinds; an InputError where there is none."""
        places = [place for place in self.table.places(self.chosen) if self.table.columns[place].kind in kinds]
        if not places:
            held = ", ".join(f"{name} ({self.column(name).kind})" for name in self.chosen[:8])
            raise InputError(f"columns: none of {held} is of kind {' or '.join(kinds)}; choose others")
        return Block(self, np.array(places, dtype=np.intp))

    def _put(self, places: NDArray[np.intp], columns: Floats) -> Rows:
        made = self.values.copy()
        whole = [self.table.columns[place].kind != "number" for place in places]
        made[:, places] = np.where(whole, np.rint(columns), columns)
        return Rows(made, self.table, self.chosen)


class Block:
    """Columns of rows as one array (rows × columns), with what is known of each."""

    def __init__(self, rows: Rows, places: NDArray[np.intp]) -> None:
        self._rows, self._places = rows, places
        self.values: Floats = rows.values[:, places]
        self.sample: Floats = rows.table.sample[:, places]

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self._places)

    @cached_property
    def spread(self) -> Floats:
        """Of each column."""
        return np.array([self._rows.table.columns[place].spread for place in self._places])

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Of each column, how many values it can have."""
        return np.array([len(self._rows.table.columns[place].values) for place in self._places])

    def replaced(self, values: Floats) -> Rows:
        """All rows, with these values in the block's columns."""
        return self._rows._put(self._places, values)
