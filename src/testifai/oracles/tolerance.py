"""The oracle `tolerance`: numbers near to those on the clean input, or to the truth."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from testifai.errors import InputError
from testifai.oracles.base import Oracle, Outcome
from testifai.support.types import Array, Record
from testifai.support.validation import choice, flag, number

Against = Literal["clean", "truth"]
_NEEDED = {"clean": "the outputs on clean inputs", "truth": "the true values"}


class Tolerance(Oracle):
    """Numeric output within `eps` of the clean one, or of the true value, in every column.

    With `relative`, eps is a share of the number it is compared with. The value is the largest distance or, with
    `scale`, the distance at which an output is worth nothing, the score "closeness": max(0, 1 - distance / scale).
    """

    name = "tolerance"
    device = "testifai.oracles.tensors:tolerance"

    def __init__(
        self, eps: float, against: Against = "clean", relative: bool = False, scale: float | None = None
    ) -> None:
        self.eps = number("oracle tolerance: eps", eps, least=0)
        self.against: Against = choice("oracle tolerance: against", against, get_args(Against))
        self.relative = flag("oracle tolerance: relative", relative)
        self.scale = None if scale is None else number("oracle tolerance: scale", scale, above=0)
        self.score = None if scale is None else "closeness"
        self.needs_clean = against == "clean"
        self.needs_labels = against == "truth"

    def judge(self, outputs: Array, expected: Array | None, clean: Array | None) -> Outcome:
        wanted = clean if self.against == "clean" else expected
        if wanted is None:
            raise InputError(f"oracle tolerance: needs {_NEEDED[self.against]}")
        near = wanted.astype(np.float64).reshape(len(outputs), -1)
        distance = np.abs(outputs.astype(np.float64).reshape(len(outputs), -1) - near)
        allowed = self.eps * np.abs(near) if self.relative else self.eps
        near_enough = np.asarray(distance <= allowed).all(axis=1)
        farthest = distance.max(axis=1)
        value = farthest if self.scale is None else np.maximum(1 - farthest / self.scale, 0)
        return Outcome(np.asarray(near_enough), value.astype(np.float32))

    def check(self, labels: Array | None, classes: int | None) -> None:
        if self.against == "clean":
            return
        if labels is None:
            raise InputError("oracle tolerance: against = 'truth' needs true values, and the data have none")
        if labels.ndim != 1:
            raise InputError(
                "oracle tolerance: against = 'truth' needs one true value per input; the data have several"
            )
        if classes is not None and classes > 1:
            raise InputError(f"oracle tolerance: the model gives {classes} numbers; one true value per input is known")

    def describe(self) -> Record:
        defaults = {"against": "clean", "relative": False, "scale": None}
        told = {
            option: getattr(self, option) for option, default in defaults.items() if getattr(self, option) != default
        }
        return {"use": self.name, "eps": self.eps, **told}
