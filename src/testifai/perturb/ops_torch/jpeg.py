"""JPEG compression of tensors: the lossy steps of libjpeg, with the arithmetic of the same operation on small arrays.

Matrix products are in float64: their sums are exact, so results depend neither on the batch nor on the device.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from testifai.perturb.ops.jpeg import OFFSETS, SEPARATION, cosines, doubling, rounding_steps
from testifai.perturb.ops_torch.values import Images, constant, image_shape
from testifai.support.validation import number

# Shares of Cr and Cb in red, green and blue, in libjpeg's steps of 2⁻¹⁶.
_RED, _GREEN_CR, _GREEN_CB, _BLUE = (np.array([91881, -46802, -22554, 116130]) / 65536).tolist()


def jpeg(images: Images, quality: int) -> Images:
    height, width, channels = image_shape(images)
    number("quality", quality, least=1, most=100)
    brightness_steps, colour_steps = rounding_steps(quality)
    if channels == 1:
        padded = _padded(images, 8)[..., 0].to(torch.float32)
        return _rounded(padded, brightness_steps)[:, :height, :width, None].to(torch.uint8).contiguous()
    planes = _separated(_padded(images, 16))
    colour = _halved(torch.stack(planes[1:]))
    # libjpeg pads columns before it halves, and rows after.
    last = (height - 1) // 2
    colour[:, :, last + 1 :] = colour[:, :, last : last + 1]
    brightness = _rounded(planes[0], brightness_steps)[:, :height, :width]
    cr, cb = _doubled(_rounded(colour.flatten(0, 1), colour_steps), height, width).unflatten(0, (2, -1))
    green = (cr * _GREEN_CR).add_(cb, alpha=_GREEN_CB)
    colours = [part.add_(0.5).floor_().add_(brightness).clamp_(0, 255) for part in (cr * _RED, green, cb * _BLUE)]
    return torch.stack([part.to(torch.uint8) for part in colours], dim=-1)


def _padded(images: Images, multiple: int) -> Images:
    for axis in (1, 2):
        size = images.shape[axis]
        if size % multiple:
            places = np.arange(-(-size // multiple) * multiple).clip(max=size - 1)
            images = images.index_select(axis, constant(places, images.device))
    return images


def _separated(images: Images) -> list[Tensor]:
    red, green, blue = images.permute(3, 0, 1, 2).contiguous()
    planes = []
    for weights, offset in zip(SEPARATION.tolist(), OFFSETS[:, 0].tolist(), strict=True):
        # Exact in float32.
        plane = red.to(torch.float32).mul_(weights[0]).add_(green, alpha=weights[1]).add_(blue, alpha=weights[2])
        planes.append(plane.add_(offset).floor_())
    return planes


def _rounded(planes: Tensor, steps: NDArray[np.float32]) -> Tensor:
    count, height, width = planes.shape
    waves, places = cosines().astype(np.float64), planes.device
    blocks = planes.reshape(count, height // 8, 8, width // 8, 8).transpose(2, 3)
    blocks = blocks.to(torch.float64, memory_format=torch.contiguous_format).sub_(128).reshape(-1, 64)
    # libjpeg rounds twice: to eighths, then to steps, halves away from zero; hence the nudge.
    frequencies = (blocks @ constant(8 * waves.T, places)).round_().to(torch.float32)
    frequencies.mul_(constant(np.float32(1.000001 / 8) / steps, places)).round_()
    values = frequencies.to(torch.float64) @ constant(steps[:, None].astype(np.float64) * waves, places)
    levels = values.to(torch.float32).add_(128.5).floor_().clamp_(0, 255)
    return levels.reshape(count, height // 8, width // 8, 8, 8).transpose(2, 3).reshape(planes.shape)


def _halved(planes: Tensor) -> Tensor:
    sums = planes[..., ::2, ::2] + planes[..., ::2, 1::2]
    sums += planes[..., 1::2, ::2]
    sums += planes[..., 1::2, 1::2]
    sums += constant(np.resize([1, 2], sums.shape[-1]).astype(np.float32), sums.device)
    return sums.mul_(0.25).floor_()


def _doubled(planes: Tensor, height: int, width: int) -> Tensor:
    count, rows, columns = planes.shape
    # Sixteenths of 8-bit levels are exact even where a device multiplies float32 numbers with fewer bits.
    wide = planes.reshape(-1, columns) @ constant(doubling(width, columns).T, planes.device)
    tall = constant(doubling(height, rows), planes.device) @ wide.reshape(count, rows, width)
    return tall.add_(constant(np.resize([8 / 16, 7 / 16], width).astype(np.float32) - 128, planes.device)).floor_()
