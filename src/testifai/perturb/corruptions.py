"""The nineteen corruptions of ImageNet-C and CIFAR-C, each written once; the two suites hold the parameters.

D. Hendrycks and T. Dietterich, "Benchmarking neural network robustness to common corruptions and perturbations" (ICLR
2019, arXiv:1903.12261). The published code and its package by C. Michaelis and others (imagecorruptions,
arXiv:1907.07484) define each. Lengths are in pixels, as published, for images of any size. Intended differences:

- results are rounded to grey levels, not truncated, which keeps half a level of brightness;
- blur along a line repeats the edge pixel also if the line is longer than the image, so no light is lost;
- angles are whole degrees; the blur of snow goes down, the original up: the same after the half turn is added;
- enlarged images are trimmed evenly on both sides, as in the paper's code (the package trims one side);
- elastic displacements of CIFAR-C, an affine map and local shifts, are one interpolation, not two, and the affine map
  is sampled from the result to the image, not in the other direction;
- frost has generated textures, not the original's photographs;
- colours on grey images are reduced to their luma.

Two errors of the published code are kept, because the benchmark's images have them: glass blur copies pixels instead of
swapping them, and the two largest discs out of focus weigh 1 % too much.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

import numpy as np

from testifai.perturb import rng as draws
from testifai.perturb import textures
from testifai.perturb.base import Parameter
from testifai.perturb.geometric import about_centre, displacement_perturbation
from testifai.perturb.images import GROUPED, SLAB, Draws, Images, Layer, brighter, image_perturbation, stretched

_LUMA = (0.299, 0.587, 0.114)
_WATER = (175.0, 238.0, 238.0)
_MUD = (63.0, 42.0, 20.0)
_EMBOSS = ((-2, -1, 0), (-1, 1, 1), (0, 1, 2))
_BOX = ((1, 1, 1),) * 3

# Published separately, for tuning; the fifteen others are the benchmark.
EXTRA = ("speckle_noise", "gaussian_blur", "spatter", "saturate")

# Sorting images by angle, or swapping pixels of all images together, pays off for large batches.
_SLABS = {"glass_blur": GROUPED, "motion_blur": GROUPED, "snow": 2**20}
_SMOOTH = {"brightness": brighter, "contrast": stretched}


def register(suite: str, tables: Mapping[str, Sequence[Parameter]], not_growing: Sequence[str]) -> None:
    """Register a suite; a table that begins with a number has a continuous level from it (off) to its last."""
    for name, table in tables.items():
        growing = name not in not_growing
        if name == "elastic_transform":
            displacement_perturbation(f"{suite}.{name}", table, growing=growing)(elastic_transform)
            continue
        image_perturbation(
            f"{suite}.{name}",
            table,
            growing=growing,
            levels=None if table[0] is None else (table[0], table[-1]),
            slab=_SLABS.get(name, SLAB),
            smooth=_SMOOTH.get(name),
        )(globals()[name])


def gaussian_noise(ops: ModuleType, images: Images, sigma: float, rng: Draws) -> Images:
    """Add normal noise; sigma as a share of white."""
    noise = ops.take(draws.normal(0.0, 255 * sigma), rng.field(images.shape[1:]))
    return ops.levels(ops.floats(images) + noise)


def shot_noise(ops: ModuleType, images: Images, photons: float, rng: Draws) -> Images:
    """Count photons: a Poisson draw per pixel, where white expects the given number."""
    return ops.draw_levels(images, rng.field(images.shape[1:]), draws.photon_levels(photons))


def impulse_noise(ops: ModuleType, images: Images, amount: float, rng: Draws) -> Images:
    """Replace a share of the values, half of them by 0 and half by 255."""
    words = rng.field(images.shape[1:])
    changed = round(amount * draws.WORDS)
    salted = ops.where(words < changed, 255, images)
    return ops.where(words < changed // 2, 0, salted)


def speckle_noise(ops: ModuleType, images: Images, sigma: float, rng: Draws) -> Images:
    """Multiply by normal noise around 1."""
    return ops.levels(ops.floats(images) * ops.take(draws.normal(1.0, sigma), rng.field(images.shape[1:])))


def gaussian_blur(ops: ModuleType, images: Images, sigma: float, rng: Draws) -> Images:
    """Blur by a Gaussian; sigma in pixels."""
    return ops.gaussian(images, sigma)


def glass_blur(ops: ModuleType, images: Images, parameter: tuple[float, int, int], rng: Draws) -> Images:
    """Blur, put neighbours in the place of pixels, blur; (sigma, farthest neighbour, times) in pixels."""
    # The published code means to swap, but copies through views; the benchmark's images were made like this.
    sigma, radius, times = parameter
    height, width, _ = ops.image_shape(images)
    images = ops.gaussian(images, sigma)
    for _ in range(times):
        images = ops.shuffle(images, radius, rng.field((height, width)), swap=False)
    return ops.gaussian(images, sigma)


def defocus_blur(ops: ModuleType, images: Images, parameter: tuple[float, float], rng: Draws) -> Images:
    """Blur by a disc, as a lens out of focus; (radius, softness of its edge) in pixels."""
    weight = _disc_weight(*parameter)
    blurred = ops.disc_blur(images, *parameter)
    return blurred if weight == 1 else ops.levels(ops.floats(blurred) * weight)


def motion_blur(ops: ModuleType, images: Images, parameter: tuple[float, float], rng: Draws) -> Images:
    """Blur along a line at a random angle between −45 and 45 degrees; (radius, sigma) in pixels."""
    radius, sigma = parameter
    return ops.line_blur(images, rng.integers(-45, 46), 2 * radius, sigma)


def zoom_blur(ops: ModuleType, images: Images, parameter: tuple[float, float], rng: Draws) -> Images:
    """Mean of the image and of its enlargements; (end, step) of their factors from 1."""
    height, width, _ = ops.image_shape(images)
    matrices = []
    for factor in (1.0, *np.arange(1, *parameter)):
        (left, across), (top, down) = _middle(width, factor), _middle(height, factor)
        matrices.append([[across, 0, left], [0, down, top]])
    return ops.mean_of_warps(images, matrices)


def snow(ops: ModuleType, images: Images, parameter: tuple[float, ...], rng: Draws) -> Images:
    """Whiten the image and let enlarged, blurred flakes fall on it."""
    # Flakes: mean and deviation of their noise, enlargement, threshold, radius and sigma of their blur; and the share
    # of the image that is not whitened.
    mean, deviation, factor, least, radius, sigma, kept = parameter
    height, width, _ = ops.image_shape(images)
    (rows, down), (columns, across) = (_enlarged(side, factor) for side in (height, width))
    noise = ops.take(draws.normal(255 * mean, 255 * deviation), rng.field((rows, columns)))
    # The lower end, where blur repeats the edge, is on a row of the noise, as the published upper end is.
    flakes = ops.resample(noise, down * np.arange(height)[::-1], across * np.arange(width)[::-1])
    flakes = ops.levels(ops.where(flakes < 255 * least, 0.0, flakes))
    # Lines are within 45 degrees of the x axis; falling snow is within 45 degrees of the y axis.
    fallen = ops.line_blur(flakes.swapaxes(1, 2)[..., None], rng.integers(-45, 46), 2 * radius, sigma)
    falling = fallen.swapaxes(1, 2)
    turned = ops.warp(falling, about_centre(-np.eye(2), height, width))
    layer = (ops.floats(falling) + ops.floats(turned))[..., 0]
    light = 1.5 * ops.luma(images)[..., 0] + 127.5
    return _by_channel(ops, images, lambda values, _: kept * values + (1 - kept) * ops.maximum(values, light) + layer)


def frost(ops: ModuleType, images: Images, parameter: tuple[float, float, float], rng: Draws) -> Images:
    """Lay a part of a frost texture over the image; (share of the image, of the frost, scale of the texture)."""
    own, added, scale = parameter
    height, width, channels = ops.image_shape(images)
    panes = textures.frost(scale, max(height, width))
    count, side = panes.shape[:2]
    which, top, left = (rng.integers(0, end) for end in (count, side - height + 1, side - width + 1))
    ice = ops.crops(panes, which, top, left, height, width)
    return ops.levels(own * ops.floats(images) + added * (ops.floats(ice) if channels == 3 else ops.luma(ice)))


def fog(ops: ModuleType, images: Images, parameter: tuple[float, float], rng: Draws) -> Images:
    """Add a cloud and darken so that the brightest stays as bright; (density, decay of the cloud's roughness)."""
    density, decay = parameter
    height, width, _ = ops.image_shape(images)
    cloud = 255 * density * textures.plasma(ops, rng, height, width, decay)
    brightest = ops.largest(images)[..., 0]
    share = brightest / (brightest + 255 * density)
    return _by_channel(ops, images, lambda values, _: (values + cloud) * share)


def brightness(ops: ModuleType, images: Images, amount: float, rng: Draws) -> Images:
    """Add to the V of hue, saturation and value, as a share of white."""
    return ops.brighten(images, amount)


def contrast(ops: ModuleType, images: Images, factor: float, rng: Draws) -> Images:
    """Scale the differences from each channel's mean."""
    return ops.stretch(images, factor, (1 - factor) * ops.channel_means(images))


def elastic_transform(
    ops: ModuleType, parameter: tuple[float, float, float], rng: Draws, height: int, width: int
) -> tuple[Layer, Layer]:
    """Move pixels locally and the image as a whole."""
    # Strength and sigma of local shifts, and the largest shift of three points, as shares of the image's side.
    strength, sigma, affine = parameter
    dx, dy = (ops.uniform(rng.field((height, width)), -strength * height, strength * height) for _ in range(2))
    if sigma > 0:
        sigmas = (sigma * height, sigma * width)
        dx, dy = (ops.gaussian(layer, sigmas, truncate=3.0, border="mirror") for layer in (dx, dy))
    if affine > 0:
        moved_x, moved_y = _affine_shift(ops, rng, dx, dy, affine)
        dx, dy = dx + moved_x, dy + moved_y
    return dx, dy


def pixelate(ops: ModuleType, images: Images, share: float, rng: Draws) -> Images:
    """Show fewer, larger pixels: a share of each side's number."""
    height, width, _ = ops.image_shape(images)
    return ops.pixelate(images, max(1, int(height * share)), max(1, int(width * share)))


def jpeg_compression(ops: ModuleType, images: Images, quality: int, rng: Draws) -> Images:
    """Compress by JPEG of a quality from 1 to 100."""
    return ops.jpeg(images, quality)


def spatter(ops: ModuleType, images: Images, parameter: tuple[float, ...], rng: Draws) -> Images:
    """Splash water or mud."""
    # Mean, deviation, sigma and threshold of the noise for the liquid; strength of water or blur of mud.
    mean, deviation, sigma, least, amount, is_mud = parameter
    height, width, _ = ops.image_shape(images)
    liquid = ops.gaussian(ops.take(draws.normal(mean, deviation), rng.field((height, width))), sigma)
    if is_mud:
        thickness = ops.gaussian(ops.where(liquid > least, 1.0, ops.zeros(liquid, liquid.shape)), amount)
        cover = ops.where(thickness < 0.8, 0.0, thickness)
        mud = _colour(_MUD, images)
        return _by_channel(ops, images, lambda values, channel: values + cover * (mud[channel] - values))
    depth = ops.levels(ops.where(liquid < least, 0.0, 255 * liquid))
    drops = ops.floats(depth) * _relief(ops, depth)
    drops = drops * (amount / ops.maximum(ops.largest(drops), 1.0))
    water = _colour(_WATER, images)
    return _by_channel(ops, images, lambda values, channel: values + water[channel] * drops)


def saturate(ops: ModuleType, images: Images, parameter: tuple[float, float], rng: Draws) -> Images:
    """Change the S of hue, saturation and value; (factor, offset)."""
    return ops.saturate(images, *parameter)


@functools.cache
def _disc_weight(radius: float, softness: float) -> float:
    """The total weight of the published disc, softened in a mirrored frame: one that fills it gains about 1 %."""
    reach = max(8, math.ceil(radius))
    squares = np.arange(-reach, reach + 1) ** 2
    disc = (squares[:, None] + squares <= radius**2).astype(float)
    taps = np.arange(-1, 2) if radius <= 8 else np.arange(-2, 3)
    kernel = np.exp(-0.5 * (taps / softness) ** 2)
    kernel /= kernel.sum()
    wide = np.pad(disc, taps[-1], mode="reflect")
    soft = sum(weight * wide[place : place + len(disc)] for place, weight in enumerate(kernel))
    soft = sum(weight * soft[:, place : place + len(disc)] for place, weight in enumerate(kernel))
    return float(round(np.sum(soft) / disc.sum(), 6))


def _enlarged(side: int, factor: float) -> tuple[int, float]:
    """Pixels of a side that an enlargement shows, and the step between the places of neighbours, as published."""
    part = int(np.ceil(side / factor))
    return part, (part - 1) / max(round(part * factor) - 1, 1)


def _middle(side: int, factor: float) -> tuple[float, float]:
    """The place that the first pixel of an enlargement about the middle shows, and the step to the next."""
    part, step = _enlarged(side, factor)
    return (side - part) // 2 + (round(part * factor) - side) // 2 * step, step


def _affine_shift(ops: ModuleType, rng: Draws, dx: Layer, dy: Layer, affine: float) -> tuple[Layer, Layer]:
    """The shift of already shifted places by the affine map that moves three points at random."""
    height, width = dx.shape[1:]
    reach = affine * min(height, width)
    moves = rng.uniform((3, 2), -reach, reach)
    x, y = ops.grid(dx, height, width)
    square = max(1, min(height, width) // 3)
    across, down = (x + dx - width // 2) / square, (y + dy - height // 2) / square
    # Weights that are 1 at one point and 0 at the others: lower right, upper right and upper left of a square.
    weights = ((1 + down) / 2, (across - down) / 2, (1 - across) / 2)
    shifts = [sum(w * ops.per_image(moves[:, k, axis])[..., 0] for k, w in enumerate(weights)) for axis in (0, 1)]
    return shifts[0], shifts[1]


def _relief(ops: ModuleType, depth: Layer) -> Layer:
    away = ops.distance(ops.canny(depth, 50, 150), 20.0)
    even = ops.equalise(ops.levels(_filter(ops, away, _BOX) / 9 - 0.5))
    lit = ops.clip(_filter(ops, ops.floats(even), _EMBOSS), 0.0, 255.0)
    return ops.floats(ops.levels(_filter(ops, lit, _BOX) / 9))


def _filter(ops: ModuleType, layer: Layer, kernel: Sequence[Sequence[int]]) -> Layer:
    """Correlation with a 3×3 kernel; outside, the layer is mirrored without repeating the edge."""
    count, height, width = layer.shape
    wide = ops.zeros(layer, (count, height + 2, width + 2))
    wide[:, 1:-1, 1:-1] = layer
    wide[:, 0], wide[:, -1] = wide[:, min(2, height)], wide[:, max(-3, -1 - height)]
    wide[:, :, 0], wide[:, :, -1] = wide[:, :, min(2, width)], wide[:, :, max(-3, -1 - width)]
    total = ops.zeros(layer, layer.shape)
    for row, weights in enumerate(kernel):
        for column, weight in enumerate(weights):
            if weight:
                total += weight * wide[:, row : row + height, column : column + width]
    return total


def _colour(colour: tuple[float, float, float], images: Images) -> tuple[float, ...]:
    if images.shape[-1] == 3:
        return colour
    return (sum(weight * level for weight, level in zip(_LUMA, colour, strict=True)),)


def _by_channel(ops: ModuleType, images: Images, change: Callable[[Layer, int], Layer]) -> Images:
    made = ops.zeros(images, images.shape)
    for channel in range(images.shape[-1]):
        made[..., channel] = change(ops.floats(images[..., channel]), channel)
    return ops.levels(made)
