"""Blurs.

Most are matrix products over rows and columns. Their weights are multiples of a power of two, so that sums over pixels
are exact in float64, in any order: results depend neither on the batch nor on how the device multiplies matrices.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from testifai.perturb.ops.filters import WIDEST, bell, blur_matrix, half_gaussian, multiples, reflected
from testifai.perturb.ops_torch.values import Images, constant, image_shape, kernels_for
from testifai.support.types import Floats
from testifai.support.validation import choice, number

# OpenCV's tangent of 22.5°, in steps of 2⁻¹⁵: its products with the gradients of 8-bit images are exact in float32.
_TANGENT = 13573 / 2**15
_ROUNDS = 8  # of growth between checks whether edges still grow: a check waits for the device
# The moves of a 5×5 chamfer mask in one half plane, as (right, down), and their lengths.
_MOVES = (
    *(((right, down), 1.0) for right, down in ((1, 0), (0, 1))),
    *(((right, down), 1.4) for right, down in ((1, 1), (-1, 1))),
    *(((right, down), 2.1969) for right, down in ((2, 1), (1, 2), (-2, 1), (-1, 2))),
)
# Weights along each axis are multiples of 2^-20: with 8-bit pixels, two axes take 48 of the 53 bits of a float64.
_BITS = 20
_STEEPEST = 45  # degrees of a line in `line_blur`

Matrix = Floats


def canny(grey: Tensor, low: float, high: float) -> Tensor:
    low, high = sorted((math.floor(low), math.floor(high)))
    strength, ridge = _ridges(grey)
    weak = ridge & (strength > low)
    return _connected(ridge & (strength > high), weak)


def distance(edges: Tensor, most: float) -> Tensor:
    """The moves of a shortest path can be taken in any order: here direction by direction, 1, 2, 4, … at a time."""
    height, width = edges.shape[1:]
    # With a margin without edges, moves need not stop at the border.
    margin = min(int(most), max(height, width) - 1)
    away = torch.where(edges == 0, float(most), 0.0).float()
    old, new = (pad(away, (margin,) * 4, value=float(most)) for _ in range(2))

    def seen(layer: Tensor, right: int, down: int) -> Tensor:
        return layer[:, margin + down : margin + down + height, margin + right : margin + right + width]

    for (right, down), length in _MOVES:
        times = 1
        # Up to 2 · times − 1 moves are covered after `times` of them at a time.
        while times * length <= most and times * max(abs(right), down) <= margin:
            x, y = times * right, times * down
            moved = torch.minimum(seen(old, x, y), seen(old, -x, -y)).add_(times * length)
            torch.minimum(moved, seen(old, 0, 0), out=seen(new, 0, 0))
            old, new = new, old
            times *= 2
    return seen(old, 0, 0).contiguous()


def equalise(grey: Tensor) -> Tensor:
    pixels = grey.reshape(len(grey), -1).long()
    total = pixels.shape[1]
    counts = torch.zeros((len(grey), 256), dtype=torch.int32, device=grey.device)
    counts.scatter_add_(1, pixels, torch.ones((), dtype=torch.int32, device=grey.device).expand_as(pixels))
    up_to = counts.cumsum(1, dtype=torch.int32)
    darkest = torch.where(up_to > 0, up_to, total).amin(1, keepdim=True)
    others = (total - darkest).clamp(min=1).float()
    # 255 / tensor would be 255 times a rounded inverse.
    spread = (up_to - darkest).float() * (torch.full_like(others, 255) / others)
    table = spread.round().clamp(min=0).to(torch.uint8)
    flat = table.gather(1, pixels).reshape(grey.shape)
    return torch.where(darkest[..., None] == total, grey, flat)


def _ridges(grey: Tensor) -> tuple[Tensor, Tensor]:
    """The strength of the gradient, and a mask of its maxima along its direction, with OpenCV's rules for ties."""
    padded = grey.float()
    padded = torch.cat([padded[:, :1], padded, padded[:, -1:]], dim=1)
    padded = torch.cat([padded[:, :, :1], padded, padded[:, :, -1:]], dim=2)
    across = padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]
    right = across[:, :, 2:] - across[:, :, :-2]
    along = padded[:, :, :-2] + 2 * padded[:, :, 1:-1] + padded[:, :, 2:]
    down = along[:, 2:] - along[:, :-2]
    x, y = right.abs(), down.abs()
    strength = x + y
    around = pad(strength, (1, 1, 1, 1))
    height, width = strength.shape[1:]

    def beside(dx: int, dy: int) -> Tensor:
        return around[:, 1 + dy : 1 + dy + height, 1 + dx : 1 + dx + width]

    horizontal = y < x * _TANGENT
    vertical = y - 2 * x > x * _TANGENT
    across_ridge = (strength > beside(-1, 0)) & (strength >= beside(1, 0))
    down_ridge = (strength > beside(0, -1)) & (strength >= beside(0, 1))
    falling = (strength > beside(-1, -1)) & (strength > beside(1, 1))
    rising = (strength > beside(1, -1)) & (strength > beside(-1, 1))
    # A product of gradients is negative where exactly one of them is.
    diagonal = torch.where((right < 0) ^ (down < 0), rising, falling)
    return strength, torch.where(horizontal, across_ridge, torch.where(vertical, down_ridge, diagonal))


