"""Perturbations of pixels as plain arithmetic, without rounding: what a formal verifier can be handed.

A smooth formula is f(ops, images, parameter) -> images in grey levels that are neither rounded nor cut off at black and
white; whoever runs it does that. `images` and `parameter` are numbers of some kind with +, − and ×; `ops` has
`image_shape` and `channel_means` for them. At the parameter of severity 0 it changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from testifai.errors import InputError
from testifai.support.types import Floats

Term: TypeAlias = Any  # numbers of some kind with +, − and ×: arrays, or nodes of a graph
Smooth = Callable[[Any, Term, Term], Term]


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
