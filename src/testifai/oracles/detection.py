"""The oracle `detection`: boxes found against the labelled ones, or those found on the clean image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testifai.data.annotations import CLASS, CONFIDENCE, NONE, Boxes, are_boxes, areas, intersections, ious, unpack
from testifai.errors import InputError
from testifai.oracles.base import Against, LabelsOrClean, Outcome
from testifai.support.types import Array
from testifai.support.validation import number

IGNORED_SHARE = 0.5  # least share of a found box that lies within an optional one for it not to count as wrong


@dataclass(frozen=True)
class Matched:
    pairs: tuple[tuple[int, int], ...]
    wrong: tuple[int, ...]
    missed: tuple[int, ...]

    @property
    def f1(self) -> float:
        twice = 2 * len(self.pairs)
        total = twice + len(self.wrong) + len(self.missed)
        return twice / total if total else 1.0


def match(found: Boxes, expected: Boxes, iou: float, confidence: float) -> Matched:
    """Give each box found, the most confident first, the free expected box of its class that it overlaps most.

    Boxes below the confidence count as not found. An optional box (of confidence 0) is never missed, and boxes of its
    class that lie mostly within it are not wrong.
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
    doubtful, optional = found[wrong], expected[~counted]
    within = intersections(doubtful, optional) >= IGNORED_SHARE * np.maximum(areas(doubtful), 1e-9)[:, None]
    excused = (within & (doubtful[:, None, CLASS] == optional[None, :, CLASS])).any(axis=1)
    left = tuple(row for row, pardon in zip(wrong, excused, strict=True) if not pardon)
    return Matched(tuple(pairs), left, tuple(np.flatnonzero(free).tolist()))


class Detection(LabelsOrClean):
    """Passes if the F1 of the boxes found, of at least a confidence, is at least `f1`; matched by class and overlap.

    Expected are the labels or, without them or `against` "clean", boxes found on the clean image, moved with the image.
    """

    name = "detection"
    moves = "boxes"
    score = "f1"
    _described = ("iou", "confidence", "f1", "against")

    def __init__(
        self, iou: float = 0.5, confidence: float = 0.25, f1: float = 0.5, against: Against | None = None
    ) -> None:
        self.iou = number("oracle detection: iou", iou, above=0, most=1)
        self.confidence = number("oracle detection: confidence", confidence, least=0, most=1)
        self.f1 = number("oracle detection: f1", f1, above=0, most=1)
        self._expect(against)

    def reference(self, outputs: Array) -> Array:
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
        super().check(labels, classes)
        if labels is None or not self.needs_labels:
            return
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


def _checked(outputs: Array) -> Array:
    if not are_boxes(outputs):
        raise InputError(
            f"oracle detection: the model returned outputs of shape {outputs.shape}; boxes are needed: for each image "
            "{'boxes': …, 'labels': …, 'scores': …}, or (N, boxes, 6)"
        )
    return outputs
