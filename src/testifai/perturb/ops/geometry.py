"""Moving pixels: affine warps, displacement fields, resampling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from testifai.perturb.ops.values import SMALL, Images, exact, image_shape, runs, slabs, transposed
from testifai.support.optional_imports import cv2
from testifai.support.types import Array, Floats

_BOXED = 2**16  # numbers per slab of pixelated images, whose sums need four times the memory of the pixels


def about_centre(linear: ArrayLike, height: int, width: int) -> Floats:
    """The 2×3 matrix that applies a linear map while the image's centre stays where it is."""
    map_ = np.asarray(linear, dtype=np.float64)
    centre = np.array([(width - 1) / 2, (height - 1) / 2])
    return np.column_stack([map_, centre - map_ @ centre])


def warp(images: Images, matrices: ArrayLike, which: ArrayLike | None = None, border: int = 0) -> Images:
    """Affine warp, bilinear: a 2×3 matrix maps a pixel (x, y) of the result to the place that it shows.

    `matrices` is one for all images, or several, of which `which` chooses one per image: made for few
    matrices and many images. Places outside the image have the grey level `border`.
    """
    height, width, channels = image_shape(images)
    choices = np.asarray(matrices, dtype=np.float64).reshape(-1, 2, 3)
    given = images.reshape(len(images), height, width, channels)
    order = None if which is None else np.argsort(np.asarray(which, dtype=np.intp), kind="stable")
    chosen: Iterable[tuple[int, slice]] = [(0, slice(0, len(images)))]
    if order is not None:
        given, chosen = given[order], runs(np.asarray(which, dtype=np.intp)[order])
    result = np.empty(given.shape, dtype=np.uint8)
    for choice, run in chosen:
        for part in slabs(run.start, run.stop, height * width * channels):
            if height * width <= SMALL:
                sampler, outside = _sampler(height, width, choices[choice].tobytes())
                result[part] = _sampled(given[part], sampler, border * outside)
            else:
                warped = [_warp_image(one, choices[choice], cv2.BORDER_CONSTANT, border) for one in given[part]]
                result[part] = np.stack(warped)
    return (result if order is None else result[np.argsort(order)]).reshape(images.shape)


def _sampled(images: Images, sampler: csr_array, extra: NDArray[np.float32] | float = 0.0) -> Images:
    """A sparse matrix over flat pixels times every image, plus something per pixel, rounded."""
    count, height, width, channels = images.shape
    pixels = transposed(images.reshape(count, height * width, channels))
    values = sampler @ pixels.astype(np.float32).reshape(height * width, count * channels)
    values += extra + np.float32(0.5)
    return transposed(values.astype(np.uint8).reshape(height * width, count, channels)).reshape(images.shape)


@lru_cache(maxsize=64)
def _sampler(height: int, width: int, matrix: bytes) -> tuple[csr_array, NDArray[np.float32]]:
    """Bilinear sampling as a sparse matrix over flat pixels, and each pixel's weight on the border."""
    rows, columns, weights = _taps(height, width, np.frombuffer(matrix).reshape(2, 3))
    weights = exact(weights)
    inside = (columns >= 0) & (columns < width) & (rows >= 0) & (rows < height)
    target = np.broadcast_to(np.arange(height * width), inside.shape)
    entries = (weights[inside], (target[inside], (rows * width + columns)[inside]))
    sampler = csr_array(entries, shape=(height * width, height * width), dtype=np.float32)
    outside = np.where(inside, 0, weights).sum(axis=0).astype(np.float32)
    return sampler, outside[:, None]


