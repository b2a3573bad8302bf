"""Image perturbations: formulas over the primitives, on arrays and on tensors alike."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, TypeAlias, Unpack

import numpy as np

from testifai.errors import InputError
from testifai.perturb.base import Options, Parameter, Perturbation, Term
from testifai.perturb.registry import perturbation
from testifai.perturb.validation import is_tensor
from testifai.support.types import Floats

Images: TypeAlias = Any  # an array or a tensor
Layer: TypeAlias = Any  # the same of one number per pixel, (N, H, W)
Draws: TypeAlias = Any  # an `Rng`, whose fields are of the kind of the images
# The longest shorter side, in pixels, on which blurs that grow with the image are worked out.
MOST = 512


def coarsely(ops: ModuleType, images: Images, change: Callable[[Images], Images]) -> Images:
    """change(images), on images shrunk such that the shorter side is at most MOST, and enlarged again."""
    height, width, _ = ops.image_shape(images)
    shrink = MOST / min(height, width)
    if shrink >= 1:
        return change(images)
    small = ops.resize(images, round(height * shrink), round(width * shrink))
    return ops.resize(change(small), height, width)


# A formula is f(ops, images, parameter, rng) -> images: `ops` are the primitives for this kind of array, images
# are uint8 of shape (N, H, W, C) with one or three channels.
Formula = Callable[[ModuleType, Images, Parameter, Draws], Images]

# Numbers of a batch handed to a formula at once: few enough for its float copies to stay in the cache.
SLAB = 2**18
# The same on an accelerator, where only memory is short: formulas need up to 60 bytes a number.
ON_DEVICE = 2**27
# The same for formulas that make no float copies, or that sort images into groups first and slice them themselves.
GROUPED = 2**22


def image_perturbation(
    name: str, severities: Sequence[Parameter], *, slab: int = SLAB, **options: Unpack[Options]
) -> Callable[[Formula], Perturbation]:
    """Register a formula f(ops, images, parameter, rng) as a perturbation of images.

    The formula sees uint8 images (N, H, W, C); grey images without a channel axis and float images in 0..1 are
    converted before and back after it. `slab` is the most numbers to work on at once.
    """

    def register(formula: Formula) -> Perturbation:
        @functools.wraps(formula)
        def function(batch: Images, parameter: Parameter, rng: Draws) -> Images:
            return _run(formula, batch, parameter, rng, slab)

        fields: Options = {**options, "tensors": True}
        return perturbation(name, severities, **fields)(function)

    return register


def primitives(batch: Images) -> ModuleType:
    """The module of primitive operations for this kind of array."""
    if is_tensor(batch):
        from testifai.perturb import ops_torch

        return ops_torch
    from testifai.perturb import ops

    return ops


def _run(formula: Formula, batch: Images, parameter: Parameter, rng: Draws, slab: int) -> Images:
    ops, tensor = primitives(batch), is_tensor(batch)
    if tensor and batch.is_floating_point():
        return _run(formula, _bytes(batch), parameter, rng, slab).to(batch.dtype) / 255
    if isinstance(batch, np.ndarray) and batch.dtype.kind == "f":
        return _run(formula, _bytes(batch), parameter, rng, slab).astype(batch.dtype) / 255
    height, width, channels = ops.image_shape(batch)
    images = batch.reshape(len(batch), height, width, channels)
    most = ON_DEVICE if tensor and batch.device.type != "cpu" else slab
    step = max(1, most // (height * width * channels))
    if step >= len(images):
        return formula(ops, _contiguous(images), parameter, rng).reshape(batch.shape)
    changed = images.new_empty(images.shape) if tensor else np.empty(images.shape, dtype=np.uint8)
    for start in range(0, len(images), step):
        part = slice(start, start + step)
        changed[part] = formula(ops, _contiguous(images[part]), parameter, rng.part(part))
    return changed.reshape(batch.shape)


def _contiguous(images: Images) -> Images:
    return images.contiguous() if is_tensor(images) else np.ascontiguousarray(images)


def _bytes(batch: Images) -> Images:
    """Float images in 0..1 as 8-bit images."""
    low, high = float(batch.min()), float(batch.max())
    # A NaN fails this test too.
    if not (low >= 0 and high <= 1):
        raise InputError(
            f"float images must lie in 0..1, got {low:.4g} to {high:.4g}; "
            "divide by their largest possible value, or convert to uint8 (0 to 255)"
        )
    return (batch * 255).round().byte() if is_tensor(batch) else np.rint(batch * 255).astype(np.uint8)


# -- without rounding, as `smooth` of a perturbation --


class OnArrays:
    """The primitives of smooth formulas for float images (N, H, W, C)."""

    @staticmethod
    def image_shape(images: Floats) -> tuple[int, int, int]:
        """Height, width and number of channels."""
        return images.shape[1], images.shape[2], images.shape[3]

    @staticmethod
    def channel_means(images: Floats) -> Floats:
        """The mean of each channel of each image, (N, 1, 1, C)."""
        return np.asarray(images.mean(axis=(1, 2), keepdims=True))


def times(ops: Any, images: Term, factor: Term) -> Term:
    """Every level times a factor."""
    return images * factor


def plus(ops: Any, images: Term, levels: Term) -> Term:
    """Every level plus a number of levels."""
    return images + levels


def brighter(ops: Any, images: Term, share: Term) -> Term:
    """Every level plus a share of white: what adding to V of hue, saturation and value is for grey images."""
    if ops.image_shape(images)[2] != 1:
        raise InputError("is a sum for grey images alone; in colour, deeptest.brightness is one")
    return images + share * 255.0


def stretched(ops: Any, images: Term, factor: Term) -> Term:
    """Differences from each channel's mean times a factor."""
    means = ops.channel_means(images)
    return (images - means) * factor + means
