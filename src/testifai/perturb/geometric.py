"""Perturbations that move pixels: one plan of the movement serves images, boxes on them and maps of their labels."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.perturb import ops as array_ops
from testifai.perturb.annotations import Corners, Places, Size
from testifai.perturb.base import Parameter, Perturbation
from testifai.perturb.images import GROUPED, SLAB, Draws, Images, Layer, image_perturbation
from testifai.perturb.ops.geometry import about_centre, grid
from testifai.perturb.rng import Rng
from testifai.support.types import Floats

__all__ = ["AffineChoice", "about_centre", "affine_perturbation", "displacement_perturbation", "turn"]

# 2×3 matrices that map a pixel (x, y) of the result to the place it shows, and each image's choice among them (None if
# there is only one).
AffineChoice = tuple[Any, NDArray[np.integer] | None]
# An affine plan is f(parameter, rng, height, width) -> AffineChoice.
AffinePlan = Callable[[Parameter, Draws, int, int], AffineChoice]
# A displacement plan is f(ops, parameter, rng, height, width) -> layers (dx, dy); pixel (x, y) of the result shows the
# place (x + dx, y + dy).
DisplacementPlan = Callable[[ModuleType, Parameter, Draws, int, int], tuple[Layer, Layer]]


def affine_perturbation(
    name: str, severities: Sequence[Parameter], *, border: int = 0, levels: tuple[float, float] | None = None
) -> Callable[[AffinePlan], Perturbation]:
    """Register an affine plan for images and their boxes; outside is the grey level `border`."""

    def register(plan: AffinePlan) -> Perturbation:
        @image_perturbation(name, severities, shows=_AffinePlaces(plan), levels=levels, slab=GROUPED)
        @functools.wraps(plan)
        def move(ops: ModuleType, images: Images, parameter: Parameter, rng: Draws) -> Images:
            height, width, _ = ops.image_shape(images)
            return ops.warp(images, *plan(parameter, rng, height, width), border=border)

        return move

    return register


def displacement_perturbation(
    name: str, severities: Sequence[Parameter], *, growing: bool = True, slab: int = SLAB
) -> Callable[[DisplacementPlan], Perturbation]:
    """Register a displacement plan for images, mirrored outside, and their boxes, which follow the draws of arrays."""

    def register(plan: DisplacementPlan) -> Perturbation:
        def shows(parameter: Parameter, rng: Rng, size: Size) -> Iterator[Places]:
            # One image at a time: the displacements of a whole data set may not fit into memory.
            for place in range(len(rng)):
                dx, dy = plan(array_ops, parameter, rng.part(slice(place, place + 1)), *size)
                x, y = grid(dx, *size)
                yield np.broadcast_to(x + dx + 0.5, (1, *size))[0], np.broadcast_to(y + dy + 0.5, (1, *size))[0]

        @image_perturbation(name, severities, shows=shows, growing=growing, slab=slab)
        @functools.wraps(plan)
        def move(ops: ModuleType, images: Images, parameter: Parameter, rng: Draws) -> Images:
            height, width, _ = ops.image_shape(images)
            return ops.displace(images, *plan(ops, parameter, rng, height, width))

        return move

    return register


def turn(radians: float, height: int, width: int) -> Floats:
    """The matrix of a rotation about the centre: anticlockwise to the eye, as y points down."""
    cosine, sine = math.cos(radians), math.sin(radians)
    return about_centre([[cosine, -sine], [sine, cosine]], height, width)


class _AffinePlaces:
    def __init__(self, plan: AffinePlan) -> None:
        self.plan = plan

    def __call__(self, parameter: Parameter, rng: Rng, size: Size, /) -> Iterator[Places]:
        y, x = np.indices(size)
        for (a, b, c), (d, e, f) in self._matrices(parameter, rng, size):
            yield a * x + b * y + c + 0.5, d * x + e * y + f + 0.5

    def outlines(
        self, outlines: list[list[Corners]], parameter: Parameter, rng: Rng, size: Size
    ) -> list[list[Corners]]:
        """The corners mapped by the inverse of each image's matrix; pixel centres are at halves."""
        return [
            [np.asarray((one - 0.5 - matrix[:, 2]) @ np.linalg.inv(matrix[:, :2]).T + 0.5) for one in image]
            for image, matrix in zip(outlines, self._matrices(parameter, rng, size), strict=True)
        ]

    def _matrices(self, parameter: Parameter, rng: Rng, size: Size) -> list[Floats]:
        matrices, which = self.plan(parameter, rng, *size)
        choices = np.asarray(matrices, dtype=np.float64).reshape(-1, 2, 3)
        chosen = np.zeros(len(rng), dtype=np.intp) if which is None else np.asarray(which)
        return [choices[choice] for choice in chosen]
