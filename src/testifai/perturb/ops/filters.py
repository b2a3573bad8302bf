"""Blurs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.perturb.ops.values import SMALL, Images, exact, image_shape, runs, slabs
from testifai.support.optional_imports import cv2
from testifai.support.threads import one_blas_thread
from testifai.support.types import Array, Floats
from testifai.support.validation import choice, number


def canny(grey: Images, low: float, high: float) -> Images:
    """Edges by Canny (1986) as 0 and 1, for grey levels (N, H, W): 3×3 Sobel, gradient |dx| + |dy|."""
    return _each(grey, lambda image: cv2.Canny(image, low, high)) & np.uint8(1)  # OpenCV marks an edge by 255


def distance(edges: Images, most: float) -> NDArray[np.float32]:
    """Distance in pixels to the nearest edge pixel (not 0), at most `most`: Borgefors (1986), 5×5 chamfer mask."""
    free = (edges == 0).view(np.uint8)
    away: NDArray[np.float32] = np.stack([cv2.distanceTransform(image, cv2.DIST_L2, 5) for image in free])
    return np.minimum(away, np.float32(most), out=away)


def equalise(grey: Images) -> Images:
    """Spread the levels of each grey image (N, H, W) so that all are about equally frequent."""
    return _each(grey, cv2.equalizeHist)


_GROUPED = 2**22  # numbers per slab of images that are sorted into groups, which should not be too small
_TAIL = 1e-4  # share of a blur's weight that may be cut off at its far end: 0.03 grey levels at most
_DISCS = 2**18  # numbers of mirrored images per slab of the blur with a disc
WIDEST = 128  # largest radius of a disc


def line_blur(images: Images, degrees: ArrayLike, length: float, sigma: float) -> Images:
    """Blur along a straight line that starts at each pixel: half a Gaussian, edge pixels repeated.

    `degrees` has an integer angle from −45 to 45 per image, clockwise from the x axis (y points down);
    `length` and `sigma` are in pixels along the line. A line at an angle becomes a row once every column x is
    shifted by round(x · tan angle) pixels: columns are shifted, rows blurred, and columns shifted back.
    """
    height, width, channels = image_shape(images)
    stacked = images.reshape(len(images), height, width, channels)
    planes = stacked.transpose(0, 3, 1, 2).reshape(-1, height * width)
    angles = np.repeat(np.asarray(degrees, dtype=np.int64), channels)
    order = np.argsort(angles, kind="stable")
    ordered = np.empty(planes.shape, dtype=np.uint8)
    line = _cached_line if height * width <= SMALL else _line
    for part in slabs(0, len(planes), height * width, _GROUPED):
        lines = ((rows, line(height, width, angle, length, sigma)) for angle, rows in runs(angles[order[part]]))
        ordered[part] = _blur_lines(planes[order[part]], lines)
    blurred = ordered[np.argsort(order)].reshape(-1, channels, height, width)
    return blurred.transpose(0, 2, 3, 1).reshape(images.shape)


class _Line(NamedTuple):
    shear: NDArray[np.intp]  # (rows, width + taps - 1): flat pixels, in which lines of the angle are rows
    band: NDArray[np.float32]  # (width + taps - 1, width): the blur of a row as a matrix
    weights: NDArray[np.float32]  # (1, taps)
    unshear: NDArray[np.intp]  # (height * width,): positions of the result's pixels in the blurred rows


def _line(height: int, width: int, degrees: int, length: float, sigma: float) -> _Line:
    angle = np.deg2rad(degrees)
    weights = half_gaussian(length * np.cos(angle), sigma * np.cos(angle))
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


_cached_line = lru_cache(maxsize=512)(_line)  # enough for all angles of five severities


def half_gaussian(length: float, sigma: float) -> NDArray[np.float32]:
    """Weights of taps one pixel apart from 0 to length, without a negligible tail."""
    taps = np.exp(-0.5 * (np.arange(int(length + 1e-9) + 1) / sigma) ** 2)
    taps /= taps.sum()
    taps = taps[: 1 + int(np.searchsorted(np.cumsum(taps), 1 - _TAIL))]
    return exact((taps / taps.sum())[:, None])[:, 0].astype(np.float32)


def _blur_lines(planes: Images, lines: Iterator[tuple[slice, _Line]]) -> Images:
    result = np.empty(planes.shape, dtype=np.uint8)
    with one_blas_thread():
        for part, line in lines:
            count, (rows, columns) = part.stop - part.start, line.shear.shape
            sheared = planes[part].take(line.shear.ravel(), axis=1, mode="clip").astype(np.float32)
            stacked = sheared.reshape(count * rows, columns)
            if len(line.band):
                blurred = stacked @ line.band
            else:
                blurred = cv2.filter2D(stacked, cv2.CV_32F, line.weights, anchor=(0, 0))[:, : line.band.shape[1]]
            values = blurred.reshape(count, -1).take(line.unshear, axis=1, mode="clip")
            values += np.float32(0.5)
            result[part] = values
    return result


def gaussian(
    values: Array, sigma: float | tuple[float, float], truncate: float = 4.0, border: str = "nearest"
) -> Array:
    """Blur images or a layer; sigma in pixels, or (down, across); border="mirror" repeats the edge (c b a | a b c)."""
    choice("border", border, ("nearest", "mirror"))
    height, width = values.shape[1:3]
    sides = zip(np.broadcast_to(sigma, 2).tolist(), (height, width), strict=True)
    down, across = (_Gaussian(one, truncate, side, border) for one, side in sides)
    if values.dtype == np.uint8 and height * width <= SMALL:
        return _blurred_small(_stacked(values), down, across).reshape(values.shape)
    mode = cv2.BORDER_REPLICATE if border == "nearest" else cv2.BORDER_REFLECT
    taps = across.taps(), down.taps()

    def blur(values: Array) -> Array:
        return np.asarray(cv2.sepFilter2D(values, cv2.CV_32F, *taps, borderType=mode), dtype=np.float32)

    if values.dtype == np.uint8:
        return _each(values, lambda image: blur(image.astype(np.float32)) + np.float32(0.5))
    layers = np.ascontiguousarray(values, dtype=np.float32)
    # A matrix product costs the same for every radius.
    if height * width <= SMALL or 8 * (down.radius + across.radius) > height + width:
        with one_blas_thread():
            return np.asarray(np.matmul(np.matmul(_band(down), layers), _band(across).T))
    return np.stack([blur(layer) for layer in layers])


class _Gaussian(NamedTuple):
    sigma: float
    truncate: float
    size: int
    border: str

    @property
    def radius(self) -> int:
        return int(self.truncate * self.sigma + 0.5)

    def taps(self) -> Floats:
        return bell(self.radius, self.sigma)


def bell(radius: int, sigma: float) -> Floats:
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / max(sigma, 1e-9)) ** 2)
    return np.asarray(weights / weights.sum())


@lru_cache(maxsize=64)
def _band(blur: _Gaussian, bits: int | None = None) -> NDArray[np.float32]:
    """The blur as a matrix; with `bits`, its weights are multiples of 2^-bits that sum to 1."""
    taps = blur.taps() if bits is None else multiples(blur.taps(), bits)
    return blur_matrix(taps, -blur.radius, blur.size, blur.border).astype(np.float32)


def multiples(weights: Floats, bits: int) -> Floats:
    """Weights that sum to 1, rounded to multiples of 2^-bits that still do."""
    steps = np.rint(weights * 2.0**bits)
    steps[steps.argmax()] += 2.0**bits - steps.sum()
    return steps / 2.0**bits


def blur_matrix(weights: Floats, start: int, side: int, border: str) -> Floats:
    """The matrix that gives each position the weighted sum of those that begin `start` away from it."""
    places = np.arange(side)[:, None]
    matrix = np.zeros((side, side))
    np.add.at(matrix, (places, reflected(places + start + np.arange(len(weights)), side, border)), weights)
    return matrix


def reflected(places: NDArray[np.intp], side: int, border: str) -> NDArray[np.intp]:
    """The positions inside an image that positions outside show."""
    if border == "nearest":
        return places.clip(0, side - 1)
    # Mirrored with the edge pixel repeated (d c b a | a b c d), or without (d c b | a b c d).
    period, last = (2 * side, 2 * side - 1) if border == "mirror" else (max(2 * side - 2, 1), 2 * side - 2)
    places = places % period
    return np.minimum(places, last - places)


def _blurred_small(images: Images, down: _Gaussian, across: _Gaussian) -> Images:
    """Two exact products: 8 bits times weights of 16 fit a float32, then eighths of a level (11 bits) times 13."""
    count, height, width, channels = images.shape
    eighths, whole = 8 * _band(down, 16), _band(across, 13) / 8
    result = np.empty(images.shape, dtype=np.uint8)
    for part in slabs(0, count, height * width * channels):
        pixels = _pixels_first(images[part]).astype(np.float32)
        with one_blas_thread():
            rows = eighths @ pixels.reshape(height, -1)
            np.rint(rows, out=rows)
            blurred = np.matmul(whole, rows.reshape(height, width, -1))
        blurred += np.float32(0.5)
        result[part] = _images_first(blurred.astype(np.uint8), part.stop - part.start)
    return result


def disc_blur(images: Images, radius: float, alias_blur: float) -> Images:
    """Blur of a lens out of focus: the mean over a disc, its rim softened by a small Gaussian.

    The disc has the pixels with x² + y² ≤ radius²; the Gaussian, of sigma `alias_blur`, has 3 × 3 taps, or
    5 × 5 if the radius is above 8. Outside, the image is mirrored without repeating its edge.
    Kernel of Hendrycks and Dietterich, "Benchmarking neural network robustness", ICLR 2019.
    """
    stacked = _stacked(images)
    number("radius", radius, least=0, most=WIDEST)
    square = int(radius * radius)
    reaches = [math.isqrt(square - across * across) for across in range(math.isqrt(square) + 1)]
    rim = 2 if radius > 8 else 1
    taps = bell(rim, alias_blur)
    count, height, width, channels = stacked.shape
    margin = rim + reaches[0]
    result = np.empty(stacked.shape, dtype=np.uint8)
    for part in slabs(0, count, (height + 2 * margin) * (width + 2 * margin) * channels, _DISCS):
        padding = ((0, 0), (margin, margin), (margin, margin), (0, 0))
        pixels = _pixels_first(np.pad(stacked[part], padding, "reflect")).astype(np.uint16)
        means = _images_first(_disc_means(pixels, reaches), part.stop - part.start)
        # One tall image: neighbouring images only affect the rims, which are cut off.
        tall = means.reshape(-1, *means.shape[2:])
        soft = cv2.sepFilter2D(tall, cv2.CV_32F, taps, taps).reshape(means.shape)
        result[part] = soft[:, rim:-rim, rim:-rim] + np.float32(0.5)
    return result.reshape(images.shape)


def _disc_means(pixels: NDArray[np.uint16], reaches: list[int]) -> NDArray[np.float32]:
    """Means over a disc; `reaches` are the half heights of its columns, from the middle outwards."""
    widest = reaches[0]
    height, width = (size - 2 * widest for size in pixels.shape[:2])
    columns = np.zeros((height, *pixels.shape[1:]), dtype=np.uint16)
    total = np.zeros((height, width, pixels.shape[2]), dtype=np.float32)
    some = np.zeros(total.shape, dtype=np.uint16)
    counted = summed = 0
    for reach in range(widest + 1):
        for top in {widest - reach, widest + reach}:
            columns += pixels[top : top + height]
        for across in (place for place, known in enumerate(reaches) if known == reach):
            for left in {widest - across, widest + across}:
                # Sums of 16 bits take half the time of longer ones, and do not overflow up to 257 pixels.
                if counted + 2 * reach + 1 - summed > 257:
                    total += some
                    some[:] = 0
                    summed = counted
                some += columns[:, left : left + width]
                counted += 2 * reach + 1
    total += some
    total *= np.float32(1 / counted)
    return total


def box_blur(images: Images, size: int) -> Images:
    """Mean over a square of size × size pixels, mirrored at the border without repeating the edge."""
    return _each(images, lambda image: cv2.blur(image, (size, size)))


def median_blur(images: Images, size: int) -> Images:
    """Median over a square of size × size pixels, edge pixels repeated outside."""
    return _each(images, lambda image: cv2.medianBlur(image, size))


def bilateral_blur(images: Images, diameter: int, sigma_colour: float, sigma_space: float) -> Images:
    """Mean over a disc, weighted by nearness in place and in colour, mirrored at the border."""
    return _each(images, lambda image: cv2.bilateralFilter(image, diameter, sigma_colour, sigma_space))


def _each(images: Images, change: Callable[[Images], Array]) -> Images:
    image_shape(images)
    result = np.empty(images.shape, dtype=np.uint8)
    for image, target in zip(images, result, strict=True):
        target[:] = change(image).reshape(target.shape)
    return result


def _stacked(images: Images) -> Images:
    return images.reshape(len(images), *image_shape(images))


def _pixels_first(images: Images) -> Images:
    count, height, width, _ = images.shape
    turned = np.asarray(cv2.transpose(images.reshape(count, -1)), dtype=np.uint8)
    return turned.reshape(height, width, -1)


def _images_first(pixels: Array, count: int) -> Array:
    height, width = pixels.shape[:2]
    return np.asarray(cv2.transpose(pixels.reshape(-1, count))).reshape(count, height, width, -1)
