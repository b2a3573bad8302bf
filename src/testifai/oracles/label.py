"""The oracle `label`: the expected class, or the expected set of classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from testifai.data.annotations import are_boxes
from testifai.data.labels import MOST_CLASSES
from testifai.errors import InputError
from testifai.oracles.base import TensorOracle
from testifai.oracles.classes import margin, namespace, predicted
from testifai.support.types import Array, Bools, Floats
from testifai.support.validation import number


class Label(TensorOracle):
    """Correct label. With several labels per input: the same set, or an F1 of at least `f1`.

    With one label the value is the margin. With several it is F1 (1 if neither side has a label), and a class counts
    as predicted if its score is at least `threshold`.
    """

    name = "label"
    needs_labels = True
    decides_classes = True
    tensors = True
    _described = ("threshold", "f1")

    def __init__(self, threshold: float = 0.5, f1: float | None = None) -> None:
        self.threshold = number("oracle label: threshold", threshold)
        self.f1 = None if f1 is None else number("oracle label: f1", f1, above=0, most=1)

    def wanted(self, expected: Array | None, clean: Array | None) -> Array:
        if expected is None:
            raise InputError("oracle label: needs labels, and the data have none")
        return expected

    def passes(self, outputs: Array, wanted: Array) -> Bools:
        if wanted.ndim == 1:
            same: Bools = predicted(outputs) == wanted
            return same
        exact, f1 = self._sets(outputs, wanted)
        return exact if self.f1 is None else f1 >= self.f1

    def value(self, outputs: Array, wanted: Array) -> NDArray[np.float32] | None:
        if wanted.ndim == 1:
            return margin(outputs, wanted)
        xp = namespace(outputs)
        f1: NDArray[np.float32] = xp.asarray(self._sets(outputs, wanted)[1], dtype=xp.float32)
        return f1

    def _sets(self, outputs: Array, expected: Array) -> tuple[Bools, Floats]:
        if outputs.ndim != 2:
            raise InputError("oracle label: the data have several labels per input, the model returns one label")
        xp = namespace(outputs)
        given = outputs >= self.threshold
        wanted = xp.zeros_like(given)
        wanted[:, : expected.shape[1]] = expected != 0
        common = xp.asarray((given & wanted).sum(1), dtype=xp.float64)
        total = given.sum(1) + wanted.sum(1)
        return (given == wanted).all(1), xp.where(total == 0, 1.0, 2.0 * common / xp.clip(total, 1, None))

    def check(self, labels: Array | None, classes: int | None) -> None:
        if labels is None:
            raise InputError("oracle label: needs labels, and the data have none; the oracle consistency needs none")
        if labels.ndim == 2:
            if classes is not None and labels.shape[1] > classes:
                raise InputError(f"labels: have {labels.shape[1]} columns; the model has {classes} classes")
            return
        if are_boxes(labels):
            raise InputError("labels: are boxes; the oracle detection judges those")
        if labels.dtype.kind not in "iub":
            raise InputError(f"labels: dtype {labels.dtype} is not accepted by the oracle label; class numbers are")
        if classes == 1:
            raise InputError(
                "oracle label: the model has one output column; labels (N,) or at least two scores are needed"
            )
        outside = (labels < 0) | (labels >= (classes or MOST_CLASSES))
        if outside.any():
            row = int(np.argmax(outside))
            limit = f"0 … {(classes or MOST_CLASSES) - 1}" + ("" if classes is None else ", the classes of the model")
            raise InputError(
                f"labels: {labels[row]} (input {row}; {int(outside.sum())} of {len(labels)} labels) cannot "
                f"be produced by the model; accepted: {limit}"
            )


class Consistency(TensorOracle):
    """Passes if the label is that of the clean input; with `threshold`, if the whole set of labels is."""

    name = "consistency"
    needs_clean = True
    decides_classes = True
    tensors = True
    _described = ("threshold",)

    def __init__(self, threshold: float | None = None) -> None:
        self.threshold = None if threshold is None else number("oracle consistency: threshold", threshold)

    def reference(self, outputs: Array) -> Array:
        return predicted(outputs) if self.threshold is None else outputs >= self.threshold

    def wanted(self, expected: Array | None, clean: Array | None) -> Array:
        if clean is None:
            raise InputError("oracle consistency: needs the outputs on clean inputs")
        return clean

    def passes(self, outputs: Array, wanted: Array) -> Bools:
        same: Bools = (self.reference(outputs) == wanted).reshape(len(outputs), -1).all(1)
        return same

    def value(self, outputs: Array, wanted: Array) -> NDArray[np.float32] | None:
        return margin(outputs, wanted) if self.threshold is None else None
