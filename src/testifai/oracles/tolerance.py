"""The oracle `tolerance`: numbers near to those on the clean input, or to the truth."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.oracles.base import TensorOracle
from testifai.oracles.classes import namespace
from testifai.support.types import Array, Bools, Floats, Record
from testifai.support.validation import choice, flag, number

Against = Literal["clean", "truth"]
_NEEDED = {"clean": "the outputs on clean inputs", "truth": "the true values"}


class Tolerance(TensorOracle):
    """Numeric output within `eps` of the clean one, or of the true value, in every column.

    With `relative`, eps is a share of the number it is compared with. The value is the largest distance or, with
    `scale`, the distance at which an output is worth nothing, the score "closeness": max(0, 1 - distance / scale).
    """

    name = "tolerance"
    tensors = True

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

    def wanted(self, expected: Array | None, clean: Array | None) -> Array:
        wanted = clean if self.against == "clean" else expected
        if wanted is None:
            raise InputError(f"oracle tolerance: needs {_NEEDED[self.against]}")
        return wanted

    def passes(self, outputs: Array, wanted: Array) -> Bools:
        near, distance = self._distance(outputs, wanted)
        allowed = self.eps * abs(near) if self.relative else self.eps
        near_enough: Bools = namespace(outputs).all(distance <= allowed, 1)
        return near_enough

    def value(self, outputs: Array, wanted: Array) -> NDArray[np.float32]:
        xp = namespace(outputs)
        farthest = xp.amax(self._distance(outputs, wanted)[1], 1)
        score = farthest if self.scale is None else xp.clip(1 - farthest / self.scale, 0, None)
        value: NDArray[np.float32] = xp.asarray(score, dtype=xp.float32)
        return value

    @staticmethod
    def _distance(outputs: Array, wanted: Array) -> tuple[Floats, Floats]:
        xp = namespace(outputs)
        near = xp.asarray(wanted, dtype=xp.float64).reshape(len(outputs), -1)
        return near, abs(xp.asarray(outputs, dtype=xp.float64).reshape(len(outputs), -1) - near)

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