def _taps(height: int, width: int, matrix: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    y, x = np.indices((height, width)).reshape(2, -1)
    place_x, place_y = (row[0] * x + row[1] * y + row[2] for row in matrix)
    left, top = np.floor(place_x), np.floor(place_y)
    right_share, low_share = place_x - left, place_y - top
    columns = np.stack([left, left + 1, left, left + 1]).astype(np.intp)
    rows = np.stack([top, top, top + 1, top + 1]).astype(np.intp)
    weights = np.stack([1 - right_share, right_share] * 2) * np.repeat([1 - low_share, low_share], 2, axis=0)
    return rows, columns, weights


def _warp_image(image: Array, matrix: Floats, mode: int, border: int = 0) -> Array:
    size, flags = (image.shape[1], image.shape[0]), cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    warped = cv2.warpAffine(image, matrix, size, flags=flags, borderMode=mode, borderValue=(border,) * 4)
    return np.asarray(warped).reshape(image.shape)


def mean_of_warps(images: Images, matrices: ArrayLike) -> Images:
    """The mean of several affine warps, the same for all images; see `warp`. Outside, the nearest pixel is repeated."""
    height, width, channels = image_shape(images)
    choices = np.asarray(matrices, dtype=np.float64).reshape(-1, 2, 3)
    stacked = images.reshape(len(images), height, width, channels)
    result = np.empty(stacked.shape, dtype=np.uint8)
    for part in slabs(0, len(images), height * width * channels):
        if height * width <= SMALL:
            result[part] = _sampled(stacked[part], _mean_sampler(height, width, choices.tobytes()))
        else:
            result[part] = _mean_large(stacked[part], choices)
    return result.reshape(images.shape)


@lru_cache(maxsize=16)
def _mean_sampler(height: int, width: int, matrices: bytes) -> csr_array:
    choices = np.frombuffer(matrices).reshape(-1, 2, 3)
    total = csr_array((height * width, height * width), dtype=np.float64)
    for matrix in choices:
        rows, columns, weights = _taps(height, width, matrix)
        sources = rows.clip(0, height - 1) * width + columns.clip(0, width - 1)
        targets = np.broadcast_to(np.arange(height * width), sources.shape)
        entries = (weights.ravel() / len(choices), (targets.ravel(), sources.ravel()))
        total = total + csr_array(entries, shape=total.shape)
    # Rounding the running sum makes every weight a multiple of 2⁻¹⁶, and rows still sum to 1.
    steps = np.diff(np.rint(np.cumsum(total.data) * 2.0**16), prepend=0) / 2.0**16
    return csr_array((steps.astype(np.float32), total.indices, total.indptr), shape=total.shape)


def _mean_large(images: Images, matrices: Floats) -> Images:
    result = np.empty(images.shape, dtype=np.uint8)
    for image, target in zip(images.astype(np.float32), result, strict=True):
        total = np.full(image.shape, 0.5 * len(matrices), dtype=np.float32)
        for matrix in matrices:
            total += _warp_image(image, matrix, cv2.BORDER_REPLICATE)
        target[:] = total / np.float32(len(matrices))
    return result


def grid(like: object, height: int, width: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Every pixel's x, of shape (1, 1, W), and y, (1, H, 1); `like` gives tensors their device."""
    x, y = np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32)
    return x[None, None, :], y[None, :, None]


def displace(images: Images, dx: NDArray[np.float32], dy: NDArray[np.float32]) -> Images:
    """Pixel (x, y) shows the place (x + dx, y + dy), bilinear; the image is mirrored outside (d c b a | a b c d)."""
    height, width, channels = image_shape(images)
    x, y = grid(images, height, width)
    shape = (len(images), height, width)
    across, down = np.broadcast_to(x + dx, shape), np.broadcast_to(y + dy, shape)
    result = np.empty((*shape, channels), dtype=np.uint8)
    for image, to_x, to_y, target in zip(images.reshape(result.shape), across, down, result, strict=True):
        cv2.remap(image, to_x, to_y, cv2.INTER_LINEAR, dst=target, borderMode=cv2.BORDER_REFLECT)
    return result.reshape(images.shape)


def resample(
    layer: NDArray[np.float32], rows: NDArray[np.floating], columns: NDArray[np.floating]
) -> NDArray[np.float32]:
    """Layers sampled bilinearly at every pair of the given rows and columns, which may lie between pixels."""
    return _between(_between(layer, rows, 1), columns, 2)


def _between(layer: NDArray[np.float32], places: NDArray[np.floating], axis: int) -> NDArray[np.float32]:
    last = layer.shape[axis] - 1
    inside = np.clip(places, 0, last)
    first = np.floor(inside).astype(np.intp)
    share = (inside - first).astype(np.float32)
    share = share[:, None] if axis == 1 else share
    before = layer.take(first, axis=axis)
    return np.asarray(before + share * (layer.take(np.minimum(first + 1, last), axis=axis) - before))


def resize(images: Images, height: int, width: int) -> Images:
    """Images at another size: means over areas if it is smaller, bilinear if it is larger."""
    way = cv2.INTER_AREA if height <= images.shape[1] else cv2.INTER_LINEAR
    resized = [cv2.resize(image, (width, height), interpolation=way) for image in images]
    return np.asarray(resized, dtype=np.uint8).reshape(len(images), height, width, images.shape[3])


def pixelate(images: Images, rows: int, columns: int) -> Images:
    """Show in every pixel the mean of its box, as Pillow's resize does, down with BOX and up with NEAREST."""
    height, width, channels = image_shape(images)
    result = np.empty((len(images), height, width, channels), dtype=np.uint8)
    for part in slabs(0, len(images), height * width * channels, _BOXED):
        result[part] = _pixelated(images[part].reshape(-1, height, width, channels), rows, columns)
    return result.reshape(images.shape)


def _pixelated(images: Images, rows: int, columns: int) -> Images:
    # Columns are transposed to rows before they are chosen: whole rows are copied far faster than single pixels.
    count, height, width, channels = images.shape
    (tops, bottoms), (lefts, rights) = box_edges(height, rows), box_edges(width, columns)
    # Sums of all pixels above and to the left. The sums of boxes are right even if these wrap around.
    totals = np.asarray(cv2.integral(images.reshape(count * height, width, channels)))
    totals = totals.reshape(count * height + 1, width + 1, channels)
    first = height * np.arange(count)[:, None]
    bands = transposed(totals.take((first + bottoms).ravel(), axis=0) - totals.take((first + tops).ravel(), axis=0))
    sums = (bands.take(rights, axis=0) - bands.take(lefts, axis=0)).astype(np.float32)
    areas = (rights - lefts).astype(np.float32)[:, None, None] * (bottoms - tops).astype(np.float32).repeat(channels)
    means = (sums.reshape(columns, count, -1) / areas + np.float32(0.5)).astype(np.uint8)
    shown = transposed(means.take(box_shown(width, columns), axis=0).reshape(width, count * rows, channels))
    return shown.reshape(count, rows, width, channels).take(box_shown(height, rows), axis=1)


@lru_cache(maxsize=64)
def box_edges(size: int, boxes: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Starts and ends of boxes. If a pixel's centre is on an edge, the rounding errors of Pillow's sums decide."""
    scale = size / boxes
    centres = (np.arange(boxes) + 0.5) * scale
    starts, ends = ((centres + side * scale / 2 + 0.5).astype(np.intp) for side in (-1, 1))
    starts += (starts + 0.5 - centres) * (1 / scale) <= -0.5
    ends -= (ends - 0.5 - centres) * (1 / scale) > 0.5
    return starts, ends


@lru_cache(maxsize=64)
def box_shown(size: int, boxes: int) -> NDArray[np.intp]:
    """The box under the centre of each pixel; here, too, the errors of Pillow's sum of steps decide on an edge."""
    steps = np.full(size, boxes / size)
    steps[0] /= 2
    return np.minimum(np.cumsum(steps).astype(np.intp), boxes - 1)


def shuffle(images: Images, radius: int, words: NDArray[np.uint16], swap: bool = True) -> Images:
    """Swap pixels with neighbours, one pixel after the other from the lower right to the upper left.

    Pixel (h, w), for h from H − radius down to radius + 1 and w likewise, swaps with (h + dy, w + dx), where dy
    and dx are uniform on −radius … radius − 1 and come from the pixel's random word, words[n, h, w]. Without
    `swap` it is overwritten by its neighbour, which is unchanged.

    Swaps whose squares of neighbours do not overlap can be done together. Such are the pixels with the same
    2 · radius · (H − h) + (W − w): this number grows along the order of the swaps wherever squares overlap.
    """
    height, width, channels = image_shape(images)
    count, pixels = len(images), height * width
    numbers = images.reshape(count, pixels, channels)
    if channels == 3:  # one number per pixel
        numbers = np.asarray(cv2.cvtColor(numbers, cv2.COLOR_RGB2RGBA)).view(np.int32)
    state = transposed(numbers[..., 0])
    partners = _partners(transposed(words.reshape(count, pixels)), width, radius)
    flat = state.reshape(-1)
    for front in fronts(height, width, radius):
        places = partners[front]
        taken = flat.take(places)
        if swap:
            flat.put(places, state[front])
        state[front] = taken
    swapped = transposed(state).view(np.uint8)
    if channels == 3:
        swapped = np.asarray(cv2.cvtColor(swapped.reshape(count, pixels, 4), cv2.COLOR_RGBA2RGB))
    return swapped.reshape(images.shape)


def _partners(words: NDArray[np.uint16], width: int, radius: int) -> NDArray[np.intp]:
    """Where the pixels (P, N) swap to, as flat indices into an array of that shape."""
    pixels, count = words.shape
    side = 2 * radius
    down, right = np.divmod(np.arange(side * side), side)
    jumps = (down - radius) * width + right - radius
    drawn = (words * np.uint32(side * side)) >> np.uint32(16)
    partners: NDArray[np.intp] = (jumps * count).take(drawn)
    partners += np.arange(pixels * count).reshape(pixels, count)
    return partners


def fronts(height: int, width: int, radius: int) -> Iterator[slice]:
    """Slices of flat pixels that are swapped together, in order."""
    side = 2 * radius
    rows, columns = height - side, width - side
    if min(rows, columns) <= 0:
        return
    for number in range(side * (rows - 1) + columns):
        # Counted from the lower right corner of the pixels that move: row 0 … rows - 1, column number - side * row.
        first = max(0, -(-(number - columns + 1) // side))
        last = min(rows - 1, number // side)
        top, bottom = (
            (height - radius - row) * width + width - radius - (number - side * row) for row in (last, first)
        )
        yield slice(top, bottom + 1, columns)
