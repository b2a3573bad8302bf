"""Primitive operations on a batch of uint8 images, (N, H, W) or (N, H, W, C) with one or three channels.

Nothing here changes its argument, and an image comes out the same whatever batch it is in. Small images are
handled many at once by matrix products; to keep those exact, and so independent of how a product sums its
terms, weights are whole multiples of 2⁻¹⁶: with 8-bit pixels every partial sum then fits the 24 bits of a
float32. Larger images go one by one through OpenCV. Which way is taken depends on the image size alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from testifai.errors import InputError
from testifai.threads import one_blas_thread

Images = NDArray[np.uint8]

# Up to this many pixels an image is small.
SMALL = 64 * 64
_STEP = 2.0**16
# Numbers handled at once: few enough for a float copy to stay in the processor's cache.
_SLAB = 2**18
# The same where images are first sorted into groups, which should not become too small.
_GROUPED = 2**22
# Share of a blur's weight that may be left out at its far end: 0.03 grey levels at most.
_TAIL = 1e-4


def image_shape(images: NDArray[Any]) -> tuple[int, int, int]:
    """Height, width and number of channels of the images of a batch, or an InputError.

    >>> image_shape(np.zeros((5, 28, 20), np.uint8))
    (28, 20, 1)
    """
    if not isinstance(images, np.ndarray):
        raise InputError(f"images must be an array, got a {type(images).__name__}")
    if images.dtype != np.uint8:
        raise InputError(
            f"images must be uint8 (0 to 255), got {images.dtype}; "
            "images in 0..1 convert with np.rint(255 * images).astype(np.uint8)"
        )
    if images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] not in (1, 3)):
        raise InputError(
            f"images must have shape (N, H, W), (N, H, W, 1) or (N, H, W, 3), got {images.shape}; "
            "channels first converts with images.transpose(0, 2, 3, 1)"
        )
    return images.shape[1], images.shape[2], images.shape[3] if images.ndim == 4 else 1


def lookup(images: Images, table: NDArray[np.uint8]) -> Images:
    """Every pixel replaced by its entry in a table of 256."""
    image_shape(images)
    flat = np.ascontiguousarray(images).reshape(len(images), -1)
    result: Images = np.asarray(cv2.LUT(flat, table), dtype=np.uint8).reshape(images.shape)
    return result


def brighten(images: Images, amount: float) -> Images:
    """Add to the V of hue, saturation and value, where 1 is white; for grey pixels that is a plain sum."""
    height, width, channels = image_shape(images)
    value = np.arange(256)
    raised = np.minimum(np.floor(value + 255 * amount + 0.5), 255)
    if channels == 1:
        return lookup(images, raised.astype(np.uint8))
    # With hue and saturation kept, a higher value scales all three channels alike; black becomes grey.
    factor = (np.minimum(value + 255 * amount, 255) / np.maximum(value, 1)).astype(np.float32)
    result = np.empty(images.shape, dtype=np.uint8)
    for part in _slabs(0, len(images), height * width * channels):
        red, green, blue = np.moveaxis(images[part], -1, 0)
        largest = np.maximum(np.maximum(red, green), blue)[..., None]
        scaled = images[part] * factor[largest] + np.float32(0.5)
        result[part] = np.where(largest == 0, np.float32(raised[0]), scaled)
    return result


def about_centre(linear: ArrayLike, height: int, width: int) -> NDArray[np.float64]:
    """The 2×3 matrix that applies a linear map while the image's centre stays where it is."""
    map_ = np.asarray(linear, dtype=np.float64)
    centre = np.array([(width - 1) / 2, (height - 1) / 2])
    return np.column_stack([map_, centre - map_ @ centre])


def warp(images: Images, matrices: ArrayLike, which: ArrayLike | None = None, border: int = 0) -> Images:
    """Affine warp, bilinear: a 2×3 matrix takes a pixel (x, y) of the result to the place that it shows.

    `matrices` is one for all images, or several, of which `which` chooses one per image: made for few
    matrices and many images. Places outside the image have the grey level `border`.
    """
    height, width, channels = image_shape(images)
    choices = np.asarray(matrices, dtype=np.float64).reshape(-1, 2, 3)
    chosen = np.zeros(len(images), dtype=np.intp) if which is None else np.asarray(which, dtype=np.intp)
    stacked = images.reshape(len(images), height, width, channels)
    one_warp = _warp_small if height * width <= SMALL else _warp_large
    order = np.argsort(chosen, kind="stable")
    stacked = stacked[order]
    result = np.empty(stacked.shape, dtype=np.uint8)
    for choice, run in _runs(chosen[order]):
        for part in _slabs(run.start, run.stop, height * width * channels):
            result[part] = one_warp(stacked[part], choices[choice], border)
    return _put_back(result, order).reshape(images.shape)


