"""Pixel values: conversions, tables, colour, statistics of an image."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.errors import InputError
from testifai.support.optional_imports import cv2
from testifai.support.types import Array, Bools, Floats

Images = NDArray[np.uint8]

SMALL = 64 * 64  # largest number of pixels of a small image
_STEP = 2.0**16
_SLAB = 2**18  # numbers per slab: few enough for a float copy to stay in the processor's cache
_COLOURS = 2**17  # numbers per slab with several float copies of a colour plane
_LUMA = (0.299, 0.587, 0.114)


def exact(weights: Floats) -> Floats:
    """Weights that sum to 1 along the first axis, as multiples of 2⁻¹⁶ that still do."""
    steps = np.rint(weights * _STEP)
    largest = steps.argmax(axis=0)[None]
    rest = _STEP - steps.sum(axis=0, keepdims=True)
    np.put_along_axis(steps, largest, np.take_along_axis(steps, largest, axis=0) + rest, axis=0)
    return steps / _STEP


def runs(labels: NDArray[np.integer]) -> Iterator[tuple[int, slice]]:
    found, starts = np.unique(labels, return_index=True)
    stops = [*starts[1:].tolist(), len(labels)]
    for label, start, stop in zip(found.tolist(), starts.tolist(), stops, strict=True):
        yield label, slice(start, stop)


def slabs(start: int, stop: int, numbers_per_row: int, most: int = _SLAB) -> Iterator[slice]:
    step = max(1, most // numbers_per_row)
    for first in range(start, stop, step):
        yield slice(first, min(first + step, stop))


def transposed(rows: Array) -> Array:
    """The first two axes swapped, with a third one of one or three channels: far faster than a copy by NumPy."""
    return np.asarray(cv2.transpose(rows)).reshape(rows.shape[1], rows.shape[0], *rows.shape[2:])


def image_shape(images: Array) -> tuple[int, int, int]:
    """Height, width and number of channels of the images of a batch, or an InputError."""
    if not isinstance(images, np.ndarray):
        raise InputError(f"images must be an array, got a {type(images).__name__}")
    if images.dtype != np.uint8:
        raise InputError(
            f"images must be uint8 (0 to 255), got {images.dtype}; "
            "images in 0..1 convert with np.rint(255 * images).astype(np.uint8)"
        )
    return layout(images.shape, "images.transpose(0, 2, 3, 1)")


def layout(shape: tuple[int, ...], channels_last: str) -> tuple[int, int, int]:
    """Height, width and channels from the shape of a batch, or an InputError with the code that converts it."""
    if len(shape) not in (3, 4) or (len(shape) == 4 and shape[3] not in (1, 3)):
        raise InputError(
            f"images must have shape (N, H, W), (N, H, W, 1) or (N, H, W, 3), got {shape}; "
            f"channels first converts with {channels_last}"
        )
    return shape[1], shape[2], shape[3] if len(shape) == 4 else 1


def lookup(images: Images, table: NDArray[np.uint8]) -> Images:
    """Every pixel replaced by its entry in a table of 256."""
    image_shape(images)
    flat = np.ascontiguousarray(images).reshape(len(images), -1)
    return np.asarray(cv2.LUT(flat, table)).reshape(images.shape)


def brighten(images: Images, amount: float) -> Images:
    """Add to the V of hue, saturation and value, where 1 is white; for grey pixels that is a plain sum."""
    raised, factors, offsets = brightening(float(amount))
    if image_shape(images)[2] == 1:
        return lookup(images, raised)

    def change(planes: list[Images]) -> None:
        highest = np.maximum(np.maximum(planes[0], planes[1]), planes[2])
        factor, offset = cv2.LUT(highest, factors), cv2.LUT(highest, offsets)
        for plane in planes:
            plane[:] = plane * factor + offset

    return _recoloured(images, change)


@lru_cache(maxsize=64)
def brightening(amount: float) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.float32]]:
    """By value: the raised level, the factor of every channel, and the offset that rounds it (and makes black grey)."""
    value = np.arange(256)
    raised = np.clip(value + 255 * amount, 0, 255)
    factors = (raised / np.maximum(value, 1)).astype(np.float32)
    offsets = np.where(value == 0, raised[0] + 0.5, 0.5).astype(np.float32)
    return np.floor(raised + 0.5).astype(np.uint8), factors, offsets


def saturate(images: Images, factor: float, offset: float) -> Images:
    """Saturation of hue, saturation and value times `factor` plus `offset`; grey has the hue red, as usual."""
    if image_shape(images)[2] == 1:
        return images.copy()
    table = saturation_stretches(factor, offset)

    def change(planes: list[Images]) -> None:
        highest = np.maximum(np.maximum(planes[0], planes[1]), planes[2])
        lowest = np.minimum(np.minimum(planes[0], planes[1]), planes[2])
        stretch = table.take(highest.astype(np.intp) << 8 | lowest, mode="wrap")
        coloured = (highest != lowest).view(np.uint8)
        # Grey becomes a red that is as bright and fully saturated.
        for plane in planes[1:]:
            plane *= coloured
        rounded = highest + np.float32(0.5)
        for plane in planes:
            plane[:] = rounded - (highest - plane) * stretch

    return _recoloured(images, change)


@lru_cache(maxsize=16)
def saturation_stretches(factor: float, offset: float) -> NDArray[np.float32]:
    """By 256 · highest + lowest channel: the factor on the distance from the highest; for grey the new saturation."""
    highest, lowest = np.indices((256, 256))
    saturation = (highest - lowest) / np.maximum(highest, 1)
    wanted = np.clip(saturation * factor + offset, 0, 1)
    return (wanted / np.where(saturation > 0, saturation, 1)).astype(np.float32).ravel()


def _recoloured(images: Images, change: Callable[[list[Images]], None]) -> Images:
    height, width, channels = images.shape[1:]
    result = np.empty(images.shape, dtype=np.uint8)
    for part in slabs(0, len(images), height * width * channels, _COLOURS):
        planes = [np.asarray(plane, dtype=np.uint8) for plane in cv2.split(images[part].reshape(-1, width, channels))]
        change(planes)
        cv2.merge(planes, result[part].reshape(-1, width, channels))
    return result


def floats(images: Images) -> NDArray[np.float32]:
    return images.astype(np.float32)


def levels(values: NDArray[np.floating]) -> Images:
    """The nearest whole grey level from 0 to 255, halves upwards."""
    return np.asarray(np.clip(values + np.float32(0.5), 0, 255).astype(np.uint8))


def take(table: NDArray[np.float32], field: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Every word of a field replaced by its entry in a table of 65,536."""
    return table.take(field, mode="wrap")  # no word is outside; "wrap" saves the check


