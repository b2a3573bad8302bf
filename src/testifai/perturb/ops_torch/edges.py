"""Edges of grey tensors, and how far away they are."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

# OpenCV's tangent of 22.5°, in steps of 2⁻¹⁵: its products with the gradients of 8-bit images are exact in float32.
_TANGENT = 13573 / 2**15
# Rounds of growth between two looks at whether edges still grow: a look waits for the device.
_ROUNDS = 8
# The moves of a 5×5 chamfer mask in one half plane, as (right, down), and their lengths.
_MOVES = [
    ((1, 0), 1.0),
    ((0, 1), 1.0),
    ((1, 1), 1.4),
    ((-1, 1), 1.4),
    ((2, 1), 2.1969),
    ((1, 2), 2.1969),
    ((-2, 1), 2.1969),
    ((-1, 2), 2.1969),
]


def canny(grey: Tensor, low: float, high: float) -> Tensor:
    """Edges by Canny (1986) as 0 and 1, for grey levels (N, H, W): 3×3 Sobel, gradient |dx| + |dy|."""
    low, high = sorted((math.floor(low), math.floor(high)))
    strength, ridge = _ridges(grey)
    weak = ridge & (strength > low)
    return _connected(ridge & (strength > high), weak)


def distance(edges: Tensor, most: float) -> Tensor:
    """Distance in pixels to the nearest edge pixel (not 0), at most `most`: Borgefors (1986), 5×5 chamfer mask.

    A shortest way is made of moves that can be taken in any order. So the moves in one direction and its
    opposite come first, those in the next after them, and so on: 1, 2, 4, … of the same moves at a time.
    """
    height, width = edges.shape[1:]
    # Beyond the image there is no edge: with a margin of that, moves need not stop at the border.
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
    """Spread the levels of each grey image (N, H, W) so that all are about equally frequent."""
    pixels = grey.reshape(len(grey), -1).long()
    total = pixels.shape[1]
    counts = torch.zeros((len(grey), 256), dtype=torch.int32, device=grey.device)
    counts.scatter_add_(1, pixels, torch.ones((), dtype=torch.int32, device=grey.device).expand_as(pixels))
    up_to = counts.cumsum(1, dtype=torch.int32)
    darkest = torch.where(up_to > 0, up_to, total).amin(1, keepdim=True)
    others = (total - darkest).clamp(min=1).float()
    # A number over a tensor would be the number times a rounded inverse.
    spread = (up_to - darkest).float() * (torch.full_like(others, 255) / others)
    table = spread.round().clamp(min=0).to(torch.uint8)
    flat = table.gather(1, pixels).reshape(grey.shape)
    return torch.where(darkest[..., None] == total, grey, flat)


def _ridges(grey: Tensor) -> tuple[Tensor, Tensor]:
    """The strength of the gradient, and where it is the largest along its direction, by OpenCV's rules for ties."""
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
    """The weak pixels (1, others 0) connected to strong ones through weak ones, diagonally too."""
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
    """Masks as the bits of int32 numbers, 32 images in each: as many fewer numbers to go through."""
    images = pad(masks, (0, 0, 0, 0, 0, -len(masks) % 32)).reshape(-1, 32, *masks.shape[1:])
    return (images.int() << _places(masks)).sum(dim=1, dtype=torch.int32)


def _places(like: Tensor) -> Tensor:
    return torch.arange(32, dtype=torch.int32, device=like.device)[:, None, None]
