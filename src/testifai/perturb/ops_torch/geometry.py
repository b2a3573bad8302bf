"""Moving pixels of tensors: affine warps, displacement fields, resampling."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn.functional import grid_sample, interpolate, pad

from testifai.perturb.ops.geometry import box_edges, box_shown, fronts
from testifai.perturb.ops_torch.values import constant, kernels_for

KEPT = 1 << 16  # largest number of places that are cached


def warp(images: Tensor, matrices: ArrayLike, which: Tensor = None, border: int = 0) -> Tensor:
    places = _affine_places(images, matrices)
    if which is not None:
        places = places[torch.as_tensor(which, device=images.device).long()]
    # grid_sample fills places outside with 0: levels are relative to the border's.
    values = images.float().sub_(border)
    return _levels(_sampled(values, places, "zeros"), border)


def mean_of_warps(images: Tensor, matrices: ArrayLike) -> Tensor:
    values = images.float()
    first, *others = _affine_places(images, matrices).split(1)
    total = _sampled(values, first, "border")
    for places in others:
        total += _sampled(values, places, "border")
    return _levels(total.div_(1 + len(others)))


def grid(like: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    x = torch.arange(width, dtype=torch.float32, device=like.device)
    y = torch.arange(height, dtype=torch.float32, device=like.device)
    return x[None, None, :], y[None, :, None]


def displace(images: Tensor, dx: Tensor, dy: Tensor) -> Tensor:
    _, height, width, _ = images.shape
    x, y = grid(images, height, width)
    across = (2 * x + 1) / width - 1 + dx * (2 / width)
    down = (2 * y + 1) / height - 1 + dy * (2 / height)
    places = torch.stack(torch.broadcast_tensors(across, down), dim=-1)
    return _levels(_sampled(images.float(), places, "reflection"))


def resample(layer: Tensor, rows: NDArray[np.floating], columns: NDArray[np.floating]) -> Tensor:
    return _between(_between(layer, rows, 1), columns, 2)


def resize(images: Tensor, height: int, width: int) -> Tensor:
    values = images.permute(0, 3, 1, 2).to(torch.float32)
    smaller = height <= images.shape[1]
    resized = interpolate(values, (height, width), mode="area" if smaller else "bilinear")
    return resized.add_(0.5).to(torch.uint8).permute(0, 2, 3, 1).contiguous()


def pixelate(images: Tensor, rows: int, columns: int) -> Tensor:
    count, height, width, channels = images.shape
    sums = _box_sums(_box_sums(images, rows, 1), columns, 2)
    (tops, bottoms), (lefts, rights) = box_edges(height, rows), box_edges(width, columns)
    areas = ((bottoms - tops)[:, None] * (rights - lefts)).astype(np.float32)[..., None]
    means = (sums.float() / constant(areas, images.device) + 0.5).to(torch.uint8)
    shown = (box_shown(height, rows)[:, None] * columns + box_shown(width, columns)).ravel()
    flat = means.reshape(count, rows * columns, channels)
    return flat.index_select(1, constant(shown, images.device)).reshape(images.shape)


def _affine_places(images: Tensor, matrices: ArrayLike) -> Tensor:
    """The places that pixels show, (matrices, H, W, 2), in grid_sample's coordinates with edges at −1 and 1."""
    _, height, width, _ = images.shape
    scaled = 2 * np.asarray(matrices, dtype=np.float64).reshape(-1, 2, 3)
    scaled[..., 2] += 1
    scaled /= np.array([[width], [height]])
    scaled[..., 2] -= 1
    factors = constant(scaled.transpose(2, 0, 1)[:, :, None, None].astype(np.float32), images.device)
    return (_spread if len(scaled) * height * width > KEPT else _cached_spread)(factors, height, width)


def _spread(factors: Tensor, height: int, width: int) -> Tensor:
    x, y = grid(factors, height, width)
    return factors[0] * x[..., None] + factors[1] * y[..., None] + factors[2]


_cached_spread = lru_cache(maxsize=64)(_spread)  # its keys, constants, are the same objects each time


