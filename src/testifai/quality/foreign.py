"""Measures from elsewhere: any object with describe() and reference()."""

from __future__ import annotations

from typing import Any

from testifai.models.base import Model
from testifai.quality.base import Measure, Reference
from testifai.quality.per_input import SAMPLE
from testifai.support.batches import Batch


def adapt(measure: Any) -> Measure | None:
    """A measure as it is, another object with its methods by way of an adapter; None for anything else."""
    if isinstance(measure, Measure):
        return measure
    fits = hasattr(measure, "reference") and hasattr(measure, "describe") and not isinstance(measure, type)
    return ForeignMeasure(measure) if fits else None


class ForeignMeasure(Measure):
    """An object with describe() and reference(), and with whatever else of a measure it has; the rest is as usual."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.name = str(getattr(given, "name", type(given).__name__))
        self.higher_is_better = bool(getattr(given, "higher_is_better", True))
        self.sample = int(getattr(given, "sample", SAMPLE))
        self.uses_model = bool(getattr(given, "uses_model", False))
        self.share = float(getattr(given, "share", 1.0))
        self.clean_share = float(getattr(given, "clean_share", 1.0))

    def describe(self) -> dict[str, Any]:
        described: dict[str, Any] = self.given.describe()
        return described

    def reference(self, clean: Batch, model: Model | None, *, seed: int) -> Reference:
        made: Reference = self.given.reference(clean, model, seed=seed)
        return made