def _warp_small(images: Images, matrix: NDArray[np.float64], border: int) -> Images:
    count, height, width, channels = images.shape
    sampler, outside = _sampler(height, width, matrix.tobytes())
    pixels = images.reshape(count, height * width, channels).transpose(1, 0, 2)
    values = sampler @ pixels.astype(np.float32, order="C").reshape(height * width, count * channels)
    values += border * outside + np.float32(0.5)
    rounded: Images = values.astype(np.uint8).reshape(height * width, count, channels)
    return rounded.transpose(1, 0, 2).reshape(images.shape)


@lru_cache(maxsize=64)
def _sampler(height: int, width: int, matrix: bytes) -> tuple[csr_array, NDArray[np.float32]]:
    """Bilinear sampling as a sparse matrix over flat pixels, and each pixel's weight on the border."""
    a = np.frombuffer(matrix).reshape(2, 3)
    y, x = np.indices((height, width)).reshape(2, -1)
    place_x, place_y = (row[0] * x + row[1] * y + row[2] for row in a)
    left, top = np.floor(place_x), np.floor(place_y)
    right_share, low_share = place_x - left, place_y - top
    columns = np.stack([left, left + 1, left, left + 1]).astype(np.intp)
    rows = np.stack([top, top, top + 1, top + 1]).astype(np.intp)
    weights = np.stack([1 - right_share, right_share] * 2) * np.repeat([1 - low_share, low_share], 2, axis=0)
    weights = _exact(weights)
    inside = (columns >= 0) & (columns < width) & (rows >= 0) & (rows < height)
    target = np.broadcast_to(np.arange(height * width), inside.shape)
    entries = (weights[inside], (target[inside], (rows * width + columns)[inside]))
    sampler = csr_array(entries, shape=(height * width, height * width), dtype=np.float32)
    outside = np.where(inside, 0, weights).sum(axis=0).astype(np.float32)
    return sampler, outside[:, None]


def _warp_large(images: Images, matrix: NDArray[np.float64], border: int) -> Images:
    height, width = images.shape[1:3]
    warped = [
        cv2.warpAffine(
            image,
            matrix,
            (width, height),
            flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
            borderMode=cv2.BORDER_CONSTANT,
            borderValue=(border,) * 4,
        )
        for image in images
    ]
    return np.asarray(warped, dtype=np.uint8).reshape(images.shape)


def line_blur(images: Images, degrees: ArrayLike, length: float, sigma: float) -> Images:
    """Blur along a straight line that starts at each pixel: half a Gaussian, edge pixels repeated.

    `degrees` holds a whole angle from −45 to 45 per image, clockwise from the x axis (y points down);
    `length` and `sigma` are in pixels along the line. A line at an angle becomes a row once every column x is
    shifted by round(x · tan angle) pixels, so the work is a shift, a blur of rows and the shift back.
    """
    height, width, channels = image_shape(images)
    stacked = images.reshape(len(images), height, width, channels)
    planes = stacked.transpose(0, 3, 1, 2).reshape(-1, height * width)
    angles = np.repeat(np.asarray(degrees, dtype=np.int64), channels)
    order = np.argsort(angles, kind="stable")
    ordered = np.empty(planes.shape, dtype=np.uint8)
    blur = _blur_small if height * width <= SMALL else _blur_large
    for part in _slabs(0, len(planes), height * width, _GROUPED):
        lines = ((rows, _line_for(height, width, angle, length, sigma)) for angle, rows in _runs(angles[order[part]]))
        ordered[part] = blur(planes[order[part]], lines)
    blurred = _put_back(ordered, order).reshape(-1, channels, height, width)
    return blurred.transpose(0, 2, 3, 1).reshape(images.shape)


class _Line(NamedTuple):
    """How to blur images of one size along one line."""

    shear: NDArray[np.intp]  # (rows, width + taps - 1): flat pixels, so that the lines of the angle are rows
    band: NDArray[np.float32]  # (width + taps - 1, width): the blur of a row as a matrix
    weights: NDArray[np.float32]  # (1, taps)
    unshear: NDArray[np.intp]  # (height * width,): where the pixels of the result are among the blurred rows


