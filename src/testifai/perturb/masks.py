"""Label maps that move along with their image: each pixel takes the label of the place that it shows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.errors import InputError
from testifai.support.libraries import cv2

# Per pixel of an image (height, width), the place that it shows: x and y in pixels from the outer corner of the first.
Places = tuple[NDArray[np.floating], NDArray[np.floating]]


def looked_up(mask: NDArray[Any], places: Places, void: int) -> NDArray[Any]:
    """The label at the place that each pixel shows; `void` where that is outside the image.

    >>> across, down = np.meshgrid([1.5, 2.5], [0.5, 1.5])
    >>> looked_up(np.array([[1, 2], [3, 4]]), (across, down), void=-1).tolist()
    [[2, -1], [4, -1]]
    """
    across, down = places
    height, width = mask.shape
    inside = (across >= 0) & (across < width) & (down >= 0) & (down < height)  # what is not a number is not
    moved = np.full(mask.shape, void, mask.dtype)
    moved[inside] = mask[down[inside].astype(np.intp), across[inside].astype(np.intp)]
    return moved


def through(first: Places, then: Places) -> Places:
    """Where a pixel looks in the end: `then` says where in the changed image, `first` where that is in the original.

    Label maps that were looked up step by step would drift by half a pixel with each.

    >>> across, down = np.meshgrid([0.5, 1.5, 2.5], [0.5, 1.5, 2.5])
    >>> through((across - 0.25, down), (across + 0.75, down))[0][0].tolist()
    [1.0, 2.0, nan]
    """
    x, y = (np.asarray(place - 0.5, np.float32) for place in then)  # of pixel centres
    found = [
        cv2.remap(
            np.ascontiguousarray(place, np.float32), x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
        ).astype(np.float64)
        for place in first
    ]
    height, width = x.shape
    outside = (x < -0.5) | (x > width - 0.5) | (y < -0.5) | (y > height - 0.5)
    return np.where(outside, np.nan, found[0]), np.where(outside, np.nan, found[1])


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
