"""Textures that weather perturbations lay over images: drifting fog and frost on a window pane."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from types import ModuleType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.ndimage import gaussian_filter

from testifai.perturb.images import Draws, Layer
from testifai.support.types import Array, Floats

_COARSE = 64  # points per side at which only the visible part of a fractal is refined further
_PANE = 512  # side of a frost texture in pixels
_ROOM = 1.1  # smallest ratio of a texture's side to an image's


def plasma(ops: ModuleType, rng: Draws, height: int, width: int, decay: float, side: int | None = None) -> Layer:
    """A cloud per image, as a layer in 0..1: the diamond-square fractal of ImageNet-C's fog.

    The fractal (Fournier, Fussell & Carpenter, Commun. ACM 25(6), 1982) is on a torus whose side is the next power of
    two, or `side`; the image gets its top left corner. Each level halves the distance of points and divides the
    roughness by `decay`; as in Hendrycks & Dietterich (2019, arXiv:1903.12261) the roughness counts twice, so the
    random part shrinks by decay². 0 and 1 are the extremes of the first 64×64 points of the map.
    """
    side = side or max(2, 1 << (max(height, width) - 1).bit_length())
    coarse = min(side, _COARSE)
    step = side // coarse
    shapes = [(points, points) for points in _powers(coarse)]
    # At each further level, cropping affects neighbours: one coarse point before, two behind.
    rows, columns = (min(coarse, -(-length // step) + 3) for length in (height, width))
    shapes += [(rows * points, columns * points) for points in _powers(step)]
    words = rng.field(3 * sum(down * across for down, across in shapes))
    noise = _noise(ops, words, shapes, decay)
    map_ = ops.zeros(words, (len(words), 1, 1))
    for _ in _powers(coarse):
        map_ = _finer(ops, map_, next(noise))
    lowest, highest = -ops.largest(-map_), ops.largest(map_)
    top, left = (int(step > 1 and kept < coarse) for kept in (rows, columns))
    if step > 1:
        map_ = ops.roll(ops.roll(map_, top, 1), left, 2)[:, :rows, :columns]
    for _ in _powers(step):
        map_ = _finer(ops, map_, next(noise))
    shown = map_[:, top * step :, left * step :][:, :height, :width]
    return ops.clip((shown - lowest) / (highest - lowest), 0.0, 1.0)


def _noise(ops: ModuleType, words: Layer, shapes: list[tuple[int, int]], decay: float) -> Iterator[Layer]:
    amplitude, used = 1.0, 0
    for rows, columns in shapes:
        count = 3 * rows * columns
        yield ops.uniform(words[:, used : used + count].reshape(-1, 3, rows, columns), -amplitude, amplitude)
        amplitude, used = amplitude / decay**2, used + count


def _powers(below: int) -> list[int]:
    return [1 << exponent for exponent in range(below.bit_length() - 1)]


def _finer(ops: ModuleType, map_: Layer, noise: Layer) -> Layer:
    """The map with twice as many points per side; a new one is the mean of its four neighbours plus noise."""
    below, right = map_ + ops.roll(map_, -1, 1), map_ + ops.roll(map_, -1, 2)
    centre = below + ops.roll(below, -1, 2)
    centre *= 0.25
    centre += noise[:, 0]
    right += centre
    right += ops.roll(centre, 1, 1)
    right *= 0.25
    right += noise[:, 1]
    below += centre
    below += ops.roll(centre, 1, 2)
    below *= 0.25
    below += noise[:, 2]
    count, rows, columns = map_.shape
    finer = ops.zeros(map_, (count, 2 * rows, 2 * columns))
    finer[:, ::2, ::2] = map_
    finer[:, ::2, 1::2] = right
    finer[:, 1::2, ::2] = below
    finer[:, 1::2, 1::2] = centre
    return finer


def frost(scale: float = 1.0, shown: int = 0) -> NDArray[np.uint8]:
    """Six textures of frost on a window pane, uint8 (6, S, S, 3), to blend with images.

    The textures are generated: feathers of ice on a cloudy pane. Mean colour and contrast, and over all six the power
    of coarse and fine detail, are those of the photographs of ImageNet-C. S is 512 · scale (CIFAR-10-C: scale 0.2), but
    at least 1.1 times `shown`, the longer side of the images, as in successors of ImageNet-C.
    """
    return _frost(max(round(_PANE * scale), math.ceil(_ROOM * shown)))


class _Pane(NamedTuple):
    colour: tuple[int, int, int]
    contrast: int
    feathers: int
    length: int  # of the longest feather, in pixels
    opening: float  # between a feather's stem and its barbs, in radians
    spread: float  # of the stems about their common direction, in radians
    direction: float
    share: float  # of the feathers; the rest is cloud


_PANES = (
    _Pane((78, 149, 166), 18, feathers=500, length=70, opening=0.5, spread=0.5, direction=1.6, share=0.5),
    _Pane((201, 205, 214), 22, feathers=800, length=90, opening=0.3, spread=3.0, direction=0.0, share=0.6),
    _Pane((201, 205, 214), 22, feathers=300, length=150, opening=0.3, spread=3.0, direction=0.0, share=0.65),
    _Pane((138, 153, 165), 29, feathers=1500, length=36, opening=0.7, spread=3.0, direction=0.0, share=0.8),
    _Pane((112, 123, 135), 43, feathers=900, length=60, opening=0.9, spread=3.0, direction=0.0, share=0.75),
    _Pane((71, 95, 105), 41, feathers=160, length=190, opening=0.6, spread=0.8, direction=-1.6, share=0.6),
)
_GAP = 5.5  # pixels between two barbs
_BARB = 0.45  # the longest barb as a share of its feather's length
_SIDES = ((-1, 1.0), (1, 0.45))  # light from one side: brightness of barbs to the left and right of a stem
_CLOUD_SLOPE = 1.8
_SOFTNESS = 0.6  # a camera's blur in pixels, for the power of the finest detail


@lru_cache(maxsize=4)
def _frost(side: int) -> NDArray[np.uint8]:
    panes = _panes()
    if side != _PANE:
        edges, pixels = np.arange(side + 1) * _PANE / side, np.arange(_PANE)
        shared = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
        weights = shared.clip(0) * (side / _PANE) if side < _PANE else _cubic(side)  # means over areas, or enlarged
        rows = np.tensordot(panes, weights, (1, 1))  # each axis that is resized becomes the last
        both = np.tensordot(rows, weights, (1, 1)).transpose(0, 2, 3, 1)
        panes = np.clip(both + 0.5, 0, 255).astype(np.uint8)
        panes.flags.writeable = False
    return panes


def _cubic(side: int) -> Floats:
    """The matrix that enlarges a pane by Keys' cubic convolution (1981) with OpenCV's a = −3/4."""
    places = (np.arange(side) + 0.5) * _PANE / side - 0.5
    weights = np.zeros((side, _PANE))
    for step in (-1, 0, 1, 2):
        pixels = np.floor(places) + step
        x = np.abs(places - pixels)
        near, far = (1.25 * x - 2.25) * x * x + 1, ((-0.75 * x + 3.75) * x - 6) * x + 3
        np.add.at(weights, (np.arange(side), pixels.clip(0, _PANE - 1).astype(int)), np.where(x <= 1, near, far))
    return weights


@lru_cache(maxsize=1)
def _panes() -> NDArray[np.uint8]:
    panes = np.empty((len(_PANES), _PANE, _PANE, 3), dtype=np.uint8)
    # Clouds are noise on a torus whose power falls with a power of the frequency.
    frequency = np.hypot(fft.fftfreq(_PANE)[:, None], fft.rfftfreq(_PANE)).astype(np.float32)
    frequency[0, 0] = np.inf
    spectrum = frequency ** (-_CLOUD_SLOPE / 2)
    for seed, (pane, picture) in enumerate(zip(_PANES, panes, strict=True)):
        random = np.random.default_rng(seed)
        ice = _feathers(pane, random)
        # Overlapping feathers do not get much brighter; a small step gives them an edge.
        ice /= ice + 0.8 * ice.mean() + 0.15
        ice += 0.6 * (ice - np.roll(ice, (1, 1), (0, 1)))
        cloud = _standard(fft.irfft2(fft.rfft2(random.standard_normal((_PANE, _PANE), dtype=np.float32)) * spectrum))
        grey = pane.share * _standard(ice) + (1 - pane.share) * cloud
        grey = _standard(gaussian_filter(grey, _SOFTNESS, mode="wrap"))
        picture[:] = np.clip(np.array(pane.colour) + pane.contrast * grey[..., None] + 0.5, 0, 255)
    panes.flags.writeable = False
    return panes


def _feathers(pane: _Pane, random: np.random.Generator) -> NDArray[np.float32]:
    """Ice per pixel: straight stems with barbs that get shorter towards the tip, on a torus."""
    count, barbs = pane.feathers, int(pane.length / _GAP)
    # Start in the second period of the torus: all places are positive and are rounded alike.
    x, y = random.uniform(_PANE, 2 * _PANE, (2, count, 1, 1)).astype(np.float32)
    length = (pane.length * random.uniform(0.35, 1, (count, 1, 1))).astype(np.float32)
    heading = pane.direction + pane.spread * random.standard_normal((count, 1, 1))
    light = random.uniform(0.3, 1, (count, 1, 1)).astype(np.float32)
    ice = np.zeros(_PANE * _PANE)

    def draw(left: Array, top: Array, weight: Array) -> None:
        places = top.astype(np.int32) % _PANE * _PANE + left.astype(np.int32) % _PANE
        ice[:] += np.bincount(places.ravel(), np.broadcast_to(weight, places.shape).ravel(), minlength=len(ice))

    cosine, sine = np.cos(heading).astype(np.float32), np.sin(heading).astype(np.float32)
    stem = np.linspace(0, 1, pane.length, dtype=np.float32) * length
    draw(x + cosine * stem, y + sine * stem, 1.2 * light)
    along = ((np.arange(barbs, dtype=np.float32) + 0.5) / barbs)[:, None]
    out = np.linspace(0, 1, int(pane.length * _BARB), dtype=np.float32)
    for side, shine in _SIDES:
        way = heading + side * pane.opening
        barb = _BARB * length * (1 - along) * random.uniform(0.5, 1, (count, barbs, 1)).astype(np.float32) * out
        left = x + cosine * length * along + np.cos(way).astype(np.float32) * barb
        top = y + sine * length * along + np.sin(way).astype(np.float32) * barb
        draw(left, top, shine * light * (1 - 0.5 * out))
    sharp = blurred = ice.reshape(_PANE, _PANE)
    for axis in (0, 1):
        blurred = (blurred + np.roll(blurred, 1, axis) + np.roll(blurred, -1, axis)) / 3
    return (0.7 * sharp + 0.3 * blurred).astype(np.float32)


def _standard(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray((values - values.mean()) / values.std())
