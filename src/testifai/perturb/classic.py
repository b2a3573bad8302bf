"""Plain perturbations with a continuous level: noise, rotation and brightness, the latter two in both directions.

They are the properties x + N(0, σ²), rotate(x, θ) and β·x of "A Novel Testing Framework for Vision Models Using
Bayesian Network", which has no numbers: the severities are ours. Each has `levels`, from off to strongest, for sweeps
by `apply_level`.
"""

from __future__ import annotations

import math
from types import ModuleType

import numpy as np

from testifai.perturb.corruptions import gaussian_noise
from testifai.perturb.geometric import AffineChoice, affine_perturbation, turn
from testifai.perturb.images import GROUPED, Draws, Images, image_perturbation, relevelled, times

image_perturbation("classic.gaussian_noise", [0.0, 0.1, 0.2, 0.3, 0.4, 0.5], levels=(0.0, 0.5))(gaussian_noise)


@affine_perturbation("classic.rotation", severities=[0, 9, 18, 27, 36, 45], levels=(0, 45))
def rotation(degrees: float, rng: Draws, height: int, width: int) -> AffineChoice:
    """Turn anticlockwise about the centre."""
    return turn(math.radians(degrees), height, width), None


@affine_perturbation("classic.rotation_clockwise", severities=[0, 9, 18, 27, 36, 45], levels=(0, 45))
def rotation_clockwise(degrees: float, rng: Draws, height: int, width: int) -> AffineChoice:
    """Turn clockwise about the centre."""
    return turn(-math.radians(degrees), height, width), None


def multiplied(ops: ModuleType, images: Images, factor: float, rng: Draws) -> Images:
    """Multiply all values by a factor, up to white."""
    return relevelled(ops, images, np.arange(256) * factor)


# The factors of brighten are the reciprocals of those of brightness.
for _name, _factors, _summary in (
    (
        "brightness",
        [1.0, 0.8, 0.6, 0.4, 0.2, 0.1],
        "Darken: multiply all values by a factor below 1 (classic.brighten has the factors above 1).",
    ),
    (
        "brighten",
        [1.0, 1.25, 5 / 3, 2.5, 5.0, 10.0],
        "Brighten: multiply all values by a factor above 1; what would be brighter than white is white.",
    ),
):
    _levels = (_factors[0], _factors[-1])
    image_perturbation(f"classic.{_name}", _factors, _summary, levels=_levels, slab=GROUPED, smooth=times)(multiplied)
