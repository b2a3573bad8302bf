"""DeepTest by Y. Tian, K. Pei, S. Jana and B. Ray (ICSE 2018, arXiv:1708.08559): camera images from a car.

The paper has ten levels of most transformations. Translate, scale, contrast and brightness have the five levels that
are usual for object detection from cars; shear and rotate every second one of the ten. The published sizes of the four
blurs are continued to five levels; the one published level of the bilateral blur is level 3.

Distances of translate are for images of at least 480 rows, and are scaled down with the smaller side of smaller ones.
Windows of blurs are in pixels of any image. Scale enlarges about the centre; places outside the image are black.
"""

from __future__ import annotations

import math
from types import ModuleType

import numpy as np

from testifai.perturb.geometric import AffineChoice, about_centre, affine_perturbation, turn
from testifai.perturb.images import GROUPED, Draws, Images, image_perturbation, plus, relevelled, times

_SIDE = 480


@affine_perturbation("deeptest.translate", severities=[0, 20, 40, 60, 80, 100])
def translate(pixels: float, rng: Draws, height: int, width: int) -> AffineChoice:
    """Move to the right and down by a number of pixels."""
    distance = pixels * min(1.0, height / _SIDE, width / _SIDE)
    return [[1, 0, -distance], [0, 1, -distance]], None


@affine_perturbation("deeptest.scale", severities=[1.0, 1.5, 2.6, 3.7, 4.8, 6.0])
def scale(factor: float, rng: Draws, height: int, width: int) -> AffineChoice:
    """Enlarge about the centre."""
    return about_centre(np.eye(2) / factor, height, width), None


@affine_perturbation("deeptest.shear", severities=[0.0, -0.2, -0.4, -0.6, -0.8, -1.0])
def shear(factor: float, rng: Draws, height: int, width: int) -> AffineChoice:
    """Move every row sideways by a factor of its distance from the first row."""
    return [[1, -factor, 0], [0, 1, 0]], None


@affine_perturbation("deeptest.rotate", severities=[0, 6, 12, 18, 24, 30])
def rotate(degrees: float, rng: Draws, height: int, width: int) -> AffineChoice:
    """Turn anticlockwise about the centre."""
    return turn(math.radians(degrees), height, width), None


@image_perturbation("deeptest.contrast", [1.0, 1.2, 1.6, 2.1, 2.5, 3.0], levels=(1.0, 3.0), slab=GROUPED, smooth=times)
def contrast(ops: ModuleType, images: Images, gain: float, rng: Draws) -> Images:
    """Multiply all values by a gain."""
    return relevelled(ops, images, np.arange(256) * gain)


@image_perturbation("deeptest.brightness", [0, 20, 40, 60, 80, 100], levels=(0, 100), slab=GROUPED, smooth=plus)
def brightness(ops: ModuleType, images: Images, bias: float, rng: Draws) -> Images:
    """Add a number of grey levels to all values."""
    return relevelled(ops, images, np.arange(256.0) + bias)


def _gaussian(ops: ModuleType, images: Images, size: int, rng: Draws) -> Images:
    sigma = 0.3 * ((size - 1) / 2 - 1) + 0.8  # as OpenCV derives it from the size of the window
    return ops.gaussian(images, sigma, truncate=(size - 1) / 2 / sigma)


_SIZES = [1, 3, 5, 7, 9, 11]
image_perturbation("deeptest.blur_average", [1, 3, 4, 5, 6, 7], "Take the mean of a square of pixels.")(
    lambda ops, images, size, rng: ops.box_blur(images, size)
)
image_perturbation("deeptest.blur_gaussian", _SIZES, "Take the Gaussian mean of a square of pixels.")(_gaussian)
image_perturbation("deeptest.blur_median", _SIZES, "Take the median of a square of pixels.")(
    lambda ops, images, size, rng: ops.median_blur(images, size)
)
image_perturbation(
    "deeptest.blur_bilateral",
    [0, 25, 50, 75, 100, 150],
    "Take the mean of a disc of 9 pixels across, weighted by likeness of colour; sigma in grey levels.",
)(lambda ops, images, sigma, rng: ops.bilateral_blur(images, 9, sigma, sigma))
