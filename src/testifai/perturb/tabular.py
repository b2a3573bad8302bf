"""Tables: faults of sensors, forms and pipelines, in units of each column's spread.

A column's spread and its values are learned from the data. `columns` chooses columns by name; the default is all of a
fitting kind. Columns of integers are rounded; missing values stay missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from testifai.data.table_columns import DISCRETE, NUMERIC, Kind
from testifai.perturb.base import Parameter, Perturbation
from testifai.perturb.registry import perturbation
from testifai.perturb.rng import Rng
from testifai.perturb.table_rows import Block, Rows
from testifai.support.types import Bools, Floats

# A formula is f(block, parameter, rng) -> the block's values, changed.
Formula = Callable[[Block, Parameter, Rng], Floats]
SHARES = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5)


def _tabular(
    name: str,
    severities: Sequence[float],
    kinds: Sequence[Kind] = NUMERIC,
    *,
    levels: tuple[float, float] | None = None,
) -> Callable[[Formula], Perturbation]:
    def register(formula: Formula) -> Perturbation:
        def function(rows: Rows, parameter: Parameter, rng: Rng) -> Rows:
            block = rows.of_kind(kinds)
            return rows.put(block.places, formula(block, parameter, rng))

        function.__doc__, function.__qualname__ = formula.__doc__, formula.__qualname__
        return perturbation(f"tabular.{name}", severities, levels=levels, table=True)(function)

    return register


@_tabular("noise", (0.0, 0.1, 0.2, 0.4, 0.7, 1.0), levels=(0.0, 2.0))
def noise(block: Block, size: float, rng: Rng) -> Floats:
    """Numbers are off by normal errors; the parameter is their standard deviation, in spreads."""
    return block.values + size * block.spread * rng.normal(block.width)


@_tabular("drift", (0.0, 0.2, 0.4, 0.7, 1.0, 1.5), levels=(0.0, 3.0))
def drift(block: Block, size: float, rng: Rng) -> Floats:
    """Numbers are all too high, as from a sensor that has drifted; the parameter is by how many spreads."""
    return block.values + size * block.spread


@_tabular("unit", (0, 1, 2, 3))
def unit(block: Block, power: int, rng: Rng) -> Floats:
    """One number of each input is in a wrong unit: 10 to the power of the parameter times too large or too small."""
    factor = np.where(rng.uniform() < 0.5, 10.0**power, 10.0**-power)
    return np.where(_one(block, rng), block.values * factor[:, None], block.values)


@_tabular("rounding", (0.0, 0.25, 0.5, 1.0, 1.5, 2.0), levels=(0.0, 3.0))
def rounding(block: Block, size: float, rng: Rng) -> Floats:
    """Numbers are rounded to multiples of a step; the parameter is the step, in spreads."""
    step = size * block.spread
    return np.where(step > 0, np.rint(block.values / np.where(step > 0, step, 1)) * step, block.values)


@_tabular("missing", SHARES, (*NUMERIC, *DISCRETE), levels=(0.0, 1.0))
def missing(block: Block, share: float, rng: Rng) -> Floats:
    """Values are missing: NaN, or what the data say stands for it; the parameter is the share of them."""
    return np.where(rng.uniform(block.width) < share, np.nan, block.values)


@_tabular("outlier", (0.0, 2.0, 4.0, 7.0, 12.0, 20.0), levels=(0.0, 30.0))
def outlier(block: Block, size: float, rng: Rng) -> Floats:
    """One number of each input is far off, up or down; the parameter is by how many spreads."""
    away = np.where(rng.uniform() < 0.5, size, -size)
    return block.values + _one(block, rng) * away[:, None] * block.spread


@_tabular("swap", SHARES, DISCRETE, levels=(0.0, 1.0))
def swap(block: Block, share: float, rng: Rng) -> Floats:
    """Categories and truth values are mistaken for another one of their column; the parameter is the share of them."""
    hit, which = rng.uniform(block.width) < share, rng.uniform(block.width)
    others = np.maximum(block.counts - 1, 0)
    step = np.where(others > 0, 1 + np.floor(which * others), 0)
    other: Floats = np.mod(block.values + step, np.maximum(block.counts, 1))
    return np.where(hit, other, block.values)


@_tabular("stale", SHARES, (*NUMERIC, *DISCRETE), levels=(0.0, 1.0))
def stale(block: Block, share: float, rng: Rng) -> Floats:
    """Values are those of another row, one for each input; the parameter is the share of them."""
    other: Floats = block.sample[rng.integers(0, len(block.sample))]
    return np.where(rng.uniform(block.width) < share, other, block.values)


def _one(block: Block, rng: Rng) -> Bools:
    return np.asarray(np.arange(block.width) == rng.integers(0, block.width)[:, None])
