"""MNIST-C by N. Mu and J. Gilmer (2019, arXiv:1906.02337): perturbations with the published parameters.

The published numbers are for digits of 28×28. Lengths in pixels are scaled by the width, the height or, if they share a
length, the smaller of the two; angles, factors and rates are the same for every size; blurs of images of more than 512
pixels are computed at 512. Places outside the image are black. Four perturbations are published at one level only: it
is level 3 of stripe, dotted_line and zigzag, and level 5 of canny_edges.
"""

from __future__ import annotations

import math
from types import ModuleType

import numpy as np

from testifai.perturb import corruptions
from testifai.perturb import rng as draws
from testifai.perturb.geometric import AffineChoice, about_centre, affine_perturbation, turn
from testifai.perturb.images import GROUPED, Draws, Images, Layer, brighter, coarsely, image_perturbation
from testifai.perturb.textures import plasma

_SIDE = 28


image_perturbation(
    "mnist_c.shot_noise",
    [None, 60, 25, 12, 5, 3],
    "Count photons: a Poisson draw per pixel and channel, where white expects the given number.",
)(corruptions.shot_noise)
image_perturbation(
    "mnist_c.impulse_noise",
    [0.0, 0.03, 0.06, 0.09, 0.17, 0.27],
    "Set a share of the values to black or white, half of them to each.",
)(corruptions.impulse_noise)


@image_perturbation("mnist_c.glass_blur", [None, (0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)])
def glass_blur(ops: ModuleType, images: Images, parameters: tuple[float, int, int], rng: Draws) -> Images:
    """Blur, swap half of the pixels with neighbours, blur again; (sigma, reach in pixels, rounds of swaps)."""
    return coarsely(ops, images, lambda part: _glass(ops, part, *parameters, rng))


def _glass(ops: ModuleType, images: Images, sigma: float, reach: int, rounds: int, rng: Draws) -> Images:
    height, width, _ = ops.image_shape(images)
    scale = _scale(height, width)
    reach = max(1, round(reach * scale))
    # Words of one half are spread over all offsets; the others become the word whose offset is (0, 0).
    side = 2 * reach
    still = math.ceil((reach * side + reach) * 2**16 / side**2)
    images = ops.gaussian(images, sigma * scale)
    for _ in range(rounds):
        words = rng.field((height, width))
        images = ops.shuffle(images, reach, ops.where(words < 2**15, words * 2, still))
    return ops.gaussian(images, sigma * scale)


@image_perturbation("mnist_c.motion_blur", [None, (10, 3), (15, 5), (15, 8), (15, 12), (20, 15)], slab=GROUPED)
def motion_blur(ops: ModuleType, images: Images, radius_sigma: tuple[float, float], rng: Draws) -> Images:
    """Blur along a line at a random angle between −45 and 45 degrees; (radius, sigma) in pixels."""
    # The nearest whole angle to a uniform number between −45 and 45.
    degrees = rng.uniform(low=-44.5, high=45.5) // 1

    def blur(part: Images) -> Images:
        # The suite calls ImageMagick, whose taps are 0 to 2·radius steps away on one side of the pixel.
        radius, sigma = (length * _scale(*ops.image_shape(part)[:2]) for length in radius_sigma)
        return ops.line_blur(part, degrees, length=2 * radius, sigma=sigma)

    return coarsely(ops, images, blur)


