"""JPEG compression of images at a given quality."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from testifai.perturb.ops.values import SMALL, Images, image_shape, slabs
from testifai.support.optional_imports import cv2
from testifai.support.threads import one_blas_thread
from testifai.support.validation import number

# The tables of the standard's annex K (ITU-T T.81), for brightness and for colour, at quality 50.
_BRIGHTNESS = [
    [16, 11, 10, 16, 24, 40, 51, 61],
    [12, 12, 14, 19, 26, 58, 60, 55],
    [14, 13, 16, 24, 40, 57, 69, 56],
    [14, 17, 22, 29, 51, 87, 80, 62],
    [18, 22, 37, 56, 68, 109, 103, 77],
    [24, 35, 55, 64, 81, 104, 113, 92],
    [49, 64, 78, 87, 103, 121, 120, 101],
    [72, 92, 95, 98, 112, 100, 103, 99],
]
_COLOUR = [
    [17, 18, 24, 47, 99, 99, 99, 99],
    [18, 21, 26, 66, 99, 99, 99, 99],
    [24, 26, 56, 99, 99, 99, 99, 99],
    [47, 66, 99, 99, 99, 99, 99, 99],
    *[[99] * 8] * 4,
]
# From red, green and blue to Y, Cr and Cb (ITU-T T.871), in libjpeg's arithmetic: 16 bits after the point, and
# halves of colour rounded down.
SEPARATION = np.array([[19595, 38470, 7471], [32768, -27439, -5329], [-11059, -21709, 32768]], np.float32) / 2**16
OFFSETS = np.array([[0.5], [128.5 - 2**-16], [128.5 - 2**-16]], np.float32)
# Weights of the cosine transform are multiples of this: with levels of 8 bits every partial sum fits a float32.
_UNIT = 2.0**-13


def jpeg(images: Images, quality: int) -> Images:
    """Images after JPEG compression as libjpeg does it by default, with colour at half the resolution.

    Large images are compressed by libjpeg; small ones go through its lossy steps.
    """
    height, width, channels = image_shape(images)
    number("quality", quality, least=1, most=100)
    stacked = np.ascontiguousarray(images).reshape(-1, height, width, channels)
    if height * width > SMALL:
        return np.stack([_stored(image, quality) for image in stacked]).reshape(images.shape)
    result = np.empty(stacked.shape, dtype=np.uint8)
    with one_blas_thread():
        for part in slabs(0, len(images), height * width * channels):
            result[part] = _lossy(stacked[part], quality)
    return result.reshape(images.shape)


def _stored(image: Images, quality: int) -> Images:
    colour = image.shape[2] == 3
    source = cv2.cvtColor(image, cv2.COLOR_RGB2BGR) if colour else image  # OpenCV reverses the order of colours
    _, code = cv2.imencode(".jpg", source, [cv2.IMWRITE_JPEG_QUALITY, quality])
    decoded = cv2.imdecode(code, cv2.IMREAD_COLOR if colour else cv2.IMREAD_GRAYSCALE)
    return np.asarray(cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB) if colour else decoded, dtype=np.uint8)


def _lossy(images: Images, quality: int) -> Images:
    count, height, width, channels = images.shape
    brightness_steps, colour_steps = rounding_steps(quality)
    if channels == 1:
        return _rounded(_padded(images, 8)[..., 0], brightness_steps)[:, :height, :width, None]
    padded = _padded(images, 16)
    tall, wide = padded.shape[1:3]
    planes = np.asarray(cv2.split(padded.reshape(-1, wide, 3)), dtype=np.uint8).reshape(3, -1)
    separated = SEPARATION @ planes.astype(np.float32)
    separated += OFFSETS
    given = separated.astype(np.uint8).reshape(3 * count, tall, wide)
    brightness, colour = given[:count], _halved(given[count:])
    # libjpeg pads columns before it halves, and rows after.
    last = (height - 1) // 2
    colour[:, last + 1 :] = colour[:, last : last + 1]
    brightness = np.ascontiguousarray(_rounded(brightness, brightness_steps)[:, :height, :width])
    colour = _doubled(_rounded(colour, colour_steps), height, width)
    left = [plane.reshape(-1, width) for plane in (brightness, colour[:count], colour[count:])]
    merged = cv2.cvtColor(cv2.merge(left), cv2.COLOR_YCrCb2RGB)
    return np.asarray(merged, dtype=np.uint8).reshape(images.shape)


def _padded(images: Images, multiple: int) -> Images:
    for axis in (1, 2):
        size = images.shape[axis]
        if size % multiple:
            places = np.arange(-(-size // multiple) * multiple).clip(max=size - 1)
            images = images.take(places, axis=axis)
    return images


@lru_cache(maxsize=16)
def rounding_steps(quality: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Quantisation steps of the 64 frequencies, of brightness and of colour: libjpeg's scaling of the tables."""
    percent = 5000 // quality if quality < 50 else 200 - 2 * quality
    scaled = (np.array([_BRIGHTNESS, _COLOUR]) * percent + 50) // 100
    brightness, colour = scaled.clip(1, 255).astype(np.float32).reshape(2, 64)
    return brightness, colour


