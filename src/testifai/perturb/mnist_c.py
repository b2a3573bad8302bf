"""MNIST-C by N. Mu and J. Gilmer (2019, arXiv:1906.02337): perturbations with the published parameters.

The published numbers are for digits of 28×28. Lengths in pixels are scaled to the image at hand (by its
width, its height or, where they share a length, the smaller of the two); angles, factors and rates hold for
every size. Places outside the image are black.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from testifai.perturb import ops
from testifai.perturb.registry import perturbation
from testifai.perturb.rng import Rng

_SIDE = 28


@perturbation("mnist_c.brightness", severities=[0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
def brightness(images: ops.Images, amount: float, rng: Rng) -> ops.Images:
    """Add to the value channel, as a share of white."""
    return ops.brighten(images, amount)


@perturbation("mnist_c.zoom", severities=[1.0, 0.9, 0.8, 0.7, 0.6, 0.5])
def zoom(images: ops.Images, factor: float, rng: Rng) -> ops.Images:
    """Shrink to a share of the size about the centre (the suite's scale)."""
    height, width, _ = ops.image_shape(images)
    return ops.warp(images, ops.about_centre(np.eye(2) / factor, height, width))


@perturbation("mnist_c.motion_blur", severities=[None, (10, 3), (15, 5), (15, 8), (15, 12), (20, 15)])
def motion_blur(images: ops.Images, radius_sigma: tuple[float, float], rng: Rng) -> ops.Images:
    """Blur along a line at a random angle between −45 and 45 degrees; (radius, sigma) in pixels."""
    # The suite calls ImageMagick, whose taps are 0 to 2·radius steps away on one side of the pixel.
    height, width, _ = ops.image_shape(images)
    scale = min(height, width) / _SIDE
    radius, sigma = radius_sigma
    degrees = np.rint(rng.uniform(low=-45, high=45)).astype(np.int64)
    return ops.line_blur(images, degrees, length=2 * radius * scale, sigma=sigma * scale)


@perturbation("mnist_c.shear", severities=[0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
def shear(images: ops.Images, angle: float, rng: Rng) -> ops.Images:
    """Slant by an angle in radians to the left or to the right, at random."""
    # As in the suite's time, the y axis turns without changing its length: (x, y) → (x − y sin, y cos).
    height, width, _ = ops.image_shape(images)
    slants = [[[1, -np.sin(turn)], [0, np.cos(turn)]] for turn in (-angle, angle)]
    return ops.warp(images, [ops.about_centre(slant, height, width) for slant in slants], _sides(rng))


@perturbation("mnist_c.rotate", severities=[0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
def rotate(images: ops.Images, angle: float, rng: Rng) -> ops.Images:
    """Turn by an angle in radians, clockwise or anticlockwise at random."""
    height, width, _ = ops.image_shape(images)
    turns = [[[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]] for t in (-angle, angle)]
    return ops.warp(images, [ops.about_centre(turn, height, width) for turn in turns], _sides(rng))


@perturbation("mnist_c.translate", severities=[0, 1, 2, 3, 4, 5])
def translate(images: ops.Images, pixels: float, rng: Rng) -> ops.Images:
    """Move along both axes by a number of pixels, in one of the four diagonal directions at random."""
    height, width, _ = ops.image_shape(images)
    right, down = pixels * width / _SIDE, pixels * height / _SIDE
    moves = [[[1, 0, x], [0, 1, y]] for y in (-down, down) for x in (-right, right)]
    signs = rng.integers(0, 2, size=2)
    return ops.warp(images, moves, signs[:, 0] + 2 * signs[:, 1])


@perturbation("mnist_c.shot_noise", severities=[None, 60, 25, 12, 5, 3])
def shot_noise(images: ops.Images, photons: int, rng: Rng) -> ops.Images:
    """Count photons: a Poisson draw per pixel, where white expects the given number."""
    ops.image_shape(images)
    counts = rng.poisson(images * (photons / 255))
    levels = np.floor(255 * np.arange(photons + 1) / photons + 0.5).astype(np.uint8)
    return levels[np.minimum(counts, photons)]


def _sides(rng: Rng) -> NDArray[np.int64]:
    return rng.integers(0, 2)