def _connected(strong: Tensor, weak: Tensor) -> Tensor:
    around, allowed = pad(_bits(strong), (1, 1, 1, 1)), _bits(weak)
    inner = around[:, 1:-1, 1:-1]
    while True:
        before = inner.clone()
        for _ in range(_ROUNDS):
            rows = around[:, :-2] | around[:, 1:-1] | around[:, 2:]
            torch.bitwise_and(rows[:, :, :-2] | rows[:, :, 1:-1] | rows[:, :, 2:], allowed, out=inner)
        if torch.equal(before, inner):
            break
    every = (before[:, None] >> _places(before)) & 1
    return every.reshape(-1, *strong.shape[1:])[: len(strong)].to(torch.uint8)


def _bits(masks: Tensor) -> Tensor:
    images = pad(masks, (0, 0, 0, 0, 0, -len(masks) % 32)).reshape(-1, 32, *masks.shape[1:])
    return (images.int() << _places(masks)).sum(dim=1, dtype=torch.int32)


def _places(like: Tensor) -> Tensor:
    return torch.arange(32, dtype=torch.int32, device=like.device)[:, None, None]


def gaussian(
    values: Tensor, sigma: float | tuple[float, float], truncate: float = 4.0, border: str = "nearest"
) -> Tensor:
    choice("border", border, ("nearest", "mirror"))
    sides = zip(sigma if isinstance(sigma, tuple) else (sigma, sigma), values.shape[1:3], strict=True)
    rows, columns = (_gaussian_matrix(float(one), float(truncate), side, border) for one, side in sides)
    if values.dtype == torch.uint8:
        return _rounded(_products(_planes(values), [(rows, columns)]))
    # Sums of floats are not exact, but are rounded away with the lower half of a float64.
    blurred = _products(_planes(values[..., None]), [(rows, columns)])
    return blurred[:, :, 0].permute(1, 0, 2).to(torch.float32, memory_format=torch.contiguous_format)


@lru_cache(maxsize=64)
def _gaussian_matrix(sigma: float, truncate: float, side: int, border: str) -> Matrix:
    radius = int(truncate * sigma + 0.5)
    return blur_matrix(multiples(bell(radius, sigma), _BITS), -radius, side, border)


def disc_blur(images: Images, radius: float, alias_blur: float) -> Images:
    number("radius", radius, least=0, most=WIDEST)
    height, width, _ = image_shape(images)
    area, terms = _disc(float(radius), float(alias_blur), height, width)
    return _rounded(_products(_planes(images), terms).div_(area))


