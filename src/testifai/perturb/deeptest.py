"""DeepTest by Y. Tian, K. Pei, S. Jana and B. Ray (ICSE 2018, arXiv:1708.08559): camera images from a car.

The paper has ten levels of most transformations. Translate, scale, contrast and brightness have the five levels
that are usual for object detection from cars; shear and rotate every second one of the ten. The published sizes
of the four blurs come first and are continued to five levels; of the bilateral blur, published at one level
only, that is level 3.

Distances of translate are for images of 480 rows and more. In smaller images they shrink with the smaller side,
so that 100 pixels are 6.7 in an image of 32×32. Windows of blurs are whole numbers of pixels and stay as they
are. Scale enlarges about the centre and keeps the image's size. Places outside the image are black.
"""

from __future__ import annotations

import math
from types import ModuleType

import numpy as np

from testifai.perturb.geometric import AffineChoice, about_centre, affine_perturbation, turn
from testifai.perturb.images import GROUPED, Draws, Images, image_perturbation, plus, times

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


@image_perturbation(
    "deeptest.contrast", severities=[1.0, 1.2, 1.6, 2.1, 2.5, 3.0], levels=(1.0, 3.0), slab=GROUPED, smooth=times
)
def contrast(ops: ModuleType, images: Images, gain: float, rng: Draws) -> Images:
    """Multiply all values by a gain."""
    table = np.minimum(np.floor(np.arange(256) * gain + 0.5), 255)
    return ops.lookup(images, table.astype(np.uint8))


@image_perturbation(
    "deeptest.brightness", severities=[0, 20, 40, 60, 80, 100], levels=(0, 100), slab=GROUPED, smooth=plus
)
def brightness(ops: ModuleType, images: Images, bias: float, rng: Draws) -> Images:
    """Add a number of grey levels to all values."""
    table = np.minimum(np.floor(np.arange(256) + bias + 0.5), 255)
    return ops.lookup(images, table.astype(np.uint8))


@image_perturbation("deeptest.blur_average", severities=[1, 3, 4, 5, 6, 7])
def blur_average(ops: ModuleType, images: Images, size: int, rng: Draws) -> Images:
    """Take the mean of a square of pixels."""
    return ops.box_blur(images, size)


@image_perturbation("deeptest.blur_gaussian", severities=[1, 3, 5, 7, 9, 11])
def blur_gaussian(ops: ModuleType, images: Images, size: int, rng: Draws) -> Images:
    """Take the Gaussian mean of a square of pixels."""
    # The deviation that OpenCV derives from a window's size.
    sigma = 0.3 * ((size - 1) / 2 - 1) + 0.8
    return ops.gaussian(images, sigma, truncate=(size - 1) / 2 / sigma)


@image_perturbation("deeptest.blur_median", severities=[1, 3, 5, 7, 9, 11])
def blur_median(ops: ModuleType, images: Images, size: int, rng: Draws) -> Images:
    """Take the median of a square of pixels."""
    return ops.median_blur(images, size)


@image_perturbation("deeptest.blur_bilateral", severities=[0, 25, 50, 75, 100, 150])
def blur_bilateral(ops: ModuleType, images: Images, sigma: float, rng: Draws) -> Images:
    """Take the mean of a disc of 9 pixels across, weighted by likeness of colour; sigma in grey levels."""
    return ops.bilateral_blur(images, 9, sigma, sigma)
