"""The oracle `tolerance`: numbers near to those on the clean input."""

from __future__ import annotations

from typing import Any

import numpy as np

from testifai.errors import InputError
from testifai.oracles.base import Array, Oracle, Outcome
from testifai.support.checks import number


class Tolerance(Oracle):
    """Numeric output within `eps` of the clean one, in every column; the value is the largest distance."""

    name = "tolerance"
    needs_clean = True

    def __init__(self, eps: float) -> None:
        self.eps = number("oracle tolerance: eps", eps, least=0)

    def judge(self, outputs: Array, expected: Array | None, clean: Array | None) -> Outcome:
        if clean is None:
            raise InputError("oracle tolerance: needs the outputs on clean inputs")
        distance = np.abs(outputs.astype(np.float64) - clean.astype(np.float64))
        farthest = distance.reshape(len(distance), -1).max(axis=1)
        return Outcome(farthest <= self.eps, farthest.astype(np.float32))

    def describe(self) -> dict[str, Any]:
        return {"use": self.name, "eps": self.eps}
