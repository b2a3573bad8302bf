"""The twelve challenging conditions of CURE-TSR for traffic signs, each at five levels.

Temel, Kwon, Prabhushankar & AlRegib, "CURE-TSR: challenging unreal and real environments for traffic sign
recognition" (2017, arXiv:1712.02463) made the conditions with video effects whose settings are not published in full.
Names and kinds of change are theirs, formulas and levels are ours: chosen by eye on signs of 32×32, from just visible
to hardly readable. Lengths are in pixels of an image whose shorter side has 32 and grow with the image; blurs of images
of more than 512 pixels are computed at 512.
"""

from __future__ import annotations

import math
from types import ModuleType

import numpy as np

from testifai.perturb import rng as draws
from testifai.perturb.images import Draws, Images, Layer, coarsely, image_perturbation, relevelled, times
from testifai.perturb.textures import plasma
from testifai.support.types import Floats

_SIDE = 32
_WHITE = 255.0
_FLAKES = (1.3, 2.0, 3.2)
_COSINE, _SINE = (wave(2 * np.pi * draws.QUANTILES).astype(np.float32) for wave in (np.cos, np.sin))


@image_perturbation("cure.decolorization", [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
def decolorization(ops: ModuleType, images: Images, share: float, rng: Draws) -> Images:
    """Take colour away: a share of the way to grey of the same luma; grey images stay as they are."""
    return ops.levels((1 - share) * ops.floats(images) + share * ops.luma(images))


@image_perturbation("cure.lens_blur", [0.0, 1.0, 1.5, 2.0, 2.5, 3.5])
def lens_blur(ops: ModuleType, images: Images, radius: float, rng: Draws) -> Images:
    """Put the lens out of focus: the mean over a disc of a radius in pixels."""
    return coarsely(ops, images, lambda part: ops.disc_blur(part, radius * _scale(ops, part), 0.5))


@image_perturbation("cure.codec_error", [None, (60, 0.1, 2), (40, 0.2, 3), (25, 0.3, 4), (15, 0.45, 6), (8, 0.6, 8)])
def codec_error(ops: ModuleType, images: Images, quality_share_reach: tuple[int, float, float], rng: Draws) -> Images:
    """Break a video codec: low quality, and a share of the blocks shown up to some pixels from their place."""
    quality, share, reach = quality_share_reach
    height, width, _ = ops.image_shape(images)
    scale = _scale(ops, images)
    block, reach = max(2, round(8 * scale)), max(1, round(reach * scale))
    rows, columns = np.arange(height) // block, np.arange(width) // block
    words = rng.field((3, int(rows[-1]) + 1, int(columns[-1]) + 1))
    broken = ops.uniform(words[:, 0]) < share
    # Moves are whole pixels: without interpolation the edges of the blocks stay sharp.
    moves = (ops.where(broken, ops.uniform(words[:, axis], -reach, reach + 1) // 1, 0.0) for axis in (1, 2))
    return ops.displace(ops.jpeg(images, quality), *(ops.resample(move, rows, columns) for move in moves))


@image_perturbation("cure.darken", [1.0, 0.75, 0.55, 0.4, 0.27, 0.17], smooth=times)
def darken(ops: ModuleType, images: Images, factor: float, rng: Draws) -> Images:
    """Let less light in: every level times a factor."""
    return relevelled(ops, images, np.arange(256) * factor)


@image_perturbation("cure.dirty_lens", [None, (0.7, 0.6), (0.62, 0.7), (0.54, 0.8), (0.46, 0.9), (0.38, 0.97)])
def dirty_lens(ops: ModuleType, images: Images, clean_density: tuple[float, float], rng: Draws) -> Images:
    """Smear the lens: dark smudges where a random cloud exceeds a bound, of a density up to the given one."""
    clean, density = clean_density
    height, width, _ = ops.image_shape(images)
    cloud = plasma(ops, rng, height, width, decay=1.8)
    smudge = ops.clip((cloud - clean) * 5.0, 0.0, 1.0)
    return _blend(ops, images, 40.0, density * smudge)


@image_perturbation("cure.exposure", [1.0, 1.4, 1.9, 2.7, 4.0, 6.0], smooth=times)
def exposure(ops: ModuleType, images: Images, gain: float, rng: Draws) -> Images:
    """Expose for too long: every level times a gain, cut off at white."""
    return relevelled(ops, images, np.arange(256) * gain)


@image_perturbation("cure.gaussian_blur", [0.0, 0.6, 1.0, 1.5, 2.2, 3.2])
def gaussian_blur(ops: ModuleType, images: Images, sigma: float, rng: Draws) -> Images:
    """Blur with a Gaussian of a standard deviation in pixels."""
    return coarsely(ops, images, lambda part: ops.gaussian(part, sigma * _scale(ops, part)))


@image_perturbation("cure.noise", [0.0, 12.0, 22.0, 35.0, 52.0, 75.0])
def noise(ops: ModuleType, images: Images, sigma: float, rng: Draws) -> Images:
    """Add normal noise of a standard deviation in grey levels to every pixel and channel."""
    return ops.levels(ops.floats(images) + ops.take(draws.normal(0.0, sigma), rng.field(ops.image_shape(images))))


@image_perturbation("cure.rain", [None, (0.01, 0.4), (0.02, 0.5), (0.035, 0.6), (0.055, 0.7), (0.08, 0.8)])
def rain(ops: ModuleType, images: Images, drops_density: tuple[float, float], rng: Draws) -> Images:
    """Streaks of rain at a random slant: drops per pixel, and how much of a streak is white."""
    drops, density = drops_density
    height, width, _ = ops.image_shape(images)
    scale = _scale(ops, images)
    # Streaks are a quarter of a pixel wide in an image of 32, but at least a pixel of this one.
    place = max(1.0, scale / 4)
    rows, columns = (np.arange(length) / place for length in (height, width))
    length = 8 * scale / place
    # Lines are blurred along rows, so rain falls sideways until the axes are exchanged.
    falling = ops.take(draws.chosen(drops * place / scale), rng.field((_count(columns), _count(rows))))
    sky = ops.levels(_WHITE * falling)[..., None]
    streaks = ops.floats(ops.line_blur(sky, rng.integers(-20, 21), length, 0.75 * length))[..., 0]
    # A drop becomes a streak that starts at about 1 / length of its level.
    white = ops.resample(ops.minimum(streaks.swapaxes(1, 2) * (length / 320.0), 1.0), rows, columns)
    return _blend(ops, images, _WHITE, density * white)


@image_perturbation("cure.shadow", [0.0, 0.3, 0.45, 0.6, 0.75, 0.9])
def shadow(ops: ModuleType, images: Images, density: float, rng: Draws) -> Images:
    """Cast a shadow: a band with soft edges, of random direction, place and width, that takes a share of the light."""
    height, width, _ = ops.image_shape(images)
    side = min(height, width)
    x, y = ops.grid(images, height, width)
    direction = rng.field((1, 1))
    across = (x - (width - 1) / 2) * ops.take(_COSINE, direction) + (y - (height - 1) / 2) * ops.take(_SINE, direction)
    place = ops.per_image(rng.uniform(low=-0.3 * side, high=0.3 * side))[..., 0]
    reach = ops.per_image(rng.uniform(low=0.15 * side, high=0.5 * side))[..., 0]
    distance = ops.maximum(across - place, place - across)
    return _blend(ops, images, 0.0, density * ops.clip((reach - distance) / (0.08 * side) + 0.5, 0.0, 1.0))


@image_perturbation("cure.snow", [None, (0.015, 0.05), (0.03, 0.1), (0.05, 0.16), (0.075, 0.22), (0.11, 0.3)])
def snow(ops: ModuleType, images: Images, flakes_veil: tuple[float, float], rng: Draws) -> Images:
    """Snowflakes of three sizes, each in a share of the places for it, before a white veil."""
    share, veil = flakes_veil
    height, width, _ = ops.image_shape(images)
    small, middle, large = (_spots(ops, rng, height, width, size * _scale(ops, images), share) for size in _FLAKES)
    # Without their outer parts, spots are round.
    flakes = ops.maximum(ops.maximum(small, middle), large) * 2.0 - 0.5
    return _blend(ops, images, _WHITE, ops.clip(flakes, veil, 1.0))


@image_perturbation("cure.haze", [0.0, 0.3, 0.45, 0.6, 0.72, 0.84])
def haze(ops: ModuleType, images: Images, density: float, rng: Draws) -> Images:
    """Haze before the scene: a blend with light grey, denser towards the top, where the road is far, and in clouds."""
    height, width, _ = ops.image_shape(images)
    _, y = ops.grid(images, height, width)
    cloud = plasma(ops, rng, height, width, decay=2.5)
    return _blend(ops, images, 215.0, density * (1.0 - 0.25 * y / height - 0.25 * cloud))


def _scale(ops: ModuleType, images: Images) -> float:
    height, width, _ = ops.image_shape(images)
    return float(min(height, width) / _SIDE)


def _blend(ops: ModuleType, images: Images, level: float, share: Layer) -> Images:
    pixels = ops.floats(images)
    way = level - pixels
    way *= share[..., None]
    way += pixels
    return ops.levels(way)


def _spots(ops: ModuleType, rng: Draws, height: int, width: int, size: float, share: float) -> Layer:
    """A layer with soft spots from 1 down to 0, of a size in pixels, at a share of the places that far apart."""
    rows, columns = (np.arange(length) / max(1.0, size) for length in (height, width))
    spots = ops.take(draws.chosen(share), rng.field((_count(rows), _count(columns))))
    return ops.resample(spots, rows, columns)


def _count(places: Floats) -> int:
    return math.ceil(float(places[-1])) + 1
