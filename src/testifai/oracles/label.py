"""The oracle `label`: the expected class, or the expected set of classes."""

from __future__ import annotations

import numpy as np

from testifai.data.annotations import are_boxes
from testifai.errors import InputError
from testifai.oracles.base import Oracle, Outcome
from testifai.oracles.classes import margin, predicted
from testifai.support.types import Array
from testifai.support.validation import number


class Label(Oracle):
    """Correct label. With several labels per input: the same set, or an F1 of at least `f1`.

    With one label the value is the margin. With several it is F1 (1 if neither side has a label), and a class counts
    as predicted if its score is at least `threshold`.
    """

    name = "label"
    needs_labels = True
    decides_classes = True
    device = "testifai.oracles.tensors:label"
    _described = ("threshold", "f1")

    def __init__(self, threshold: float = 0.5, f1: float | None = None) -> None:
        self.threshold = number("oracle label: threshold", threshold)
        self.f1 = None if f1 is None else number("oracle label: f1", f1, above=0, most=1)

    def judge(self, outputs: Array, expected: Array | None, clean: Array | None) -> Outcome:
        if expected is None:
            raise InputError("oracle label: needs labels, and the data have none")
        if expected.ndim == 2:
            return self._judge_sets(outputs, expected)
        labels = expected.astype(np.int64, copy=False)
        return Outcome(predicted(outputs) == labels, margin(outputs, labels))

    def _judge_sets(self, outputs: Array, expected: Array) -> Outcome:
        if outputs.ndim != 2:
            raise InputError("oracle label: the data have several labels per input, the model returns one label")
        given = outputs >= self.threshold
        wanted = np.zeros(given.shape, dtype=bool)
        wanted[:, : expected.shape[1]] = expected != 0
        common = (given & wanted).sum(axis=1)
        total = given.sum(axis=1) + wanted.sum(axis=1)
        score = np.where(total == 0, 1.0, 2.0 * common / np.maximum(total, 1))
        passed = (given == wanted).all(axis=1) if self.f1 is None else score >= self.f1
        return Outcome(passed, score.astype(np.float32))

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
        outside = (labels < 0) | (labels >= (classes if classes is not None else np.inf))
        if outside.any():
            row = int(np.argmax(outside))
            limit = "from 0" if classes is None else f"0 … {classes - 1}, the classes of the model"
            raise InputError(
                f"labels: {labels[row]} (input {row}; {int(outside.sum())} of {len(labels)} labels) cannot "
                f"be produced by the model; accepted: {limit}"
            )


class Consistency(Oracle):
    """Passes if the label is that of the clean input; with `threshold`, if the whole set of labels is."""

    name = "consistency"
    needs_clean = True
    decides_classes = True
    device = "testifai.oracles.tensors:consistency"
    _described = ("threshold",)

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