def _line(height: int, width: int, degrees: int, length: float, sigma: float) -> _Line:
    angle = np.deg2rad(degrees)
    weights = _half_gaussian(length * np.cos(angle), sigma * np.cos(angle))
    columns = np.arange(width + len(weights) - 1)
    shift = np.rint(columns * np.tan(angle)).astype(np.intp)
    first, last = -shift[:width].max(), height - 1 - shift[:width].min()
    rows = np.arange(first, last + 1)[:, None] + shift
    shear = rows.clip(0, height - 1) * width + columns.clip(0, width - 1)
    unshear = (np.arange(height)[:, None] - shift[:width] - first) * width + columns[:width]
    band = np.zeros((len(columns) if height * width <= SMALL else 0, width), dtype=np.float32)
    for column in range(width if len(band) else 0):
        band[column : column + len(weights), column] = weights
    return _Line(shear, band, weights[None], unshear.ravel())


# All whole angles of five severities fit.
_cached_line = lru_cache(maxsize=512)(_line)


def _line_for(height: int, width: int, degrees: int, length: float, sigma: float) -> _Line:
    make = _cached_line if height * width <= SMALL else _line
    return make(height, width, degrees, length, sigma)


def _half_gaussian(length: float, sigma: float) -> NDArray[np.float32]:
    """Weights of taps one pixel apart from 0 to length, without the tail that does not count."""
    taps = np.exp(-0.5 * (np.arange(int(length + 1e-9) + 1) / sigma) ** 2)
    taps /= taps.sum()
    taps = taps[: 1 + int(np.searchsorted(np.cumsum(taps), 1 - _TAIL))]
    return _exact((taps / taps.sum())[:, None])[:, 0].astype(np.float32)


def _blur_small(planes: Images, lines: Iterator[tuple[slice, _Line]]) -> Images:
    """Whole arrays are converted at once and each step writes where it is told: calls cost more than arithmetic."""
    source = planes.astype(np.float32)
    values = np.empty_like(source)
    with one_blas_thread():
        for part, line in lines:
            count, (rows, columns) = part.stop - part.start, line.shear.shape
            sheared = np.empty((count, rows * columns), dtype=np.float32)
            source[part].take(line.shear.ravel(), axis=1, mode="clip", out=sheared)
            blurred = sheared.reshape(count * rows, columns) @ line.band
            blurred.reshape(count, -1).take(line.unshear, axis=1, mode="clip", out=values[part])
    values += np.float32(0.5)
    return values.astype(np.uint8)


def _blur_large(planes: Images, lines: Iterator[tuple[slice, _Line]]) -> Images:
    result = np.empty(planes.shape, dtype=np.uint8)
    for part, line in lines:
        width = line.shear.shape[1] - line.weights.shape[1] + 1
        for plane, target in zip(planes[part], result[part], strict=True):
            sheared = plane.take(line.shear).astype(np.float32)
            blurred = cv2.filter2D(sheared, cv2.CV_32F, line.weights, anchor=(0, 0))[:, :width]
            target[:] = blurred.ravel().take(line.unshear) + np.float32(0.5)
    return result


def _exact(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights that sum to 1 along the first axis, as multiples of 2⁻¹⁶ that still do."""
    steps = np.rint(weights * _STEP)
    largest = steps.argmax(axis=0)[None]
    rest = _STEP - steps.sum(axis=0, keepdims=True)
    np.put_along_axis(steps, largest, np.take_along_axis(steps, largest, axis=0) + rest, axis=0)
    return steps / _STEP


def _runs(labels: NDArray[np.integer[Any]]) -> Iterator[tuple[int, slice]]:
    """Runs of equal labels among sorted ones."""
    found, starts = np.unique(labels, return_index=True)
    stops = [*starts[1:].tolist(), len(labels)]
    for label, start, stop in zip(found.tolist(), starts.tolist(), stops, strict=True):
        yield label, slice(start, stop)


def _slabs(start: int, stop: int, numbers_per_row: int, most: int = _SLAB) -> Iterator[slice]:
    step = max(1, most // numbers_per_row)
    for first in range(start, stop, step):
        yield slice(first, min(first + step, stop))


def _put_back(ordered: Images, order: NDArray[np.intp]) -> Images:
    """Rows that were taken in some order, in their own places again."""
    result = np.empty_like(ordered)
    result[order] = ordered
    return result
