"""Local swaps of pixels, as seen through frosted glass."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from testifai.perturb.ops.small import Images, transposed
from testifai.perturb.ops.values import image_shape
from testifai.support.libraries import cv2


def shuffle(images: Images, radius: int, words: NDArray[np.uint16], swap: bool = True) -> Images:
    """Swap pixels with neighbours, one pixel after the other from the lower right to the upper left.

    Pixel (h, w), for h from H − radius down to radius + 1 and w likewise, swaps with (h + dy, w + dx), where dy
    and dx are uniform on −radius … radius − 1 and come from the pixel's random word, words[n, h, w]. Without
    `swap` it takes over its neighbour's colour and the neighbour stays as it is.

    Swaps whose squares of neighbours do not overlap can be done at once. Such are the pixels with the same
    2 · radius · (H − h) + (W − w): this number grows along the order of the swaps wherever squares overlap.
    """
    height, width, channels = image_shape(images)
    count, pixels = len(images), height * width
    state = transposed(_packed(images.reshape(count, pixels, channels)))
    partners = _partners(transposed(words.reshape(count, pixels)), width, radius)
    flat = state.reshape(-1)
    for front in fronts(height, width, radius):
        places = partners[front]
        taken = flat.take(places)
        if swap:
            flat.put(places, state[front])
        state[front] = taken
    return _unpacked(transposed(state), channels).reshape(images.shape)


def _packed(pixels: Images) -> NDArray[np.int32] | Images:
    """Pixels (N, P, C) as one number each, (N, P)."""
    if pixels.shape[2] == 1:
        return pixels[..., 0]
    four: Images = np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2RGBA))
    return four.view(np.int32)[..., 0]


def _unpacked(packed: NDArray[np.int32] | Images, channels: int) -> Images:
    if channels == 1:
        return packed.view(np.uint8)
    return np.asarray(cv2.cvtColor(packed.view(np.uint8).reshape(*packed.shape, 4), cv2.COLOR_RGBA2RGB))


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
    """Slices of flat pixels that are swapped at once, in order."""
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
