"""A table to try perturbations on: every kind of column, numbers that spread by about 1, and some values missing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.perturb import Perturbation, Rng, Rows
from testifai.support.tables import Column, Table, learn


def example_table(count: int = 400, seed: int = 0) -> tuple[NDArray[np.float64], Table]:
    """Rows, and what is known of their columns.

    Args:
        count: how many rows
        seed: of all that is drawn

    >>> rows, table = example_table(5)
    >>> rows.shape, table.names
    ((5, 5), ('level', 'amount', 'count', 'member', 'city'))
    """
    rng = np.random.default_rng(seed)
    columns = [
        Column("level"),
        Column("amount"),
        Column("count", "whole"),
        Column("member", "boolean", (False, True)),
        Column("city", "category", ("Bonn", "Köln", "Ulm")),
    ]
    numbers = rng.normal(size=(512, 5))
    numbers[:, 1] += 5
    numbers[:, 2] = rng.integers(0, 6, 512)
    numbers[:, 3] = rng.integers(0, 2, 512)
    numbers[:, 4] = rng.integers(0, 3, 512)
    numbers[1, 1] = numbers[2, 4] = np.nan
    return numbers[:count].copy(), learn(columns, numbers)


def with_columns(perturbation: Perturbation, table: Table) -> Perturbation:
    """The same perturbation of arrays whose columns are known to be these."""

    def function(batch: Any, parameter: Any, rng: Rng) -> Any:
        made = perturbation.function(Rows(batch, table, perturbation.columns), parameter, rng)
        return made.values if isinstance(made, Rows) else made

    return replace(perturbation, function=function, table=False, columns=None)
