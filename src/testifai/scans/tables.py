"""Whether perturbations, columns and model of a run on a table fit together, seen before it begins."""

from __future__ import annotations

import numpy as np

from testifai.data import Data
from testifai.engine.inference import call
from testifai.models import Model
from testifai.space import Space

PROBED = 8  # inputs on which a model is asked about missing values
MISSING = "tabular.missing"


def check_tables(model: Model, data: Data, space: Space, seed: int) -> None:
    """Refuse perturbations of columns that are not there or of another kind, and holes where the model takes none."""
    for axis in space.axes:
        chosen = axis.perturbation
        if not chosen.table:
            continue
        chosen.check_table(data.table)
        few = np.arange(min(PROBED, len(data)))
        changed = chosen.apply(
            np.asarray(data.inputs[few]), max(axis.severities), seed=seed, indices=few, table=data.table
        )
        if chosen.name == MISSING:
            call(model, changed, f"{axis.name}, to see whether it takes missing values")
