"""Plain perturbations with a continuous level: noise, rotation and brightness, the latter two in both directions.

They are the properties x + N(0, σ²), rotate(x, θ) and β·x of "A Novel Testing Framework for Vision Models Using
Bayesian Network", which gives no figures for them: the severities are ours. Each has `levels`, from off to
strongest, for sweeps by `apply_level`.
"""

from __future__ import annotations

import math
from types import ModuleType

import numpy as np

from testifai.perturb import corruptions
from testifai.perturb.geometric import AffineChoice, affine_perturbation, turn
from testifai.perturb.images import GROUPED, Draws, Images, image_perturbation, times


@image_perturbation("classic.gaussian_noise", severities=[0.0, 0.1, 0.2, 0.3, 0.4, 0.5], levels=(0.0, 0.5))
def gaussian_noise(ops: ModuleType, images: Images, sigma: float, rng: Draws) -> Images:
    """Add normal noise; sigma as a share of white."""
    return corruptions.gaussian_noise(ops, images, sigma, rng)


@affine_perturbation("classic.rotation", severities=[0, 9, 18, 27, 36, 45], levels=(0, 45))
def rotation(degrees: float, rng: Draws, height: int, width: int) -> AffineChoice:
    """Turn anticlockwise about the centre."""
    return turn(math.radians(degrees), height, width), None


@affine_perturbation("classic.rotation_clockwise", severities=[0, 9, 18, 27, 36, 45], levels=(0, 45))
def rotation_clockwise(degrees: float, rng: Draws, height: int, width: int) -> AffineChoice:
    """Turn clockwise about the centre."""
    return turn(-math.radians(degrees), height, width), None


@image_perturbation(
    "classic.brightness", severities=[1.0, 0.8, 0.6, 0.4, 0.2, 0.1], levels=(1.0, 0.1), slab=GROUPED, smooth=times
)
def brightness(ops: ModuleType, images: Images, factor: float, rng: Draws) -> Images:
    """Darken: multiply all values by a factor below 1 (classic.brighten has the factors above 1)."""
    return _multiplied(ops, images, factor)


# The factors of classic.brightness the other way: their reciprocals.
@image_perturbation(
    "classic.brighten", severities=[1.0, 1.25, 5 / 3, 2.5, 5.0, 10.0], levels=(1.0, 10.0), slab=GROUPED, smooth=times
)
def brighten(ops: ModuleType, images: Images, factor: float, rng: Draws) -> Images:
    """Brighten: multiply all values by a factor above 1; what would be brighter than white is white."""
    return _multiplied(ops, images, factor)


def _multiplied(ops: ModuleType, images: Images, factor: float) -> Images:
    return ops.lookup(images, np.minimum(np.floor(np.arange(256) * factor + 0.5), 255).astype(np.uint8))
