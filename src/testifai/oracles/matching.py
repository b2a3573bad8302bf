"""Which of the boxes found are which of those expected, and what that makes of an image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testifai.support.boxes import CLASS, CONFIDENCE, Boxes, areas, intersections, ious

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
