"""Mean absolute and squared errors of a model that predicts numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from testifai.runs import keys
from testifai.support.types import Record

if TYPE_CHECKING:
    from testifai.tomogram.tomogram import Tomogram


@dataclass(frozen=True)
class Distance:
    absolute: float
    squared: float
    tests: int

    def __str__(self) -> str:
        return f"mean absolute error {self.absolute:.4g}, root mean squared error {self.squared**0.5:.4g}"

    def as_dict(self) -> Record:
        return {"mean_absolute_error": self.absolute, "mean_squared_error": self.squared, "tests": self.tests}


def distance(tomogram: Tomogram, expression: str) -> Distance | None:
    oracle = (tomogram.provenance.get(keys.IDENTITY) or {}).get("oracle")
    outcomes, ids = tomogram.outcomes, tomogram.estimator.measured_ids
    named = oracle if isinstance(oracle, dict) else {}
    of_distances = named.get("against") == "truth" and "scale" not in named  # with a scale, values are a score
    if not of_distances or "value" not in outcomes.kept_names():
        return None
    chosen = ids[tomogram.query_engine.sample(expression).contains(ids)]
    off = [outcomes.single(np.array([test]), name="value").value for test in chosen.tolist()]
    known = [own[np.isfinite(own)].astype(np.float64) for own in off if own is not None]
    means = np.array([(own.mean(), (own**2).mean()) for own in known if len(own)])
    if not len(means):
        return None
    absolute, squared = means.mean(axis=0).tolist()
    return Distance(absolute, squared, len(means))


def distances(tomogram: Tomogram) -> dict[str, Distance]:
    """Return the errors on clean inputs and over all measured perturbed tests, as far as they are known."""
    if not len(tomogram.outcomes):
        return {}
    found = {"clean": distance(tomogram, "order == 0"), "perturbed": distance(tomogram, "order > 0")}
    return {name: one for name, one in found.items() if one is not None}
