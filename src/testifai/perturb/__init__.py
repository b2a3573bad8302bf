"""Perturbations: label-preserving changes of inputs, by name or made by the user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from numpy.typing import ArrayLike

from testifai.data.table_columns import Table
from testifai.errors import InputError
from testifai.perturb.base import Perturbation
from testifai.perturb.registry import describe, get, main_names, names, perturbation, rebuild, resolve
from testifai.perturb.rng import Rng
from testifai.perturb.table_rows import Rows
from testifai.perturb.validation import check_batch
from testifai.support.batches import Batch, Side

__all__ = [
    "Perturbation",
    "Rng",
    "Rows",
    "apply",
    "describe",
    "get",
    "main_names",
    "names",
    "perturbation",
    "rebuild",
    "resolve",
]


def apply(
    composite: Mapping[str | Perturbation, int],
    batch: Batch,
    seed: int = 0,
    indices: ArrayLike | None = None,
    *,
    side: Side = "both",
    table: Table | None = None,
) -> Batch:
    """A composite of perturbations, in the order given, on a batch; the batch handed in stays as it is.

    Args:
        composite: severities by perturbation, in the order of application
        batch: inputs; stays as it is
        seed: of all that is drawn
        indices: the inputs' numbers in the data set, which random draws follow; None: 0, 1, 2, …
        side: which texts are changed where inputs are pairs: 'first', 'second' or 'both', with draws of their own
        table: what the columns are where inputs are rows of a table, as `testifai.data.wrap(…).table` says

    >>> import numpy as np
    >>> images = np.zeros((2, 28, 28), np.uint8)
    >>> apply({"mnist_c.zoom": 3, "mnist_c.brightness": 2}, images).max().item()
    51
    """
    if not isinstance(composite, Mapping):
        raise InputError(f"composite: {composite!r} is not accepted; give {{perturbation: severity, …}}")
    check_batch(batch)
    # Everything is looked up before anything is applied: a mistake in the last name costs nothing.
    steps = [(resolve(given), severity) for given, severity in composite.items()]
    for step, severity in steps:
        step.check_severity(severity)
    uses: Counter[str] = Counter()
    for step, severity in steps:
        batch = step.apply(
            batch, severity, seed=seed, indices=indices, occurrence=uses[step.name], side=side, table=table
        )
        uses[step.name] += 1
    return batch
