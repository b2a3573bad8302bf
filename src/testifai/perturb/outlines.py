"""Outlines of boxes that move along with their image, and are cut off where it ends.

An upright box around a turned box is larger than it, and one around that after the next turn larger still. So what is
carried through a composite is the outline; the box around it is taken once, at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Corners = NDArray[np.float64]  # (n, 2): x and y in pixels from the outer corner of the first pixel
Size = tuple[int, int]  # height, width

NO_AREA = 1e-9


@dataclass(frozen=True)
class Outline:
    """A polygon on an image; `left` is the share of it that no edge of the image has cut off so far."""

    corners: Corners
    left: float = 1.0

    @classmethod
    def of(cls, box: Any) -> Outline:
        """The outline of (x1, y1, x2, y2)."""
        x1, y1, x2, y2 = box
        return cls(np.array([[x1, y1], [x2, y1], [x2, y2], [x1, y2]], np.float64))

    def moved(self, corners: Corners, size: Size) -> Outline:
        """It once its corners have moved to these, cut off at the edges of the image."""
        inside = cut(corners, size)
        whole = area(corners)
        return Outline(inside, self.left * area(inside) / whole if whole > NO_AREA else 0.0)

    @property
    def box(self) -> NDArray[np.float64]:
        """The upright box around it; without area where nothing is left.

        >>> Outline(np.array([[0, 2], [2, 0], [4, 2], [2, 4.0]])).box.tolist()
        [0.0, 0.0, 4.0, 4.0]
        """
        if not len(self.corners):
            return np.zeros(4)
        return np.concatenate([self.corners.min(axis=0), self.corners.max(axis=0)])


def area(corners: Corners) -> float:
    """The area within (Gauss's formula), whichever way round the corners are named.

    >>> area(np.array([[0, 0], [4, 0], [4, 2.0]]))
    4.0
    """
    if len(corners) < 3:
        return 0.0
    x, y = corners.T
    return abs(float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))) / 2


def cut(corners: Corners, size: Size) -> Corners:
    """What of a polygon is on the image (Sutherland and Hodgman, 1974), edge after edge of the image.

    >>> cut(np.array([[-2, 0], [2, 0], [2, 2], [-2, 2.0]]), (10, 10)).tolist()
    [[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]]
    """
    height, width = size
    if (corners >= 0).all() and (corners <= (width, height)).all():
        return corners
    for axis, limit, sign in ((0, 0, 1), (0, width, -1), (1, 0, 1), (1, height, -1)):
        corners = _half(corners, axis, limit, sign)
    return corners


def _half(corners: Corners, axis: int, limit: float, sign: int) -> Corners:
    """What of a polygon is on the inner side of a line."""
    depth = sign * (corners[:, axis] - limit)
    if (depth >= 0).all():
        return corners
    kept: list[NDArray[np.float64]] = []
    for place, inner in enumerate(depth >= 0):
        before = place - 1
        if inner != (depth[before] >= 0):
            share = depth[before] / (depth[before] - depth[place])
            crossing = corners[before] + share * (corners[place] - corners[before])
            crossing[axis] = limit
            kept.append(crossing)
        if inner:
            kept.append(corners[place])
    return np.array(kept, np.float64).reshape(-1, 2)


def contains(corners: Corners, x: NDArray[np.floating], y: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Which points lie within a polygon: those from which a ray crosses its edges an odd number of times.

    >>> contains(np.array([[0, 0], [4, 0], [0, 4.0]]), np.array([1.0, 3]), np.array([1.0, 3])).tolist()
    [True, False]
    """
    inside = np.zeros(np.shape(x), bool)
    for (x1, y1), (x2, y2) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        if y1 != y2:
            crosses = (y1 > y) != (y2 > y)
            inside ^= crosses & (x < (x2 - x1) * (y - y1) / (y2 - y1) + x1)
    return inside


def seen(outlines: list[Corners], across: NDArray[np.floating], down: NDArray[np.floating]) -> list[Corners]:
    """The outlines of the pixels that show a place within each; none where no pixel does.

    `across` and `down` are the place that each pixel shows. They may fold the image, so that there is no inverse to
    send corners through.
    """
    return [_around(*_showing(corners, across, down)) for corners in outlines]


def _showing(
    corners: Corners, across: NDArray[np.floating], down: NDArray[np.floating]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of the pixels that show a place within an outline."""
    if not len(corners):
        return np.zeros((2, 0), np.intp)[0], np.zeros((2, 0), np.intp)[1]
    (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
    row, column = np.nonzero((across >= left) & (across <= right) & (down >= top) & (down <= bottom))
    upright = len(corners) == 4 and (np.isin(corners, [[left, top], [right, bottom]])).all()
    if upright:
        return row, column
    within = contains(corners, across[row, column], down[row, column])
    return row[within], column[within]


def _around(row: NDArray[np.intp], column: NDArray[np.intp]) -> Corners:
    """An outline around pixels: down along the first of each row, and up along the last."""
    if not len(row):
        return np.zeros((0, 2))
    rows, first = np.unique(row, return_index=True)  # pixels come row by row
    starts = column[first]
    ends = column[np.append(first[1:], len(row)) - 1] + 1
    left = np.column_stack([np.repeat(starts, 2), np.column_stack([rows, rows + 1]).ravel()])
    right = np.column_stack([np.repeat(ends, 2), np.column_stack([rows, rows + 1]).ravel()])
    return np.concatenate([left, right[::-1]]).astype(np.float64)
