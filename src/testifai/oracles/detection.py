"""The oracle `detection`: the boxes that are on an image, or that were found on it when it was clean."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from testifai.data.annotations import CLASS, CONFIDENCE, NONE, Boxes, are_boxes, areas, intersections, ious, unpack
from testifai.errors import InputError
from testifai.oracles.base import Oracle, Outcome
from testifai.support import validation
from testifai.support.types import Array, Record

IGNORED_SHARE = 0.5  # of a box found, within one that may be found or not, from which it is not held against the model


@dataclass(frozen=True)
class Matched:
    """Pairs of rows (found, expected), boxes found for nothing, and expected ones that were not found."""

    pairs: tuple[tuple[int, int], ...]
    wrong: tuple[int, ...]
    missed: tuple[int, ...]

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 1 where nothing was expected and nothing found.

        >>> Matched(((0, 0),), (1,), ()).f1
        0.6666666666666666
        """
        twice = 2 * len(self.pairs)
        total = twice + len(self.wrong) + len(self.missed)
        return twice / total if total else 1.0


def match(found: Boxes, expected: Boxes, iou: float, confidence: float) -> Matched:
    """Give each box found, the surest first, the free expected box of its class that it overlaps most.

    Boxes below the confidence count as not found. A box that may be found or not (of confidence 0) is never missed, and
    boxes of its class that lie mostly within it are not wrong.

    >>> found = np.array([[0, 0, 4, 4, 0.9, 1], [9, 9, 12, 12, 0.8, 1], [0, 0, 4, 4, 0.1, 2]])
    >>> match(found, np.array([[0, 0, 4, 5, 1, 1], [0, 0, 4, 4, 1, 2]]), iou=0.5, confidence=0.25)
    Matched(pairs=((0, 0),), wrong=(1,), missed=(1,))
    """
    counted = expected[:, CONFIDENCE] > 0
    overlap = ious(found, expected)
    overlap[(found[:, None, CLASS] != expected[None, :, CLASS]) | ~counted] = 0
    free = counted.copy()
    pairs, wrong = [], []
    for row in np.argsort(-found[:, CONFIDENCE], kind="stable").tolist():
        if found[row, CONFIDENCE] < confidence:
            break
        reach = np.where(free, overlap[row], 0)
        if len(reach) and reach.max() >= iou:
            best = int(np.argmax(reach))
            free[best] = False
            pairs.append((row, best))
        else:
            wrong.append(row)
    excused = _excused(found[wrong], expected[~counted])
    left = tuple(row for row, pardon in zip(wrong, excused, strict=True) if not pardon)
    return Matched(tuple(pairs), left, tuple(np.flatnonzero(free).tolist()))


def _excused(found: Boxes, ignored: Boxes) -> list[bool]:
    """Which of the boxes found lie mostly within one of their class that may be found or not."""
    if not len(ignored):
        return [False] * len(found)
    within = intersections(found, ignored) >= IGNORED_SHARE * np.maximum(areas(found), 1e-9)[:, None]
    return list((within & (found[:, None, CLASS] == ignored[None, :, CLASS])).any(axis=1))


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
        self.iou = validation.number("oracle detection: iou", iou, above=0, most=1)
        self.confidence = validation.number("oracle detection: confidence", confidence, least=0, most=1)
        self.f1 = validation.number("oracle detection: f1", f1, above=0, most=1)
        if against is not None:
            validation.choice("oracle detection: against", against, get_args(Against))
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

    def describe(self) -> Record:
        described: Record = {
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
