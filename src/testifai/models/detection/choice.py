"""From the scores of thousands of candidates to the few boxes of an image."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from testifai.models.detection.letterbox import Placed, Size
from testifai.models.detection.suppression import CANDIDATES, suppress
from testifai.support.boxes import MOST, Boxes


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
