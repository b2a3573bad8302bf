"""The columns of a table as a model takes them: by name, in its order, with their values."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from testifai.data.table_columns import Column, Table
from testifai.errors import InputError
from testifai.models.base import Model
from testifai.support import optional_imports
from testifai.support.types import Array, Floats

MOST_NAMED = 5


@dataclass(frozen=True)
class Feed:
    """The columns that a model takes of a table, in its order; as a pandas DataFrame if it has names for them."""

    table: Table
    places: NDArray[np.intp]
    names: tuple[str, ...] | None = None  # as the model spells them; None: it gets an array
    categorical: bool = False  # a DataFrame has pandas' categories, not plain objects

    def __call__(self, batch: Array) -> Any:
        columns = [(self.table.columns[place], np.asarray(batch[:, place], np.float64)) for place in self.places]
        if self.names is not None:
            pandas = optional_imports.load("pandas", extra="pandas")
            series = [self._series(pandas, column, codes) for column, codes in columns]
            return pandas.DataFrame(dict(zip(self.names, series, strict=True)))
        made = [_valued(column, codes, self.table.missing) for column, codes in columns]
        dtype = np.float64 if all(one.dtype.kind in "biuf" for one in made) else object
        return np.stack([one.astype(dtype) for one in made], axis=1)

    def _series(self, pandas: Any, column: Column, codes: Floats) -> Any:
        if self.categorical and column.kind == "category":
            places = np.where(np.isnan(codes), -1, codes).astype(np.intp)
            return pandas.Categorical.from_codes(places, categories=list(column.values))
        return pandas.Series(_valued(column, codes, self.table.missing))


class TableModel(Model):
    """A model that can take the columns of a table by name, in its own order and with their values."""

    columns: tuple[str, ...] | None = None  # names of the columns it was fitted on
    width: int | None = None  # number of columns it was fitted on
    categorical: bool = False  # takes pandas' categories
    _feed: Feed | None = None

    def reading(self, table: Table) -> Self:
        made = copy.copy(self)
        made._feed = feed(table, self.name, self.columns, self.width, categorical=self.categorical)
        return made


def feed(
    table: Table, model: str, names: Sequence[str] | None, width: int | None = None, *, categorical: bool = False
) -> Feed:
    """Return the columns of a table for a model with these names or number of columns; InputError if they differ."""
    if names is not None:
        known = {name: place for place, name in enumerate(table.names)}
        # LightGBM writes names with _ where they have spaces.
        spelled = {name.replace(" ", "_"): place for name, place in known.items()}
        absent = [name for name in names if name not in known and name not in spelled]
        if absent:
            raise InputError(
                f"model: {model} takes columns that the data do not have: {_listing(absent)}; "
                f"the data have {_listing(table.names)}"
            )
        places = [known.get(name, spelled.get(name, 0)) for name in names]
        # Without pandas, numbers at least can be passed in the model's order.
        framed = find_spec("pandas") is not None or any(table.columns[place].kind == "category" for place in places)
        return Feed(table, np.array(places, np.intp), tuple(names) if framed else None, categorical)
    if width is not None and width != len(table.columns):
        raise InputError(
            f"model: {model} takes {width} columns, and the data have {len(table.columns)} ({_listing(table.names)}); "
            "name those it was fitted on with features = [...] under [data], in order"
        )
    return Feed(table, np.arange(len(table.columns)))


def _valued(column: Column, codes: Floats, missing: float | str | None) -> Array:
    """Return the values that the codes of a column represent, integers if possible, missing ones as marked."""
    absent = np.isnan(codes)
    filler: Any = missing if _fits(missing, column) else np.nan
    if column.values:
        words = np.array([*column.values, filler], dtype=object)
        made = words[np.where(absent, len(column.values), codes).astype(np.intp)]
        # By the column's values, not by those of this batch: words that are all missing are no numbers.
        kinds = {type(value) for value in (words if absent.any() else column.values)}
        if kinds == {int, float}:
            return made.astype(float)
        return made.astype(kinds.pop()) if len(kinds) == 1 and kinds <= {bool, int, float} else made
    numbers = np.where(absent, filler, codes).astype(np.float64)
    return numbers if column.kind == "number" or np.isnan(numbers).any() else numbers.astype(np.int64)


def _fits(missing: float | str | None, column: Column) -> bool:
    words = any(isinstance(value, str) for value in column.values)
    return missing is not None and isinstance(missing, str) == words


def _listing(names: Sequence[str]) -> str:
    more = f", … {len(names)} in all" if len(names) > MOST_NAMED else ""
    return ", ".join(map(repr, names[:MOST_NAMED])) + more
