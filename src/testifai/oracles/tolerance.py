"""The oracle `tolerance`: numbers near to those on the clean input."""

from __future__ import annotations

from typing import Any

import numpy as np

from testifai.errors import InputError
from testifai.oracles.base import Array, Oracle, Outcome
from testifai.support.checks import number


class Tolerance(Oracle):
    """Numeric output within `eps` of the clean one, in every column; the value is the largest distance.

    With `scale`, the distance at which an output is worth nothing, the value is the score "closeness": 1 less the
    distance over the scale, or 0 beyond it.
    """

    name = "tolerance"
    needs_clean = True

    def __init__(self, eps: float, scale: float | None = None) -> None:
        self.eps = number("oracle tolerance: eps", eps, least=0)
        self.scale = None if scale is None else number("oracle tolerance: scale", scale, above=0)
        self.score = None if scale is None else "closeness"

    def judge(self, outputs: Array, expected: Array | None, clean: Array | None) -> Outcome:
        if clean is None:
            raise InputError("oracle tolerance: needs the outputs on clean inputs")
        distance = np.abs(outputs.astype(np.float64) - clean.astype(np.float64))
        farthest = distance.reshape(len(distance), -1).max(axis=1)
        value = farthest if self.scale is None else np.maximum(1 - farthest / self.scale, 0)
        return Outcome(farthest <= self.eps, value.astype(np.float32))

    def describe(self) -> dict[str, Any]:
        described: dict[str, Any] = {"use": self.name, "eps": self.eps}
        return described if self.scale is None else {**described, "scale": self.scale}
