"""Perturbations that move pixels: one plan of the movement serves images, boxes on them and maps of their labels."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from testifai.perturb import ops as array_ops
from testifai.perturb.annotations import Corners, Places
from testifai.perturb.base import Move, Perturbation, Shows
from testifai.perturb.images import GROUPED, SLAB, image_perturbation
from testifai.perturb.ops import about_centre
from testifai.support.types import Floats, Record

__all__ = ["AffineChoice", "about_centre", "affine_perturbation", "displacement_perturbation", "turn"]

# 2×3 matrices that take a pixel (x, y) of the result to the place it shows, and each image's choice among them
# (None: the one there is).
AffineChoice = tuple[Any, Any]
# An affine plan is f(parameter, rng, height, width) -> AffineChoice.
AffinePlan = Callable[[Any, Any, int, int], AffineChoice]
# A displacement plan is f(ops, parameter, rng, height, width) -> (dx, dy): layers; pixel (x, y) of the result shows
# the place (x + dx, y + dy).
DisplacementPlan = Callable[[ModuleType, Any, Any, int, int], tuple[Any, Any]]


def affine_perturbation(
    name: str,
    severities: Sequence[Any],
    *,
    border: int = 0,
    growing: bool = True,
    levels: tuple[float, float] | None = None,
) -> Callable[[AffinePlan], Perturbation]:
    """Register an affine plan as a perturbation of images and their boxes; outside is the grey level `border`."""

    def register(plan: AffinePlan) -> Perturbation:
        both: Record = {"move": _affine_move(plan), "shows": _affine_places(plan)}

        @image_perturbation(name, severities, **both, growing=growing, levels=levels, slab=GROUPED)
        @functools.wraps(plan)
        def move(ops: ModuleType, images: Any, parameter: Any, rng: Any) -> Any:
            height, width, _ = ops.image_shape(images)
            return ops.warp(images, *plan(parameter, rng, height, width), border=border)

        return move

    return register


def displacement_perturbation(
    name: str, severities: Sequence[Any], *, growing: bool = True, slab: int = SLAB
) -> Callable[[DisplacementPlan], Perturbation]:
    """Register a displacement plan as a perturbation of images and their boxes; the image is mirrored outside.

    Boxes follow the images of arrays. Tensors have fields of their own, drawn on their device.
    """

    def register(plan: DisplacementPlan) -> Perturbation:
        @image_perturbation(name, severities, shows=_displaced_places(plan), growing=growing, slab=slab)
        @functools.wraps(plan)
        def move(ops: ModuleType, images: Any, parameter: Any, rng: Any) -> Any:
            height, width, _ = ops.image_shape(images)
            return ops.displace(images, *plan(ops, parameter, rng, height, width))

        return move

    return register


def turn(radians: float, height: int, width: int) -> Floats:
    """The matrix of a turn about the centre: anticlockwise to the eye, as y points down.

    >>> turn(math.pi / 2, 3, 3).round().tolist()
    [[0.0, -1.0, 2.0], [1.0, 0.0, 0.0]]
    """
    cosine, sine = math.cos(radians), math.sin(radians)
    return about_centre([[cosine, -sine], [sine, cosine]], height, width)


def _affine_move(plan: AffinePlan) -> Move:
    def move(outlines: list[list[Corners]], parameter: Any, rng: Any, size: tuple[int, int]) -> list[list[Corners]]:
        matrices, which = plan(parameter, rng, *size)
        choices = np.asarray(matrices, dtype=np.float64).reshape(-1, 2, 3)
        chosen = np.zeros(len(outlines), dtype=np.intp) if which is None else np.asarray(which)
        return [
            [_taken(corners, choices[choice]) for corners in image]
            for image, choice in zip(outlines, chosen, strict=True)
        ]

    return move


def _affine_places(plan: AffinePlan) -> Shows:
    def shows(parameter: Any, rng: Any, size: tuple[int, int]) -> Iterator[Places]:
        matrices, which = plan(parameter, rng, *size)
        choices = np.asarray(matrices, dtype=np.float64).reshape(-1, 2, 3)
        chosen = np.zeros(len(rng), dtype=np.intp) if which is None else np.asarray(which)
        y, x = np.indices(size)
        for choice in chosen:
            (a, b, c), (d, e, f) = choices[choice]
            yield a * x + b * y + c + 0.5, d * x + e * y + f + 0.5

    return shows


def _displaced_places(plan: DisplacementPlan) -> Shows:
    def shows(parameter: Any, rng: Any, size: tuple[int, int]) -> Iterator[Places]:
        # One image at a time: the displacements of a whole data set may not fit into memory.
        for place in range(len(rng)):
            dx, dy = plan(array_ops, parameter, rng.part(slice(place, place + 1)), *size)
            x, y = array_ops.grid(dx, *size)
            yield np.broadcast_to(x + dx + 0.5, (1, *size))[0], np.broadcast_to(y + dy + 0.5, (1, *size))[0]

    return shows


def _taken(corners: Corners, matrix: Floats) -> Corners:
    """Where the inverse of a matrix takes corners; pixel centres lie at halves."""
    return np.asarray((corners - 0.5 - matrix[:, 2]) @ np.linalg.inv(matrix[:, :2]).T + 0.5)