@lru_cache(maxsize=64)
def _disc(radius: float, alias_blur: float, height: int, width: int) -> tuple[int, list[tuple[Matrix, Matrix]]]:
    """The disc's number of pixels, and its sum as products of matrices: one for each length of its rows."""
    square = int(radius * radius)
    widest = math.isqrt(square)
    reaches = [math.isqrt(square - down * down) for down in range(-widest, widest + 1)]
    area = sum(2 * reach + 1 for reach in reaches)
    rim = 2 if radius > 8 else 1
    # As many bits as sums over the disc leave to the softening along two axes.
    soft = multiples(bell(rim, alias_blur), (45 - area.bit_length()) // 2)
    soft_rows, soft_columns = (blur_matrix(soft, -rim, side, "mirror 101") for side in (height, width))
    terms = []
    for reach in sorted(set(reaches)):
        rows = blur_matrix(np.array([reach == one for one in reaches], np.float64), -widest, height, "mirror 101")
        columns = blur_matrix(np.ones(2 * reach + 1), -reach, width, "mirror 101")
        terms.append((soft_rows @ rows, soft_columns @ columns))
    return area, terms


def box_blur(images: Images, size: int) -> Images:
    height, width, _ = image_shape(images)
    rows, columns = (blur_matrix(np.ones(size), -(size // 2), side, "mirror 101") for side in (height, width))
    # OpenCV rounds up from one less than half of 4, 16, 64 or 256 pixels.
    early = 1 if size in (2, 4, 8, 16) else 0
    return _rounded(_products(_planes(images), [(rows, columns)]).add_(early).div_(size * size))


def median_blur(images: Images, size: int) -> Images:
    height, width, _ = image_shape(images)
    reach = size // 2
    padded = _padded(images, reach, "nearest")
    lanes = [padded[:, top : top + height, left : left + width] for top in range(size) for left in range(size)]
    for one, other, lower, higher in _median_network(size * size):
        a, b = lanes[one], lanes[other]
        if lower:
            lanes[one] = torch.minimum(a, b)
        if higher:
            lanes[other] = torch.maximum(a, b)
    return lanes[size * size // 2].contiguous()


@lru_cache(maxsize=8)
def _median_network(count: int) -> list[tuple[int, int, bool, bool]]:
    """Pairs to sort, one after the other, to find the median of `count` numbers: (one, other, use lower, use higher).

    K. Batcher's sorting network ("Sorting networks and their applications", 1968; in Knuth's volume 3, algorithm
    5.2.2 M), without the comparisons that do not affect the median.
    """
    pairs = []
    top = 1 << max(count - 1, 1).bit_length() - 1
    step = top
    while step:
        distance, offset, span = step, 0, top
        while True:
            pairs += [(place, place + distance) for place in range(count - distance) if place & step == offset]
            if span == step:
                break
            distance, offset, span = span - step, step, span // 2
        step //= 2
    needed = {count // 2}
    network = []
    for one, other in reversed(pairs):
        if one in needed or other in needed:
            network.append((one, other, one in needed, other in needed))
            needed |= {one, other}
    return network[::-1]


def bilateral_blur(images: Images, diameter: int, sigma_colour: float, sigma_space: float) -> Images:
    height, width, channels = image_shape(images)
    radius = diameter // 2
    places = _bilateral(radius, float(sigma_colour), float(sigma_space), channels)
    kernels = kernels_for(images)
    if kernels is not None:
        tops, lefts, tables = (constant(np.array(column), images.device) for column in zip(*places, strict=True))
        whole = images.reshape(-1, height, width, channels).contiguous()
        blurred = kernels.bilateral(whole, _padded(whole, radius, "mirror 101"), radius, tops, lefts, tables)
        return blurred.reshape(images.shape)
    padded = _padded(images.to(torch.int16), radius, "mirror 101")
    centre = padded[:, radius : radius + height, radius : radius + width]
    total = torch.zeros(images.shape, dtype=torch.float32, device=images.device)
    weights = torch.zeros((*images.shape[:3], 1), dtype=torch.float32, device=images.device)
    for top, left, table in places:
        there = padded[:, top : top + height, left : left + width]
        apart = (there - centre).abs_()
        distance = apart if channels == 1 else apart[..., :1] + apart[..., 1:2] + apart[..., 2:]
        nearness = constant(table, images.device)
        weight = nearness.index_select(0, distance.reshape(-1).to(torch.int32)).reshape(weights.shape)
        weights += weight
        total += weight * there
    return total.div_(weights).add_(0.5).to(torch.uint8)


@lru_cache(maxsize=16)
def _bilateral(
    radius: int, sigma_colour: float, sigma_space: float, channels: int
) -> list[tuple[int, int, NDArray[np.float32]]]:
    """The positions of a disc, counted from the corner of its square, and their weights by distance in colour."""
    colour = np.exp(-0.5 * (np.arange(256 * channels) / sigma_colour) ** 2)
    places = []
    for down in range(-radius, radius + 1):
        reach = math.isqrt(radius * radius - down * down)
        for across in range(-reach, reach + 1):
            space = math.exp(-0.5 * (down * down + across * across) / sigma_space**2)
            places.append((radius + down, radius + across, (colour * space).astype(np.float32)))
    return places


def line_blur(images: Images, degrees: Tensor, length: float, sigma: float) -> Images:
    # Tap i of the pixel (x, y) is the pixel (x + i, y + shift[x + i] − shift[x]).
    height, width, channels = image_shape(images)
    shifts, weights = _lines(width, float(length), float(sigma))
    long, tall = shifts.shape[1], height + width - 1
    angles = torch.as_tensor(degrees, device=images.device).to(torch.int64) + _STEEPEST
    shift = constant(shifts, images.device)[angles]
    # The first of an image's `tall` lines meets column 0 this many rows above the image.
    above = shift[:, width - 1 : width].clamp(min=0)
    # Line r of the sheared image, float64 (N, C, tall, long), shows in each column the pixel r rows below the first.
    # Edge pixels are repeated above and below, so that no row needs clipping.
    margin = int(np.abs(shifts).max())
    pixels = _padded(images, margin, "nearest", axes=(1,)).reshape(len(images), -1, channels)
    columns = _count(long, images).clamp_(max=width - 1)
    places = ((shift - above + margin) * width + columns)[:, None] + _count(tall, images)[:, None] * width
    pixels = pixels.gather(1, places.reshape(len(images), -1, 1).expand(-1, -1, channels))
    sheared = pixels.permute(0, 2, 1).to(torch.float64, memory_format=torch.contiguous_format)
    # Row k of the band has the weights that begin `width − 1 − k` before their first: columns are reversed.
    band = constant(weights, images.device)[angles].unfold(1, long, 1).transpose(1, 2)
    blurred = torch.bmm(sheared.reshape(len(images), channels * tall, long), band)
    rows = _count(height, images)[:, None] + (above - shift[:, :width])[:, None]
    places = (rows * width + _count(width, images).flip(0))[..., None] + _count(channels, images) * (tall * width)
    pixels = blurred.reshape(len(images), -1).gather(1, places.reshape(len(images), -1))
    return pixels.reshape(places.shape).add_(0.5).to(torch.uint8)


def _count(size: int, like: Tensor) -> Tensor:
    return torch.arange(size, device=like.device)


@lru_cache(maxsize=64)
def _lines(width: int, length: float, sigma: float) -> tuple[NDArray[np.int64], Matrix]:
    """For each angle, the shifts of columns, and weights padded with zeros for the rows of a band matrix."""
    angles = np.deg2rad(np.arange(-_STEEPEST, _STEEPEST + 1))
    weights = [half_gaussian(length * np.cos(angle), sigma * np.cos(angle)) for angle in angles]
    taps = max(len(one) for one in weights)
    long = width + taps - 1
    shifts = np.stack([np.rint(np.arange(long) * np.tan(angle)) for angle in angles]).astype(np.int64)
    padded = np.zeros((len(angles), long + width - 1))
    for row, one in zip(padded, weights, strict=True):
        row[width - 1 : width - 1 + len(one)] = one
    return shifts, padded


def _planes(values: Tensor) -> Tensor:
    """Images (N, H, W, C) as float64 (H, N, C, W): products over rows, and over columns, are then plain ones."""
    return values.permute(1, 0, 3, 2).to(torch.float64, memory_format=torch.contiguous_format)


def _products(planes: Tensor, terms: Iterable[tuple[Matrix, Matrix]]) -> Tensor:
    """The sum over terms of (matrix of rows) · plane · (matrix of columns)ᵀ."""
    height, width = planes.shape[0], planes.shape[3]
    total: Any = None
    for rows, columns in terms:
        part = (constant(rows, planes.device) @ planes.reshape(height, -1)).reshape(-1, width)
        transposed = constant(columns, planes.device).T
        total = part @ transposed if total is None else total.addmm_(part, transposed)
    return total.reshape(planes.shape)


def _rounded(planes: Tensor) -> Images:
    return planes.add_(0.5).permute(1, 0, 3, 2).to(torch.uint8, memory_format=torch.contiguous_format)


def _padded(images: Tensor, margin: int, border: str, axes: tuple[int, ...] = (1, 2)) -> Tensor:
    for axis in axes:
        side = images.shape[axis]
        places = constant(reflected(np.arange(-margin, side + margin), side, border), images.device)
        images = images.index_select(axis, places)
    return images
