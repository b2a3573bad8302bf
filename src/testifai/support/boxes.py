"""Boxes on images: rows (x1, y1, x2, y2, confidence, class) in pixels from the outer corner of the first pixel.

The boxes of many images are one array (images, rows, 6), so that they are kept, taken and sent like any other outputs;
rows that an image does not need are of class -1 and come last. Of an expected box the confidence says whether it counts
(1) or may be found or not (0), such as a crowd that nobody counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Boxes = NDArray[np.float32]

COLUMNS = 6
CONFIDENCE, CLASS = 4, 5  # columns after the four of the corners
NONE = -1  # the class of a row without a box
MOST = 100  # boxes found on an image, the surest, as COCO counts them


def pack(images: Sequence[Boxes], rows: int | None = None) -> Boxes:
    """The boxes of each image in one array, with so many rows for each, or as many as one of them needs.

    >>> pack([np.array([[0, 0, 4, 4, 0.9, 7]]), np.zeros((0, 6))]).tolist()[1]
    [[0.0, 0.0, 0.0, 0.0, 0.0, -1.0]]
    """
    rows = max((len(image) for image in images), default=0) if rows is None else rows
    packed = np.zeros((len(images), rows, COLUMNS), np.float32)
    packed[..., CLASS] = NONE
    for row, image in zip(packed, images, strict=True):
        row[: len(image)] = image[:rows]
    return packed


def are_boxes(array: Any) -> bool:
    """Whether an array holds boxes of images.

    >>> are_boxes(pack([np.zeros((0, 6))], 3)), are_boxes(np.zeros((2, 4, 6), np.uint8))
    (True, False)
    """
    return isinstance(array, np.ndarray) and array.ndim == 3 and array.shape[2] == COLUMNS and array.dtype.kind == "f"


def unpack(packed: Boxes) -> Iterable[Boxes]:
    """The boxes of each image."""
    return (image[image[:, CLASS] != NONE] for image in packed)


def areas(boxes: NDArray[np.floating]) -> NDArray[np.float64]:
    """Width times height of each box.

    >>> areas(np.array([[0, 0, 4, 2], [3, 3, 3, 9]])).tolist()
    [8.0, 0.0]
    """
    corners = np.asarray(boxes, np.float64)
    return np.asarray((corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1]))


def intersections(one: NDArray[np.floating], other: NDArray[np.floating]) -> NDArray[np.float64]:
    """The area that each box of one has in common with each of the other."""
    left, top, right, bottom = np.asarray(one, np.float64)[:, :4].T[:, :, None]
    other_left, other_top, other_right, other_bottom = np.asarray(other, np.float64)[:, :4].T[:, None, :]
    across = np.minimum(right, other_right) - np.maximum(left, other_left)
    down = np.minimum(bottom, other_bottom) - np.maximum(top, other_top)
    return np.asarray(np.maximum(across, 0) * np.maximum(down, 0))


def ious(one: NDArray[np.floating], other: NDArray[np.floating]) -> NDArray[np.float64]:
    """Intersection over union of each box of one with each of the other; 0 where neither has an area.

    >>> ious(np.array([[0, 0, 4, 4]]), np.array([[2, 0, 6, 4], [8, 8, 9, 9]])).round(3).tolist()
    [[0.333, 0.0]]
    """
    common = intersections(one, other)
    union = areas(one)[:, None] + areas(other)[None, :] - common
    return np.asarray(np.divide(common, union, out=np.zeros_like(common), where=union > 0))
