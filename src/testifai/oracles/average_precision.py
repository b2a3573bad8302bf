"""Mean average precision as COCO defines it, from detections matched image by image.

Ten thresholds of overlap, precision interpolated at 101 recalls, the hundred most confident boxes of a class and image
(Lin et al., "Microsoft COCO", 2014, and its evaluation code's rules for crowds). A weighted mean costs a sort.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from testifai.data.annotations import CLASS, CONFIDENCE, Boxes, areas, intersections, ious
from testifai.support.types import Bools, Floats

THRESHOLDS = np.linspace(0.5, 0.95, 10)
RECALLS = np.linspace(0.0, 1.0, 101)
AT_ONCE = 2_000_000  # most numbers in memory for some rows of weights
MOST = 100  # boxes of a class found on an image that count


@dataclass(frozen=True)
class Matches:
    """Boxes found on images, a column each: right, wrong or ignored at each threshold."""

    image: NDArray[np.intp]
    label: NDArray[np.int64]
    confidence: Floats
    right: Bools  # (thresholds, boxes)
    ignored: Bools
    expected: NDArray[np.int64]  # (images, classes): how many boxes there are to find

    def at(self, threshold: float) -> Matches:
        row = np.flatnonzero(np.isclose(THRESHOLDS, threshold))
        return replace(self, right=self.right[row], ignored=self.ignored[row])


def matches(found: Iterable[Boxes], expected: Iterable[Boxes]) -> Matches:
    parts, counts = [], []
    for number, (seen, wanted) in enumerate(zip(found, expected, strict=True)):
        counted = wanted[wanted[:, CONFIDENCE] > 0]
        counts.append(np.bincount(counted[:, CLASS].astype(np.int64)))
        for label in np.unique(seen[:, CLASS]).astype(np.int64).tolist():
            own = seen[seen[:, CLASS] == label]
            own = own[np.argsort(-own[:, CONFIDENCE], kind="stable")[:MOST]]
            right, ignored = _matched(own, wanted[wanted[:, CLASS] == label])
            parts.append((np.full(len(own), number), np.full(len(own), label), own[:, CONFIDENCE], right, ignored))
    table = np.zeros((len(counts), max((len(row) for row in counts), default=0)), np.int64)
    for row, own_counts in zip(table, counts, strict=True):
        row[: len(own_counts)] = own_counts
    empty = (np.zeros(0, np.intp), np.zeros(0, np.int64), np.zeros(0), *[np.zeros((len(THRESHOLDS), 0), bool)] * 2)
    columns = (np.concatenate(column, axis=-1) for column in zip(*parts, empty, strict=True))
    image, label, confidence, right, ignored = columns
    return Matches(image, label, confidence.astype(np.float64), right, ignored, table)


def mean_average_precision(matched: Matches) -> float:
    """Return the mean over classes and thresholds; NaN if nothing is expected."""
    return float(weighted(matched, np.ones((1, len(matched.expected))))[0])


def weighted(matched: Matches, weights: NDArray[np.number]) -> Floats:
    """Return the mean average precision for each row of weights (rows, images): how often each image counts."""
    times = np.asarray(weights, np.float64)
    wanted = times @ matched.expected
    ranked = np.argsort(-matched.confidence, kind="stable")
    of_class = matched.label[ranked]
    total, classes = np.zeros(len(times)), np.zeros(len(times))
    for label in np.flatnonzero((wanted > 0).any(axis=0)).tolist():
        known = np.flatnonzero(wanted[:, label] > 0)
        rows = ranked[of_class == label]
        size = max(1, AT_ONCE // max(1, matched.right[:, rows].size))
        for start in range(0, len(known), size):
            part = known[start : start + size]
            own = times[part][:, matched.image[rows]]
            total[part] += _average_precision(matched, rows, own, wanted[part, label])
        classes[known] += 1
    return np.asarray(np.divide(total, classes, out=np.full(len(times), np.nan), where=classes > 0))


def _matched(found: Boxes, wanted: Boxes) -> tuple[Bools, Bools]:
    """Return which boxes of one class on one image, most confident first, are right and which are ignored."""
    crowd = wanted[:, CONFIDENCE] <= 0
    wanted, crowd = wanted[np.argsort(crowd, kind="stable")], np.sort(crowd)
    overlap = ious(found, wanted)
    # Whatever lies within a crowd belongs to it, however large the crowd is.
    overlap[:, crowd] = intersections(found, wanted[crowd]) / np.maximum(areas(found), 1e-9)[:, None]
    right, ignored = np.zeros((2, len(THRESHOLDS), len(found)), bool)
    for row, threshold in enumerate(THRESHOLDS):
        free = np.ones(len(wanted), bool)
        for place in range(len(found)):
            best = _best(overlap[place], free | crowd, crowd, threshold)
            if best is not None:
                free[best] = False
                right[row, place], ignored[row, place] = not crowd[best], crowd[best]
    return right, ignored


def _best(overlap: Floats, open_: Bools, crowd: Bools, threshold: float) -> int | None:
    """Return the open box with the largest overlap, the later of equals; a crowd only if no other is near enough."""
    for group in (open_ & ~crowd, open_ & crowd):
        near = np.where(group, overlap, -1.0)
        if len(near) and near.max() >= min(threshold, 1 - 1e-10):
            return len(near) - 1 - int(np.argmax(near[::-1]))
    return None


def _average_precision(matched: Matches, rows: NDArray[np.intp], times: Floats, wanted: Floats) -> Floats:
    """Return the mean interpolated precision of one class over recalls and thresholds, for each row of weights."""
    if not len(rows):
        return np.zeros(len(times))
    right, counts = matched.right[:, rows], ~matched.ignored[:, rows]
    hits = np.cumsum(times[:, None] * right, axis=2)
    tries = np.cumsum(times[:, None] * counts, axis=2)
    precision = hits / np.maximum(tries, np.spacing(1))
    precision = np.maximum.accumulate(precision[:, :, ::-1], axis=2)[:, :, ::-1]
    # number of recalls that each box is the first to reach
    reached = np.searchsorted(RECALLS, hits / wanted[:, None, None], side="right")
    new = np.diff(reached, axis=2, prepend=0)
    return np.asarray((precision * new).sum(axis=2).mean(axis=1) / len(RECALLS))