def uniform(field: NDArray[np.uint16], low: float = 0.0, high: float = 1.0) -> NDArray[np.float32]:
    """The words of a field as numbers between low and high, evenly spread."""
    step = (high - low) / 65536
    return field * np.float32(step) + np.float32(low + step / 2)


def draw_levels(images: Images, field: NDArray[np.uint16], table: NDArray[np.uint8]) -> Images:
    """table[pixel, word] for every pixel: a draw from the distribution of its grey level."""
    places = images.astype(np.intp) << 16
    places |= field
    return table.ravel().take(places, mode="wrap")


def per_image(numbers: ArrayLike) -> NDArray[np.float32]:
    """A number for each image, in a shape that broadcasts over images."""
    return np.asarray(numbers, dtype=np.float32).reshape(-1, 1, 1, 1)


def channel_means(images: Images) -> NDArray[np.float32]:
    """Mean level of each channel of each image, (N, 1, 1, C)."""
    height, width, channels = image_shape(images)
    sums = np.array([cv2.sumElems(image)[:channels] for image in images])  # integer sums are exact
    return (sums / (height * width)).astype(np.float32).reshape(-1, 1, 1, channels)


def stretch(images: Images, factor: float, offsets: NDArray[np.float32]) -> Images:
    """Levels · factor + offsets, where each image has an offset per channel, (N, 1, 1, C)."""
    count, height, width, channels = images.shape
    # Rows of width · channels numbers: loops over three channels would be far slower.
    values = images.reshape(count, height, width * channels).astype(np.float32)
    values *= np.float32(factor)
    values += np.tile(offsets.reshape(count, 1, channels), (1, 1, width))
    return levels(values).reshape(images.shape)


def largest(values: Array) -> NDArray[np.float32]:
    """Largest number of each image or layer."""
    return np.asarray(values.max(axis=tuple(range(1, values.ndim)), keepdims=True), np.float32)


def luma(values: Array) -> NDArray[np.float32]:
    """Brightness as the eye weighs it, from images or floats, (N, H, W, 1): 0.299 R + 0.587 G + 0.114 B."""
    if values.shape[-1] == 1:
        return values.astype(np.float32)
    red, green, blue = (values[..., channel : channel + 1] * np.float32(w) for channel, w in enumerate(_LUMA))
    return red + green + blue


def where(condition: Bools, a: ArrayLike, b: ArrayLike) -> Array:
    result: Array = np.where(condition, a, b)
    # Two plain numbers would come out as float64.
    return result.astype(np.float32) if result.dtype == np.float64 else result


def zeros(like: Array, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Float32 zeros where `like` is."""
    return np.zeros(shape, dtype=np.float32)


def crops(textures: Images, which: ArrayLike, tops: ArrayLike, lefts: ArrayLike, height: int, width: int) -> Images:
    """For each image a window of the texture `which` of (T, TH, TW, C) with its corner at (tops, lefts)."""
    corners = np.column_stack([which, tops, lefts]).tolist()
    return np.stack([textures[texture, top : top + height, left : left + width] for texture, top, left in corners])
