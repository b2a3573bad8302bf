"""Pixel values: conversions, tables, colour, statistics of an image."""

from __future__ import annotations

import logging
from functools import cache, lru_cache
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from testifai.errors import InputError
from testifai.perturb.ops.values import brightening, layout, saturation_stretches
from testifai.support.types import Array

log = logging.getLogger(__name__)


def kernels_for(tensor: Tensor) -> ModuleType | None:
    """The module of kernels for a tensor on a GPU; None elsewhere, and if Triton cannot build them."""
    return _kernels() if tensor.device.type == "cuda" else None


@cache
def _kernels() -> ModuleType | None:
    try:
        from testifai.perturb.ops_torch import kernels

        kernels.draw(torch.zeros(1, dtype=torch.int64, device="cuda"), (0, 0), 0, 1, 1, halves=False)
    except Exception as error:  # without a compiler or a driver, plain operations do the work
        log.info("perturbing without Triton: %s", " ".join(str(error).split())[:200])
        return None
    return kernels


Images: TypeAlias = Any  # a Tensor of uint8
Number: TypeAlias = Any  # a Tensor, an array or a float

_INT32_PIXELS = 2**23  # pixels whose sum of 8-bit values fits int32
_SAMPLES = 256  # numbers of a table that are hashed


def image_shape(images: Tensor) -> tuple[int, int, int]:
    if not isinstance(images, torch.Tensor):
        raise InputError(f"images must be a tensor, got a {type(images).__name__}")
    if images.dtype != torch.uint8:
        raise InputError(
            f"images must be uint8 (0 to 255), got {str(images.dtype).removeprefix('torch.')}; "
            "images in 0..1 convert with (255 * images).round().to(torch.uint8)"
        )
    return layout(tuple(images.shape), "images.permute(0, 2, 3, 1)")


class _Key:
    """A constant array as the key of a cache: equal by content, and without a comparison if it is the same array."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __hash__(self) -> int:
        flat = self.array.reshape(-1)
        return hash((self.array.shape, self.array.dtype.str, flat[:: max(1, flat.size // _SAMPLES)].tobytes()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Key):
            return NotImplemented
        one, two = self.array, other.array
        return one is two or (one.dtype == two.dtype and np.array_equal(one, two))


@lru_cache(maxsize=256)
def _placed(key: _Key, device: torch.device) -> Tensor:
    return torch.tensor(key.array, device=device)


def constant(array: ArrayLike, device: torch.device) -> Tensor:
    """A NumPy array as a tensor on a device, copied there once."""
    return _placed(_Key(np.asarray(array)), device)


def _entries(table: Tensor, places: Tensor) -> Tensor:
    return torch.index_select(table, 0, places.reshape(-1)).reshape(places.shape)


def lookup(images: Images, table: NDArray[np.uint8]) -> Images:
    image_shape(images)
    return _entries(constant(table, images.device), images.to(torch.int32))


def brighten(images: Images, amount: float) -> Images:
    raised, factor, addend = brightening(float(amount))
    if image_shape(images)[2] == 1:
        return lookup(images, raised)
    red, green, blue = (_channel(images, place) for place in range(3))
    value = torch.maximum(torch.maximum(red, green), blue).to(torch.int32)
    scaled = images * _entries(constant(factor, images.device), value)
    return scaled.add_(_entries(constant(addend, images.device), value)).to(torch.uint8)


def saturate(images: Images, factor: float, offset: float) -> Images:
    if image_shape(images)[2] == 1:
        return images.clone()
    red, green, blue = (_channel(images, place) for place in range(3))
    highest = torch.maximum(torch.maximum(red, green), blue)
    lowest = torch.minimum(torch.minimum(red, green), blue)
    stretch = constant(saturation_stretches(factor, offset), images.device)
    level = highest.to(torch.float32)
    # x' = V − (V − x) · S'/S
    fall = (level - images).mul_(_entries(stretch, highest.to(torch.int32).mul_(256).add_(lowest)))
    if offset > 0:
        fall[..., 1:] += (highest == lowest) * (level * min(offset, 1))
    return torch.sub(level.add_(0.5), fall, out=fall).to(torch.uint8)


def floats(images: Images) -> Tensor:
    return images.to(torch.float32)


def levels(values: Tensor) -> Images:
    return (values + 0.5).clamp_(0, 255).to(torch.uint8)


def take(table: NDArray[np.float32], field: Tensor) -> Tensor:
    return _entries(constant(table, field.device), field)


def uniform(field: Tensor, low: float = 0.0, high: float = 1.0) -> Tensor:
    step = (high - low) / 65536
    return field.to(torch.float32).mul_(step).add_(low + step / 2)


def draw_levels(images: Images, field: Tensor, table: NDArray[np.uint8]) -> Images:
    places = images.to(torch.int32).mul_(65536).add_(field)
    return _entries(constant(table, images.device).reshape(-1), places)


def per_image(numbers: ArrayLike | Tensor) -> Tensor:
    return torch.as_tensor(numbers).to(torch.float32).reshape(-1, 1, 1, 1)


def channel_means(images: Images) -> Tensor:
    pixels = images.shape[1] * images.shape[2]
    total = images.sum(dim=(1, 2), keepdim=True, dtype=torch.int32 if pixels <= _INT32_PIXELS else torch.int64)
    return (total.to(torch.float64) / pixels).to(torch.float32)


def stretch(images: Images, factor: float, offsets: Tensor) -> Images:
    return torch.add(offsets + 0.5, images, alpha=factor).clamp_(0, 255).to(torch.uint8)


def largest(values: Tensor) -> Tensor:
    most = values.reshape(len(values), -1).amax(dim=1).to(torch.float32)
    return most.reshape(-1, *[1] * (values.ndim - 1))


def luma(values: Tensor) -> Tensor:
    if values.shape[3] == 1:
        return values.to(torch.float32)
    red, green, blue = (_channel(values, place).to(torch.float32) for place in range(3))
    return (red * 0.299).add_(green * 0.587).add_(blue * 0.114)


def maximum(a: Number, b: Number) -> Tensor:
    return a.clamp(min=_beside(b, a)) if isinstance(a, torch.Tensor) else maximum(b, a)


def minimum(a: Number, b: Number) -> Tensor:
    return a.clamp(max=_beside(b, a)) if isinstance(a, torch.Tensor) else minimum(b, a)


def where(condition: Tensor, a: Number, b: Number) -> Tensor:
    return torch.where(condition, _beside(a, condition), _beside(b, condition))


def clip(a: Tensor, low: Number, high: Number) -> Tensor:
    return minimum(maximum(a, low), high)


def zeros(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    return torch.zeros(shape, dtype=torch.float32, device=like.device)


def crops(textures: NDArray[np.uint8], which: Tensor, tops: Tensor, lefts: Tensor, height: int, width: int) -> Images:
    _, rows, columns, channels = textures.shape
    pixels = constant(textures, which.device).reshape(-1, channels)
    down, right = (torch.arange(side, dtype=torch.int32, device=which.device) for side in (height, width))
    first = ((which * rows + tops) * columns + lefts).to(torch.int32)[:, None]
    places = (first + down * columns)[:, :, None] + right
    return torch.index_select(pixels, 0, places.reshape(-1)).reshape(len(which), height, width, channels)


def _channel(images: Tensor, place: int) -> Tensor:
    return images[..., place : place + 1]


def _beside(value: Number, tensor: Tensor) -> Number:
    return constant(value, tensor.device) if isinstance(value, np.ndarray) else value