@lru_cache(maxsize=1)
def cosines() -> NDArray[np.float32]:
    """The cosine transform of a block of 8 × 8 pixels as a matrix (frequency, pixel)."""
    frequency, place = np.indices((8, 8))
    waves = np.cos((2 * place + 1) * frequency * np.pi / 16) * np.where(frequency == 0, np.sqrt(1 / 8), 0.5)
    return (np.rint(np.kron(waves, waves) / _UNIT) * _UNIT).astype(np.float32)


def _rounded(planes: Images, steps: NDArray[np.float32]) -> Images:
    """Planes (N, H, W), their sides multiples of 8, with the frequencies of each block rounded to steps."""
    width = planes.shape[2]
    # The eight bytes of a block's row move as one number.
    words = planes.reshape(-1, 8, width).view(np.uint64).transpose(0, 2, 1)
    blocks = np.ascontiguousarray(words).view(np.uint8).reshape(-1, 64)
    # Levels less 128, as signed bytes.
    blocks ^= np.uint8(128)
    waves = cosines()
    # libjpeg rounds twice: to eighths, then to steps, halves away from zero; hence the nudge.
    frequencies = blocks.view(np.int8).astype(np.float32) @ (8 * waves.T)
    np.rint(frequencies, out=frequencies)
    frequencies *= np.float32(1.000001 / 8) / steps
    np.rint(frequencies, out=frequencies)
    values = frequencies @ (steps[:, None] * waves)
    values += np.float32(128.5)
    np.clip(values, 0, 255, out=values)
    words = values.astype(np.uint8).view(np.uint64).reshape(-1, width // 8, 8).transpose(0, 2, 1)
    return np.ascontiguousarray(words).view(np.uint8).reshape(planes.shape)


def _halved(planes: Images) -> Images:
    """Means of 2 × 2 pixels; halves go down and up in turn, as in libjpeg."""
    pairs = planes.view(np.uint16)
    sums = (pairs & 255) + (pairs >> 8)
    sums = sums[:, ::2] + sums[:, 1::2]
    sums += np.resize([1, 2], sums.shape[2]).astype(np.uint16)
    return (sums >> 2).astype(np.uint8)


def _doubled(planes: Images, height: int, width: int) -> Images:
    """Twice as many rows and columns, cut to a size: libjpeg's "fancy upsampling", halves down and up in turn."""
    wide = planes.reshape(-1, planes.shape[2]).astype(np.float32) @ doubling(width, planes.shape[2]).T
    values = np.matmul(doubling(height, planes.shape[1]), wide.reshape(len(planes), -1, width))
    values += np.resize([8 / 16, 7 / 16], width).astype(np.float32)
    return np.asarray(values.astype(np.uint8))


@lru_cache(maxsize=16)
def doubling(size: int, given: int) -> NDArray[np.float32]:
    """A matrix from half as many numbers: three quarters of the nearest one and a quarter of the next."""
    target = np.arange(size)
    last = (size - 1) // 2
    matrix = np.zeros((size, given), dtype=np.float32)
    matrix[target, target // 2] = 0.75
    matrix[target, (target // 2 + target % 2 * 2 - 1).clip(0, last)] += 0.25
    return matrix
