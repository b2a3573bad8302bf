"""How batches of small images are handled many at once, exactly.

Small images go through matrix products; to keep those exact, and so independent of how a product sums its
terms, weights are whole multiples of 2⁻¹⁶: with 8-bit pixels every partial sum then fits the 24 bits of a
float32. Larger images go one by one through OpenCV. Which way is taken depends on the image size alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.support.libraries import cv2

Images = NDArray[np.uint8]

# Up to this many pixels an image is small.
SMALL = 64 * 64
_STEP = 2.0**16
# Numbers handled at once: few enough for a float copy to stay in the processor's cache.
_SLAB = 2**18


def exact(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights that sum to 1 along the first axis, as multiples of 2⁻¹⁶ that still do."""
    steps = np.rint(weights * _STEP)
    largest = steps.argmax(axis=0)[None]
    rest = _STEP - steps.sum(axis=0, keepdims=True)
    np.put_along_axis(steps, largest, np.take_along_axis(steps, largest, axis=0) + rest, axis=0)
    return steps / _STEP


def runs(labels: NDArray[np.integer[Any]]) -> Iterator[tuple[int, slice]]:
    """Runs of equal labels among sorted ones."""
    found, starts = np.unique(labels, return_index=True)
    stops = [*starts[1:].tolist(), len(labels)]
    for label, start, stop in zip(found.tolist(), starts.tolist(), stops, strict=True):
        yield label, slice(start, stop)


def slabs(start: int, stop: int, numbers_per_row: int, most: int = _SLAB) -> Iterator[slice]:
    step = max(1, most // numbers_per_row)
    for first in range(start, stop, step):
        yield slice(first, min(first + step, stop))


def put_back(ordered: Images, order: NDArray[np.intp]) -> Images:
    """Rows that were taken in some order, in their own places again."""
    result = np.empty_like(ordered)
    result[order] = ordered
    return result


def transposed(rows: NDArray[Any]) -> NDArray[Any]:
    """The first two axes swapped; a third one of one or three channels stays. Far faster than a copy by NumPy."""
    return np.asarray(cv2.transpose(rows)).reshape(rows.shape[1], rows.shape[0], *rows.shape[2:])
