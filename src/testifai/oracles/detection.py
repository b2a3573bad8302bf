"""The oracle `detection`: the boxes that are on an image, or that were found on it when it was clean."""

from __future__ import annotations

import copy
from typing import Any, Literal, get_args

import numpy as np

from testifai.errors import InputError
from testifai.oracles.base import Array, Oracle, Outcome
from testifai.oracles.matching import match
from testifai.support import checks
from testifai.support.boxes import CLASS, CONFIDENCE, NONE, are_boxes, unpack

Against = Literal["labels", "clean"]


class Detection(Oracle):
    """F1 of the boxes found, from a confidence on, against those expected, by class and overlap; at least `f1`.

    Expected are the labelled boxes or, without labels or `against` "clean", those found on the clean image; either
    way where the configuration has moved them.
    """

    name = "detection"
    moves = "boxes"
    score = "f1"

    def __init__(
        self, iou: float = 0.5, confidence: float = 0.25, f1: float = 0.5, against: Against | None = None
    ) -> None:
        self.iou = checks.number("oracle detection: iou", iou, above=0, most=1)
        self.confidence = checks.number("oracle detection: confidence", confidence, least=0, most=1)
        self.f1 = checks.number("oracle detection: f1", f1, above=0, most=1)
        if against is not None:
            checks.choice("oracle detection: against", against, get_args(Against))
        self._expect(against)

    def _expect(self, against: Against | None) -> None:
        self.against = against
        self.needs_labels, self.needs_clean = against == "labels", against == "clean"

    def fitted(self, labels: Array | None) -> Oracle:
        if self.against is not None:
            return self
        made = copy.copy(self)
        made._expect("clean" if labels is None else "labels")
        return made

    def reference(self, outputs: Array) -> Array:
        """The boxes that are sure enough, as expected ones."""
        boxes = _checked(outputs).copy()
        sure = (boxes[..., CLASS] != NONE) & (boxes[..., CONFIDENCE] >= self.confidence)
        boxes[..., CONFIDENCE] = sure
        boxes[~sure, CLASS] = NONE
        return boxes

    def judge(self, outputs: Array, expected: Array | None, clean: Array | None) -> Outcome:
        wanted = expected if self.against == "labels" else clean
        if wanted is None:
            raise InputError("oracle detection: needs boxes to expect: labels, or those found on clean images")
        pairs = zip(unpack(_checked(outputs)), unpack(wanted), strict=True)
        scores = np.array([match(found, there, self.iou, self.confidence).f1 for found, there in pairs], np.float32)
        return Outcome(scores >= np.float32(self.f1), scores)

    def check(self, labels: Array | None, classes: int | None) -> None:
        if not self.needs_labels:
            return
        if labels is None:
            raise InputError("oracle detection: against = 'labels' needs labels, and the data have none; leave it out")
        if not are_boxes(labels):
            raise InputError(
                f"oracle detection: the labels have shape {labels.shape}; boxes are needed: for each image "
                "{'boxes': …, 'labels': …}, or data in COCO's or YOLO's format; or compare with what is found on clean "
                "images: against = 'clean'"
            )
        unknown = np.unique(labels[..., CLASS][labels[..., CLASS] >= (np.inf if classes is None else classes)])
        if len(unknown):
            which = ", ".join(f"{one:g}" for one in unknown[:6])
            raise InputError(
                f"labels: boxes of class {which}{' …' if len(unknown) > 6 else ''} cannot be found by the model; "
                f"accepted: 0 … {(classes or 0) - 1}, its classes"
            )

    def describe(self) -> dict[str, Any]:
        described: dict[str, Any] = {
            "use": self.name, "iou": self.iou, "confidence": self.confidence, "f1": self.f1
        }  # fmt: skip
        return described if self.against is None else {**described, "against": self.against}


def _checked(outputs: Array) -> Array:
    if not are_boxes(outputs):
        raise InputError(
            f"oracle detection: the model returned outputs of shape {outputs.shape}; boxes are needed: for each image "
            "{'boxes': …, 'labels': …, 'scores': …}, or (N, boxes, 6)"
        )
    return outputs
