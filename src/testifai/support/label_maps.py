"""Label maps: the class of every pixel of an image, (images, height, width) whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

UNSEEN = -1  # the label of a pixel that shows nothing of the image it was made from
MOST = 2**15 - 1  # the highest class that is told apart; a map takes two bytes a pixel


def are_label_maps(array: Any) -> bool:
    """Whether an array holds label maps of images.

    >>> are_label_maps(np.zeros((2, 4, 6), np.uint8)), are_label_maps(np.zeros((2, 4, 6), np.float32))
    (True, False)
    """
    return isinstance(array, np.ndarray) and array.ndim == 3 and array.dtype.kind in "iu"
