"""Local swaps of pixels of tensors, as seen through frosted glass."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from testifai.perturb.ops.shuffle import fronts
from testifai.perturb.ops_torch.cards import kernels_for


def shuffle(images: Tensor, radius: int, words: Tensor, swap: bool = True) -> Tensor:
    """Swap pixels with neighbours, one pixel after the other from the lower right to the upper left.

    Pixel (h, w), for h from H − radius down to radius + 1 and w likewise, swaps with (h + dy, w + dx), where dy
    and dx are uniform on −radius … radius − 1 and come from the pixel's random word, words[n, h, w]. Without
    `swap` it takes over its neighbour's colour and the neighbour stays as it is. Swaps that do not touch each
    other are done at once, in the groups of the same operation on arrays.
    """
    count, height, width, channels = images.shape
    kernels = kernels_for(images)
    if kernels is not None:
        return _at_once(kernels, images, radius, words, swap)
    order = _order(height, width, radius, images.device)
    # One row per pixel, one column per image, and a group's pixels side by side: a call costs more than what it does.
    state = _packed(images.reshape(count, height * width, channels)).t().index_select(0, order.pixels)
    partners = _partners(words.reshape(count, height * width), order, radius)
    swapping = len(partners)
    for own, places in zip(state[:swapping].split(order.sizes), partners.split(order.sizes), strict=True):
        taken = state.gather(0, places)
        if swap:
            state.scatter_(0, places, own.clone())
        own.copy_(taken)
    return _unpacked(state.t().index_select(1, order.rows), channels).reshape(images.shape)


def _at_once(kernels: Any, images: Tensor, radius: int, words: Tensor, swap: bool) -> Tensor:
    """All groups of swaps in one kernel."""
    count, height, width, channels = images.shape
    state = _packed(images.reshape(count, height * width, channels)).clone(memory_format=torch.contiguous_format)
    order = _order(height, width, radius, images.device)
    if order.sizes:
        drawn, most = words.reshape(state.shape), max(order.sizes)
        kernels.shuffle(state, drawn, order.pixels, order.starts, most, width, radius, swap=swap)
    return _unpacked(state, channels).reshape(images.shape)


class _Order(NamedTuple):
    """Pixels in the order in which they swap; those that wait to be swapped with come last."""

    pixels: Tensor  # (P,): the pixel of each row
    rows: Tensor  # (P,): the row of each pixel
    sizes: list[int]  # of the groups that swap at once
    starts: Tensor  # (groups + 1,): of the groups among the rows, and the end of the last
    jumps: Tensor  # (4 · radius²,): from a pixel to each of those it may swap with, int32


@lru_cache(maxsize=16)
def _order(height: int, width: int, radius: int, device: torch.device) -> _Order:
    every = np.arange(height * width)
    groups = [every[front] for front in fronts(height, width, radius)]
    swapping = np.concatenate([every[:0], *groups])
    pixels = np.concatenate([swapping, np.setdiff1d(every, swapping)])
    down, right = np.indices((2 * radius, 2 * radius)).reshape(2, -1) - radius
    sizes = [len(group) for group in groups]
    tables = (pixels, np.argsort(pixels), np.cumsum([0, *sizes]), (down * width + right).astype(np.int32))
    ordered, rows, starts, jumps = (torch.from_numpy(table).to(device) for table in tables)
    return _Order(ordered, rows, sizes, starts, jumps)


def _partners(words: Tensor, order: _Order, radius: int) -> Tensor:
    """The row that each swapping row swaps with, (rows, N)."""
    own = order.pixels[: sum(order.sizes)]
    drawn = words.t().index_select(0, own).mul_(4 * radius**2).bitwise_right_shift_(16)
    jumps = order.jumps.index_select(0, drawn.reshape(-1)).reshape(drawn.shape)
    places = jumps.add_(own.int()[:, None])
    return order.rows.index_select(0, places.reshape(-1)).reshape(places.shape)


def _packed(pixels: Tensor) -> Tensor:
    """Pixels (N, P, C) as one number each, (N, P)."""
    return pixels[..., 0] if pixels.shape[2] == 1 else pad(pixels, (0, 1)).view(torch.int32)[..., 0]


def _unpacked(packed: Tensor, channels: int) -> Tensor:
    if channels == 1:
        return packed
    return packed[..., None].view(torch.uint8)[..., :channels].contiguous()