@affine_perturbation("mnist_c.shear", severities=[0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
def shear(angle: float, rng: Draws, height: int, width: int) -> AffineChoice:
    """Slant by an angle in radians to the left or to the right, at random."""
    # As in the suite's time, the y axis turns without changing its length: (x, y) → (x − y sin, y cos).
    slants = [[[1, -math.sin(side)], [0, math.cos(side)]] for side in (-angle, angle)]
    return [about_centre(slant, height, width) for slant in slants], rng.integers(0, 2)


@affine_perturbation("mnist_c.zoom", severities=[1.0, 0.9, 0.8, 0.7, 0.6, 0.5])
def zoom(factor: float, rng: Draws, height: int, width: int) -> AffineChoice:
    """Shrink to a share of the size about the centre (the suite's scale)."""
    return about_centre(np.eye(2) / factor, height, width), None


@affine_perturbation("mnist_c.rotate", severities=[0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
def rotate(angle: float, rng: Draws, height: int, width: int) -> AffineChoice:
    """Turn by an angle in radians, clockwise or anticlockwise at random."""
    return [turn(side, height, width) for side in (-angle, angle)], rng.integers(0, 2)


image_perturbation(
    "mnist_c.brightness",
    [0.0, 0.1, 0.2, 0.3, 0.4, 0.5],
    "Add to the value channel, as a share of white.",
    slab=GROUPED,
    smooth=brighter,
)(corruptions.brightness)


@affine_perturbation("mnist_c.translate", severities=[0, 1, 2, 3, 4, 5])
def translate(pixels: float, rng: Draws, height: int, width: int) -> AffineChoice:
    """Move along both axes by a number of pixels, in one of the four diagonal directions at random."""
    right, down = pixels * width / _SIDE, pixels * height / _SIDE
    moves = [[[1, 0, x], [0, 1, y]] for y in (-down, down) for x in (-right, right)]
    signs = rng.integers(0, 2, size=2)
    return moves, signs[:, 0] + 2 * signs[:, 1]


@image_perturbation("mnist_c.stripe", severities=[0, 3, 5, 7, 9, 11])
def stripe(ops: ModuleType, images: Images, columns: int, rng: Draws) -> Images:
    """Invert the first and the last of the 28 columns: a negative but for a stripe in the middle."""
    height, width, _ = ops.image_shape(images)
    inverted = round(columns * width / _SIDE)
    x, _ = ops.grid(images, height, width)
    return ops.where(((x < inverted) | (x >= width - inverted))[..., None], 255 - images, images)


@image_perturbation("mnist_c.fog", severities=[None, (1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)], growing=False)
def fog(ops: ModuleType, images: Images, amount_decay: tuple[float, float], rng: Draws) -> Images:
    """Add a fractal cloud and scale back to the image's white; (amount as a share of white, decay)."""
    amount, decay = amount_decay
    height, width, _ = ops.image_shape(images)
    # The suite crops 28×28 pixels from a cloud of 256×256; larger images have a larger cloud.
    cloud = plasma(ops, rng, height, width, decay, side=256 if max(height, width) <= 256 else None)
    white = ops.largest(images)
    return ops.levels((ops.floats(images) + cloud[..., None] * (255 * amount)) * (white / (white + 255 * amount)))


@image_perturbation(
    "mnist_c.spatter",
    severities=[
        None,
        (0.65, 0.3, 4, 0.69, 0.6),
        (0.65, 0.3, 3, 0.68, 0.6),
        (0.65, 0.3, 2, 0.68, 0.5),
        (0.65, 0.3, 1, 0.65, 1.5),
        (0.67, 0.4, 1, 0.65, 1.5),
    ],
    growing=False,
)
def spatter(ops: ModuleType, images: Images, parameters: tuple[float, ...], rng: Draws) -> Images:
    """Splash dark grey mud where smooth noise is high; (mean, deviation, smoothing, threshold, soft edge)."""
    mean, deviation, smoothing, threshold, softness = parameters
    height, width, _ = ops.image_shape(images)
    scale = _scale(height, width)
    # Wider smoothing averages out more noise: with `scale` times the noise the splashes grow with the image.
    noise = ops.take(draws.normal(mean, deviation * scale), rng.field((height, width)))
    splashes = ops.where(ops.gaussian(noise, smoothing * scale) > threshold, 1.0, ops.zeros(noise, noise.shape))
    mud = ops.gaussian(splashes, softness * scale)
    mud = ops.where(mud < 0.8, 0.0, mud)[..., None]
    return ops.levels(ops.floats(images) * (1 - mud) + 63 * mud)


@image_perturbation("mnist_c.dotted_line", severities=[0.0, 1.2, 1.7, 2.3, 3.2, 4.6])
def dotted_line(ops: ModuleType, images: Images, thickness: float, rng: Draws) -> Images:
    """Draw a dotted white line from the left to the right edge; its thickness fades within so many pixels."""
    column, row = _digit_grid(ops, images)
    ends = rng.integers(0, 27, size=2)
    first, last = (ops.per_image(ends[:, end])[..., 0] for end in (0, 1))
    distance = row - (first + (last - first) * (column / 27))
    # Two columns blank, two columns dot; the line ends before the last column.
    drawn = ((column + 0.5) % 4 >= 2) & (column < 26.5)
    return _with_line(ops, images, distance, drawn, thickness)


@image_perturbation("mnist_c.zigzag", severities=[0.0, 1.2, 1.7, 2.3, 3.2, 4.6])
def zigzag(ops: ModuleType, images: Images, thickness: float, rng: Draws) -> Images:
    """Draw a white zigzag across the image; its thickness fades within so many pixels."""
    column, row = _digit_grid(ops, images)
    start = ops.per_image(rng.integers(0, 27))[..., 0]
    slope = ops.per_image(rng.integers(-5, 5))[..., 0] / 23
    # 1 / sqrt(1 + slope²), the cosine of the angle, to four digits; a slope is at most 5/23.
    square = slope * slope
    cosine = 1 - square / 2 + square * square * 0.375
    # Corners are 2 pixels to either side of a slanted line and 4 apart along it; the ways up and down have different
    # numbers of columns.
    period = 8 * cosine
    rising = period * (1 - slope) / 2
    phase = (column - 2 + rising / 2) % period
    wave = (ops.minimum(phase / rising, (period - phase) / (period - rising)) * 4 - 2) / cosine
    distance = row - start - slope * (column - 2) - wave
    return _with_line(ops, images, distance, (column >= 1.5) & (column < 24.5), thickness)


@image_perturbation("mnist_c.canny_edges", severities=[0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
def canny_edges(ops: ModuleType, images: Images, share: float, rng: Draws) -> Images:
    """Mix in the image's edges, white on black; at a share of 1 they are all that is left."""
    # The published thresholds are 0.1 and 0.2 of white. Edges are a pixel wide: sigma is not scaled.
    grey = ops.levels(ops.gaussian(ops.luma(images)[..., 0], 1.0))
    edges = ops.floats(ops.canny(grey, 25, 51))[..., None]
    return ops.levels(ops.floats(images) * (1 - share) + edges * (255 * share))


def _scale(height: int, width: int) -> float:
    return min(height, width) / _SIDE


def _digit_grid(ops: ModuleType, images: Images) -> tuple[Layer, Layer]:
    height, width, _ = ops.image_shape(images)
    x, y = ops.grid(images, height, width)
    return (x + 0.5) * (_SIDE / width) - 0.5, (y + 0.5) * (_SIDE / height) - 0.5


def _with_line(ops: ModuleType, images: Images, distance: Layer, drawn: Layer, thickness: float) -> Images:
    """Images with a white line added: 1 + log(1 − distance / thickness) of white, where it is drawn."""
    reach = (1 - 1 / math.e) * thickness
    ink = 255 * (1 + np.log1p(-np.linspace(0, reach, 256) / thickness))
    steps = ops.levels(ops.where(drawn, abs(distance), reach) * (255 / reach))
    line = ops.lookup(steps[..., None], np.rint(ink).astype(np.uint8))
    return ops.levels(ops.floats(images) + ops.floats(line))
