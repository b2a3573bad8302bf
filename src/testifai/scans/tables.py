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
    """Refuse perturbations of columns that are not there, and missing values where the model takes none."""
    for axis in space.axes:
        chosen = axis.perturbation
        if not chosen.table:
            continue
        chosen.check_table(data.table)
        if chosen.name == MISSING and not isinstance(data.inputs, list):
            few = np.arange(min(PROBED, len(data)))
            strongest = len(chosen.severities) - 1
            holes = chosen.apply(data.inputs[few], strongest, seed=seed, indices=few, table=data.table)
            call(model, holes, f"{axis.name}, to see whether it takes missing values")
