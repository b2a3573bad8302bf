"""From the scores of thousands of candidates to the few boxes of an image."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from testifai.data.annotations import CLASS, CONFIDENCE, MOST, Boxes, ious
from testifai.models.detection.letterbox import Placed, Size

CANDIDATES = 300  # the surest boxes of an image among which one is chosen for another


def suppress(boxes: Boxes, overlap: float, most: int) -> Boxes:
    """The surest boxes, none with a surer one of its class beside it whose overlap (IoU) is larger.

    They come with the surest first; of equals, in the order given.

    >>> boxes = np.array([[0, 0, 4, 4, 0.5, 1], [0, 0, 4, 4.4, 0.9, 1], [0, 0, 4, 4, 0.4, 2]])
    >>> suppress(boxes, 0.5, most=10)[:, 4:].tolist()
    [[0.9, 1.0], [0.4, 2.0]]
    """
    ranked = boxes[np.argsort(-boxes[:, CONFIDENCE], kind="stable")[:CANDIDATES]]
    rivals = ious(ranked, ranked) > overlap
    rivals &= ranked[:, None, CLASS] == ranked[None, :, CLASS]
    # Most boxes have no rival, and stay.
    doubtful = np.flatnonzero(np.triu(rivals, 1).any(axis=1))
    gone = np.zeros(len(ranked), bool)
    for place in doubtful.tolist():
        if not gone[place]:
            gone[place + 1 :] |= rivals[place, place + 1 :]
    return ranked[~gone][:most]


def choose(
    corners: NDArray[np.floating],
    scores: NDArray[np.floating],
    placed: Placed,
    size: Size,
    *,
    least: float,
    overlap: float | None,
) -> Boxes:
    """The surest boxes of an image from a score of `least` on, in its pixels, the surest first.

    Of those that overlap by more than `overlap` (None: however much) and are of one class, only the surest.
    """
    likely = np.flatnonzero(scores.max(axis=1) >= least)
    row, label = np.nonzero(scores[likely] >= least)
    row = likely[row]
    confidence = scores[row, label]
    surest = np.argsort(-confidence, kind="stable")[:CANDIDATES]
    row, label, confidence = row[surest], label[surest], confidence[surest]
    boxes = np.column_stack([placed.back(corners[row], size), confidence, label]).astype(np.float32)
    return boxes[:MOST] if overlap is None else suppress(boxes, overlap, MOST)
