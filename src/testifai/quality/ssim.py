"""Structural similarity of images, input by input.

Wang, Bovik, Sheikh and Simoncelli, "Image quality assessment: from error visibility to structural similarity" (IEEE
Transactions on Image Processing 13, 2004), Eq. 13 with the paper's constants: a Gaussian window of 11×11 pixels with
standard deviation 1.5, K1 = 0.01, K2 = 0.03; the mean over all pixels and channels. Images are reflected at their
borders, as often as needed where they are smaller than the window.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from testifai.errors import InputError
from testifai.quality.base import SAMPLE, Compare, PerInputMeasure
from testifai.support.batches import Batch, are_images
from testifai.support.optional_imports import cv2
from testifai.support.types import Array, Floats, Record
from testifai.support.validation import number

RADIUS, SIGMA = 5, 1.5
K1, K2 = 0.01, 0.03
_BLOCK = 60_000  # pixels in a chunk: filtering is several times faster within a processor's cache
_LARGE = 64  # sides, in pixels, above which OpenCV is faster than matrix products


class Ssim(PerInputMeasure):
    """1 if nothing changed, towards 0 if no structure is left; it can be negative.

    Integer images have the range of their type, floats must be in 0..1, unless `data_range` is given (the largest
    possible value minus the smallest).
    """

    name = "ssim"

    def __init__(self, *, sample: int = SAMPLE, data_range: float | None = None) -> None:
        super().__init__(sample=sample)
        self.data_range = _read_range(data_range)

    def describe(self) -> Record:
        return {"use": self.name, "sample": self.sample, "data_range": self.data_range}

    def compare(self, clean: Batch, seed: int) -> Compare:
        return _Compare(clean, self.data_range)


def ssim(clean: Array, perturbed: Array, *, data_range: float | None = None) -> Floats:
    """Return the structural similarity of each pair of images (N, H, W) or (N, H, W, C)."""
    return _Compare(clean, _read_range(data_range))(perturbed)


class _Compare:
    def __init__(self, clean: Batch, data_range: float | None) -> None:
        self.clean, self.data_range = _checked(clean, data_range), data_range

    def __call__(self, perturbed: Batch) -> Floats:
        images = _checked(perturbed, self.data_range)
        if images.shape != self.clean.shape or images.dtype != self.clean.dtype:
            raise InputError(
                f"quality: ssim compares images of one form; clean ones are {self.clean.dtype} {self.clean.shape}, "
                f"perturbed ones {images.dtype} {images.shape}"
            )
        span = self.data_range or (1.0 if images.dtype.kind == "f" else float(np.iinfo(images.dtype).max))
        size = max(1, _BLOCK // max(1, images[0].size))
        parts = [slice(start, start + size) for start in range(0, len(images), size)]
        return np.concatenate([_similarity(self.clean[part], images[part], span) for part in parts])


def _similarity(clean: Array, perturbed: Array, span: float) -> Floats:
    """Wang et al. 2004, Eq. 13, averaged over the pixels and channels of each image."""
    first, second = _planes(clean), _planes(perturbed)
    window = _window_for(first.shape[1], first.shape[2])
    mean_1, mean_2 = window(first), window(second)
    both = mean_1 * mean_2
    squares = mean_1 * mean_1 + mean_2 * mean_2
    # Only the sum of the variances is needed: one filter less. Rounding may make it slightly negative.
    variances = np.maximum(window(first * first + second * second) - squares, 0)
    covariance = window(first * second) - both
    c1, c2 = (K1 * span) ** 2, (K2 * span) ** 2
    index = ((2 * both + c1) * (2 * covariance + c2)) / ((squares + c1) * (variances + c2))
    return np.asarray(index.reshape(len(clean), -1).mean(axis=1))


def _planes(images: Array) -> Floats:
    planes = images[..., None] if images.ndim == 3 else images
    return np.moveaxis(planes, -1, 1).reshape(-1, *images.shape[1:3]).astype(np.float64)


def _window_for(height: int, width: int) -> Callable[[Floats], Floats]:
    if max(height, width) > _LARGE:
        weights, border = _weights(), cv2.BORDER_REFLECT_101
        one = partial(cv2.sepFilter2D, ddepth=cv2.CV_64F, kernelX=weights, kernelY=weights, borderType=border)
        return lambda planes: np.stack([one(plane) for plane in planes])
    down, across = _matrix(height), np.ascontiguousarray(_matrix(width).T)
    return lambda planes: np.matmul(down, (planes.reshape(-1, width) @ across).reshape(planes.shape))


@lru_cache
def _matrix(size: int) -> Floats:
    reached = np.pad(np.arange(size), RADIUS, mode="reflect")
    matrix = np.zeros((size, size))
    for offset, weight in enumerate(_weights()):
        np.add.at(matrix, (np.arange(size), reached[offset : offset + size]), weight)
    return matrix


def _weights() -> Floats:
    weights = np.exp(-0.5 * (np.arange(-RADIUS, RADIUS + 1) / SIGMA) ** 2)
    return np.asarray(weights / weights.sum())


def _read_range(given: Any) -> float | None:
    return None if given is None else number("quality: data_range", given, above=0)


def _checked(batch: Batch, data_range: float | None) -> Array:
    if are_images(batch):
        raise InputError("quality: ssim takes images of one size; these are of different sizes")
    if isinstance(batch, list):
        raise InputError("quality: ssim compares images; these inputs are texts (bertscore, bleu and edit_similarity)")
    images = np.asarray(batch)
    if images.ndim not in (3, 4) or 0 in images.shape or (images.ndim == 4 and images.shape[3] > 4):
        raise InputError(f"quality: ssim needs images (N, H, W) or (N, H, W, 1 to 4 channels), not {images.shape}")
    if images.dtype.kind == "f":
        if not np.isfinite(images).all():
            raise InputError("quality: ssim needs finite images; these hold NaN or infinity")
        if data_range is None and not (images.min() >= 0 and images.max() <= 1):
            raise InputError(
                f"quality: ssim takes float images in 0..1; these reach from {images.min():g} to {images.max():g} "
                "(say data_range = …)"
            )
    elif images.dtype.kind not in "iu" or (data_range is None and images.dtype not in (np.uint8, np.uint16)):
        raise InputError(
            f"quality: ssim takes uint8, uint16 or float images, not {images.dtype} (or say data_range = …)"
        )
    return images
