"""The oracle `consistency`: the decision made on the clean input."""

from __future__ import annotations

from typing import Any

from testifai.errors import InputError
from testifai.oracles.base import Array, Oracle, Outcome
from testifai.oracles.classes import margin, predicted
from testifai.support.checks import number


class Consistency(Oracle):
    """Passes with the label given to the clean input; with `threshold`, with the whole set of labels."""

    name = "consistency"
    needs_clean = True
    decides_classes = True

    def __init__(self, threshold: float | None = None) -> None:
        self.threshold = None if threshold is None else number("oracle consistency: threshold", threshold)

    def reference(self, outputs: Array) -> Array:
        return predicted(outputs) if self.threshold is None else outputs >= self.threshold

    def judge(self, outputs: Array, expected: Array | None, clean: Array | None) -> Outcome:
        if clean is None:
            raise InputError("oracle consistency: needs the outputs on clean inputs")
        if self.threshold is not None:
            same = (outputs >= self.threshold) == clean
            return Outcome(same.reshape(len(same), -1).all(axis=1))
        return Outcome(predicted(outputs) == clean, margin(outputs, clean))

    def describe(self) -> dict[str, Any]:
        return {"use": self.name} if self.threshold is None else {"use": self.name, "threshold": self.threshold}
