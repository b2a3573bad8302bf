"""Of boxes that show the same thing, the one the model is surest of."""

from __future__ import annotations

import numpy as np

from testifai.support.boxes import CLASS, CONFIDENCE, Boxes, ious

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