def _sampled(values: Tensor, places: Tensor, outside: str) -> Tensor:
    places = places.expand(len(values), *places.shape[1:])
    return grid_sample(values.permute(0, 3, 1, 2), places, padding_mode=outside, align_corners=False)


def _levels(values: Tensor, border: int = 0) -> Tensor:
    """Rounded levels (N, H, W, C) of values (N, C, H, W) in 0..255 less the border, which are overwritten."""
    rounded = values.add_(border + 0.5).permute(0, 2, 3, 1)
    return rounded.to(torch.uint8, memory_format=torch.contiguous_format)


def _between(layer: Tensor, places: NDArray[np.floating], axis: int) -> Tensor:
    last = layer.shape[axis] - 1
    inside = np.clip(places, 0, last)
    first = np.floor(inside).astype(np.int64)
    share = (inside - first).astype(np.float32)
    both = (constant(pixels, layer.device) for pixels in (first, np.minimum(first + 1, last)))
    before, after = (layer.index_select(axis, pixels) for pixels in both)
    return before + constant(share[:, None] if axis == 1 else share, layer.device) * (after - before)


def _box_sums(values: Tensor, boxes: int, axis: int) -> Tensor:
    """Sums over boxes along an axis: of their first pixels, second pixels and so on."""
    size = values.shape[axis]
    starts, ends = box_edges(size, boxes)
    pixels = starts + np.arange((ends - starts).max())[:, None]
    # Smaller boxes count pixels outside 0 times.
    own = (pixels < ends).astype(np.int32).reshape(-1, *[boxes if place == axis else 1 for place in range(4)])
    places, times = constant(pixels.clip(0, size - 1), values.device), constant(own, values.device)
    total = values.index_select(axis, places[0]).int()
    for place, number in zip(places[1:], times[1:], strict=True):
        total += values.index_select(axis, place) * number
    return total


def shuffle(images: Tensor, radius: int, words: Tensor, swap: bool = True) -> Tensor:
    count, height, width, channels = images.shape
    kernels = kernels_for(images)
    order = _order(height, width, radius, images.device)
    pixels = images.reshape(count, height * width, channels)
    state = (pixels if channels == 1 else pad(pixels, (0, 1)).view(torch.int32))[..., 0]  # one number per pixel
    if kernels is not None:
        state = state.clone(memory_format=torch.contiguous_format)
        if order.sizes:
            drawn, most = words.reshape(state.shape), max(order.sizes)
            kernels.shuffle(state, drawn, order.pixels, order.starts, most, width, radius, swap=swap)
        return _unpacked(state, channels).reshape(images.shape)
    # One row per pixel, one column per image, and the pixels of a group in adjacent rows.
    state = state.t().index_select(0, order.pixels)
    own_pixels = order.pixels[: sum(order.sizes)]
    drawn = words.reshape(count, -1).t().index_select(0, own_pixels).mul_(4 * radius**2).bitwise_right_shift_(16)
    partner_pixels = order.jumps.index_select(0, drawn.reshape(-1)).reshape(drawn.shape).add_(own_pixels.int()[:, None])
    partners = order.rows.index_select(0, partner_pixels.reshape(-1)).reshape(drawn.shape)
    swapping = len(partners)
    for own, places in zip(state[:swapping].split(order.sizes), partners.split(order.sizes), strict=True):
        taken = state.gather(0, places)
        if swap:
            state.scatter_(0, places, own.clone())
        own.copy_(taken)
    return _unpacked(state.t().index_select(1, order.rows), channels).reshape(images.shape)


class _Order(NamedTuple):
    """Pixels in the order in which they swap; those that are only swapped with come last."""

    pixels: Tensor  # (P,): the pixel of each row
    rows: Tensor  # (P,): the row of each pixel
    sizes: list[int]  # of the groups that swap together
    starts: Tensor  # (groups + 1,): first rows of the groups, and the end of the last
    jumps: Tensor  # (4 · radius²,): from a pixel to each of its neighbours, int32


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


def _unpacked(packed: Tensor, channels: int) -> Tensor:
    if channels == 1:
        return packed
    return packed[..., None].view(torch.uint8)[..., :channels].contiguous()
