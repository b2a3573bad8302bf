"""Perturbations that move pixels: one plan of the movement serves the images and the boxes drawn on them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.perturb import ops as array_ops
from testifai.perturb.base import Boxes, Perturbation
from testifai.perturb.images import GROUPED, SLAB, image_perturbation
from testifai.perturb.ops import about_centre

__all__ = ["AffineChoice", "about_centre", "affine_perturbation", "displacement_perturbation", "turn"]

# 2×3 matrices that take a pixel (x, y) of the result to the place it shows, and each image's choice among them
# (None: the one there is).
AffineChoice = tuple[Any, Any]
# An affine plan is f(parameter, rng, height, width) -> AffineChoice.
AffinePlan = Callable[[Any, Any, int, int], AffineChoice]
# A displacement plan is f(ops, parameter, rng, height, width) -> (dx, dy): layers; pixel (x, y) of the result shows
# the place (x + dx, y + dy).
DisplacementPlan = Callable[[ModuleType, Any, Any, int, int], tuple[Any, Any]]

BoxRows = NDArray[np.float64]


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
        @image_perturbation(name, severities, boxes=_affine_boxes(plan), growing=growing, levels=levels, slab=GROUPED)
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
        @image_perturbation(name, severities, boxes=_displaced_boxes(plan), growing=growing, slab=slab)
        @functools.wraps(plan)
        def move(ops: ModuleType, images: Any, parameter: Any, rng: Any) -> Any:
            height, width, _ = ops.image_shape(images)
            return ops.displace(images, *plan(ops, parameter, rng, height, width))

        return move

    return register


def turn(radians: float, height: int, width: int) -> NDArray[np.float64]:
    """The matrix of a turn about the centre: anticlockwise to the eye, as y points down.

    >>> turn(math.pi / 2, 3, 3).round().tolist()
    [[0.0, -1.0, 2.0], [1.0, 0.0, 0.0]]
    """
    cosine, sine = math.cos(radians), math.sin(radians)
    return about_centre([[cosine, -sine], [sine, cosine]], height, width)


def _affine_boxes(plan: AffinePlan) -> Boxes:
    def boxes(rows: list[BoxRows], parameter: Any, rng: Any, size: tuple[int, int]) -> list[BoxRows]:
        matrices, which = plan(parameter, rng, *size)
        choices = np.asarray(matrices, dtype=np.float64).reshape(-1, 2, 3)
        chosen = np.zeros(len(rows), dtype=np.intp) if which is None else np.asarray(which)
        return [_hulls(one, choices[choice], size) for one, choice in zip(rows, chosen, strict=True)]

    return boxes


def _displaced_boxes(plan: DisplacementPlan) -> Boxes:
    def boxes(rows: list[BoxRows], parameter: Any, rng: Any, size: tuple[int, int]) -> list[BoxRows]:
        # One image at a time: the displacements of a whole data set may not fit into memory.
        parts = [rng.part(slice(place, place + 1)) for place in range(len(rows))]
        return [
            _seen(one, *plan(array_ops, parameter, part, *size), size) if len(one) else one
            for one, part in zip(rows, parts, strict=True)
        ]

    return boxes


def _hulls(rows: BoxRows, matrix: NDArray[np.float64], size: tuple[int, int]) -> BoxRows:
    """The upright boxes around the moved corners, cut off at the image; pixel centres lie at halves."""
    corners = rows[:, [[0, 1], [2, 1], [2, 3], [0, 3]]] - 0.5
    moved = (corners - matrix[:, 2]) @ np.linalg.inv(matrix[:, :2]).T + 0.5
    inside = np.clip(moved, 0, size[::-1])
    return np.concatenate([inside.min(axis=1), inside.max(axis=1)], axis=1)


def _seen(rows: BoxRows, dx: Any, dy: Any, size: tuple[int, int]) -> BoxRows:
    """The boxes around the pixels that show a place within the box, or boxes without area where there is none.

    A displacement may fold the image, so it has no inverse to send the boxes through.
    """
    height, width = size
    x, y = array_ops.grid(dx, height, width)
    across, down = np.broadcast_to(x + dx + 0.5, (1, *size))[0], np.broadcast_to(y + dy + 0.5, (1, *size))[0]
    moved = np.zeros(rows.shape)
    for box, (left, top, right, bottom) in zip(moved, rows, strict=True):
        shown = (across >= left) & (across <= right) & (down >= top) & (down <= bottom)
        columns, lines = np.flatnonzero(shown.any(axis=0)), np.flatnonzero(shown.any(axis=1))
        if len(columns):
            box[:] = columns[0], lines[0], columns[-1] + 1, lines[-1] + 1
    return moved
