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
from testifai.perturb.base import Move, Perturbation, Shows
from testifai.perturb.images import GROUPED, SLAB, image_perturbation
from testifai.perturb.masks import Places
from testifai.perturb.ops import about_centre
from testifai.perturb.outlines import Corners, contains

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
        both: dict[str, Any] = {"move": _affine_move(plan), "shows": _affine_places(plan)}

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
        shows = _displaced_places(plan)

        @image_perturbation(name, severities, move=_displaced_move(shows), shows=shows, growing=growing, slab=slab)
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


def _displaced_move(shows: Shows) -> Move:
    """The outlines of the pixels that show a place within each; none where no pixel does.

    A displacement may fold the image, so it has no inverse to send corners through.
    """

    def move(outlines: list[list[Corners]], parameter: Any, rng: Any, size: tuple[int, int]) -> list[list[Corners]]:
        return [
            [_around(*_showing(corners, *places)) for corners in image]
            for image, places in zip(outlines, shows(parameter, rng, size), strict=True)
        ]

    return move


def _taken(corners: Corners, matrix: NDArray[np.float64]) -> Corners:
    """Where the inverse of a matrix takes corners; pixel centres lie at halves."""
    return np.asarray((corners - 0.5 - matrix[:, 2]) @ np.linalg.inv(matrix[:, :2]).T + 0.5)


def _showing(corners: Corners, across: Any, down: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of the pixels that show a place within an outline."""
    if not len(corners):
        return np.zeros((2, 0), np.intp)[0], np.zeros((2, 0), np.intp)[1]
    (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
    row, column = np.nonzero((across >= left) & (across <= right) & (down >= top) & (down <= bottom))
    upright = len(corners) == 4 and (np.isin(corners, [[left, top], [right, bottom]])).all()
    if upright:
        return row, column
    within = contains(corners, across[row, column], down[row, column])
    return row[within], column[within]


def _around(row: NDArray[np.intp], column: NDArray[np.intp]) -> Corners:
    """An outline around pixels: down along the first of each row, and up along the last."""
    if not len(row):
        return np.zeros((0, 2))
    rows, first = np.unique(row, return_index=True)  # pixels come row by row
    starts = column[first]
    ends = column[np.append(first[1:], len(row)) - 1] + 1
    left = np.column_stack([np.repeat(starts, 2), np.column_stack([rows, rows + 1]).ravel()])
    right = np.column_stack([np.repeat(ends, 2), np.column_stack([rows, rows + 1]).ravel()])
    return np.concatenate([left, right[::-1]]).astype(np.float64)
