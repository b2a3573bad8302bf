"""Image perturbations: formulas over the primitives, on arrays and on tensors alike."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, TypeAlias, Unpack

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.perturb.base import Options, Parameter, Perturbation, Term
from testifai.perturb.registry import perturbation
from testifai.perturb.validation import is_tensor
from testifai.support.types import Floats

Images: TypeAlias = Any  # an array or a tensor
Layer: TypeAlias = Any  # an array or a tensor of one number per pixel, (N, H, W)
Draws: TypeAlias = Any  # an `Rng`, whose fields are of the kind of the images
MOST = 512  # pixels of the shorter side at which blurs that grow with the image are computed at most


def coarsely(ops: ModuleType, images: Images, change: Callable[[Images], Images]) -> Images:
    """Apply a change to images whose shorter side is shrunk to at most MOST, and enlarge the result."""
    height, width, _ = ops.image_shape(images)
    shrink = MOST / min(height, width)
    if shrink >= 1:
        return change(images)
    small = ops.resize(images, round(height * shrink), round(width * shrink))
    return ops.resize(change(small), height, width)


def relevelled(ops: ModuleType, images: Images, levels: NDArray[np.floating]) -> Images:
    """Images whose grey levels 0 … 255 are replaced by others, rounded and clipped."""
    return ops.lookup(images, np.clip(np.floor(levels + 0.5), 0, 255).astype(np.uint8))


# A formula is f(ops, images, parameter, rng) -> images: `ops` are the primitives for this kind of array, images
# are uint8 of shape (N, H, W, C) with one or three channels.
Formula = Callable[[ModuleType, Images, Parameter, Draws], Images]

SLAB = 2**18  # numbers of a batch per call of a formula: few enough for its float copies to stay in the cache
ON_DEVICE = 2**27  # the same on a GPU, where only memory is short: formulas need up to 60 bytes a number
GROUPED = 2**22  # the same for formulas that make no float copies, or that sort images into groups and slice them


def image_perturbation(
    name: str, severities: Sequence[Parameter], summary: str = "", *, slab: int = SLAB, **options: Unpack[Options]
) -> Callable[[Formula], Perturbation]:
    """Register a formula f(ops, images, parameter, rng) as a perturbation of images.

    The formula gets uint8 images (N, H, W, C); grey images without a channel axis and float images in 0..1 are
    converted before and back after it. `slab` is the largest size of a batch in numbers.
    """

    def register(formula: Formula) -> Perturbation:
        @functools.wraps(formula)
        def function(batch: Images, parameter: Parameter, rng: Draws) -> Images:
            return _run(formula, batch, parameter, rng, slab)

        fields: Options = {**options, "tensors": True}
        return perturbation(name, severities, summary, **fields)(function)

    return register


def primitives(batch: Images) -> ModuleType:
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
    low, high = float(batch.min()), float(batch.max())
    if not (low >= 0 and high <= 1):  # also fails for NaN
        raise InputError(
            f"float images must lie in 0..1, got {low:.4g} to {high:.4g}; "
            "divide by their largest possible value, or convert to uint8 (0 to 255)"
        )
    return (batch * 255).round().byte() if is_tensor(batch) else np.rint(batch * 255).astype(np.uint8)


class OnArrays:
    @staticmethod
    def image_shape(images: Floats) -> tuple[int, int, int]:
        return images.shape[1], images.shape[2], images.shape[3]

    @staticmethod
    def channel_means(images: Floats) -> Floats:
        return np.asarray(images.mean(axis=(1, 2), keepdims=True))


def times(ops: Any, images: Term, factor: Term) -> Term:
    return images * factor


def plus(ops: Any, images: Term, levels: Term) -> Term:
    return images + levels


def brighter(ops: Any, images: Term, share: Term) -> Term:
    """Every level plus a share of white, as adding to V of hue, saturation and value does for grey images."""
    if ops.image_shape(images)[2] != 1:
        raise InputError("is a sum for grey images alone; in colour, deeptest.brightness is one")
    return images + share * 255.0


def stretched(ops: Any, images: Term, factor: Term) -> Term:
    means = ops.channel_means(images)
    return (images - means) * factor + means
