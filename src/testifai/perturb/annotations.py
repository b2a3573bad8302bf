"""Outlines of boxes that move with their image, and are clipped at its edges.

Upright boxes around rotated boxes would grow with every rotation. So a composite moves outlines; the box around an
outline is computed once, at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.errors import InputError
from testifai.support.optional_imports import cv2
from testifai.support.types import Array, Bools, Floats

Corners = Floats  # (n, 2): x and y in pixels from the outer corner of the first pixel
Size = tuple[int, int]  # height, width

NO_AREA = 1e-9


@dataclass(frozen=True)
class Outline:
    """A polygon on an image; `left` is the share of its area that was not clipped so far."""

    corners: Corners
    left: float = 1.0

    @classmethod
    def of(cls, box: Iterable[float]) -> Outline:
        x1, y1, x2, y2 = box
        return cls(np.array([[x1, y1], [x2, y1], [x2, y2], [x1, y2]], np.float64))

    def moved(self, corners: Corners, size: Size) -> Outline:
        inside = cut(corners, size)
        whole = area(corners)
        return Outline(inside, self.left * area(inside) / whole if whole > NO_AREA else 0.0)

    @property
    def box(self) -> Floats:
        """The upright box around it, without area if nothing is left."""
        if not len(self.corners):
            return np.zeros(4)
        return np.concatenate([self.corners.min(axis=0), self.corners.max(axis=0)])


def area(corners: Corners) -> float:
    """The area of a polygon (Gauss's formula)."""
    if len(corners) < 3:
        return 0.0
    x, y = corners.T
    return abs(float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))) / 2


def cut(corners: Corners, size: Size) -> Corners:
    """Clip a polygon at the edges of the image (Sutherland and Hodgman, 1974)."""
    height, width = size
    if (corners >= 0).all() and (corners <= (width, height)).all():
        return corners
    for axis, limit, sign in ((0, 0, 1), (0, width, -1), (1, 0, 1), (1, height, -1)):
        corners = _half(corners, axis, limit, sign)
    return corners


def _half(corners: Corners, axis: int, limit: float, sign: int) -> Corners:
    depth = sign * (corners[:, axis] - limit)
    if (depth >= 0).all():
        return corners
    kept: list[Floats] = []
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


def contains(corners: Corners, x: NDArray[np.floating], y: NDArray[np.floating]) -> Bools:
    """A mask of the points within a polygon: a ray from them crosses its edges an odd number of times."""
    inside = np.zeros(np.shape(x), bool)
    for (x1, y1), (x2, y2) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        if y1 != y2:
            crosses = (y1 > y) != (y2 > y)
            inside ^= crosses & (x < (x2 - x1) * (y - y1) / (y2 - y1) + x1)
    return inside


def seen(outlines: list[Corners], across: NDArray[np.floating], down: NDArray[np.floating]) -> list[Corners]:
    """The outlines of the pixels that show a place within each, empty if none does; places may fold the image."""
    return [_around_pixels(corners, across, down) if len(corners) else corners for corners in outlines]


def _around_pixels(corners: Corners, across: NDArray[np.floating], down: NDArray[np.floating]) -> Corners:
    """An outline around the pixels: down along the first of each row, and up along the last."""
    (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
    row, column = np.nonzero((across >= left) & (across <= right) & (down >= top) & (down <= bottom))
    upright = len(corners) == 4 and (np.isin(corners, [[left, top], [right, bottom]])).all()
    if not upright:
        within = contains(corners, across[row, column], down[row, column])
        row, column = row[within], column[within]
    if not len(row):
        return np.zeros((0, 2))
    rows, first = np.unique(row, return_index=True)  # pixels come row by row
    starts = column[first]
    ends = column[np.append(first[1:], len(row)) - 1] + 1
    heights = np.column_stack([rows, rows + 1]).ravel()
    sides = [np.column_stack([np.repeat(side, 2), heights]) for side in (starts, ends)]
    return np.concatenate([sides[0], sides[1][::-1]]).astype(np.float64)


# The place that each pixel (height, width) shows: x and y in pixels from the outer corner of the first pixel.
Places = tuple[NDArray[np.floating], NDArray[np.floating]]


def looked_up(mask: Array, places: Places, void: int) -> Array:
    """The label at the place that each pixel shows; `void` if it is outside the image."""
    across, down = places
    height, width = mask.shape
    inside = (across >= 0) & (across < width) & (down >= 0) & (down < height)  # False for NaN
    moved = np.full(mask.shape, void, mask.dtype)
    moved[inside] = mask[down[inside].astype(np.intp), across[inside].astype(np.intp)]
    return moved


def through(first: Places, then: Places) -> Places:
    """The places that pixels show after `first` and `then`: maps looked up step by step would drift by half pixels."""
    x, y = (np.asarray(place - 0.5, np.float32) for place in then)  # of pixel centres
    height, width = x.shape
    outside = (x < -0.5) | (x > width - 0.5) | (y < -0.5) | (y > height - 0.5)
    planes = (np.ascontiguousarray(place, np.float32) for place in first)
    found = (cv2.remap(plane, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE) for plane in planes)
    across, down = (np.where(outside, np.nan, place.astype(np.float64)) for place in found)
    return across, down


def check_masks(masks: ArrayLike, void: int) -> Array:
    """Return label maps as an array (images, height, width) of an integer type that can hold `void`."""
    given = np.asarray(masks)
    if given.ndim != 3 or given.dtype.kind not in "iu":
        raise InputError(
            f"masks: {given.dtype} of shape {given.shape} is not accepted; "
            "give whole numbers of shape (images, height, width)"
        )
    limits = np.iinfo(given.dtype)
    if not limits.min <= void <= limits.max:
        raise InputError(f"masks: {given.dtype} cannot hold the label {void} of pixels that are not judged")
    return given
