"""Label maps that move along with their image: each pixel takes the label of the place that it shows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.errors import InputError

# Per pixel of an image (height, width), the place that it shows: x and y in pixels from the outer corner of the first.
Places = tuple[NDArray[np.floating], NDArray[np.floating]]


def looked_up(mask: NDArray[Any], places: Places, void: int) -> NDArray[Any]:
    """The label at the place that each pixel shows; `void` where that is outside the image.

    >>> across, down = np.meshgrid([1.5, 2.5], [0.5, 1.5])
    >>> looked_up(np.array([[1, 2], [3, 4]]), (across, down), void=-1).tolist()
    [[2, -1], [4, -1]]
    """
    column, row = (np.floor(place).astype(np.intp) for place in places)
    height, width = mask.shape
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    moved = np.full(mask.shape, void, mask.dtype)
    moved[inside] = mask[row[inside], column[inside]]
    return moved


def check_masks(masks: ArrayLike, void: int) -> NDArray[Any]:
    """Label maps as an array (images, height, width) of whole numbers, of which `void` can be one, or an InputError."""
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
