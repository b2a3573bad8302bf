"""Convolutions of grey images on NVIDIA GPUs, as a Triton kernel; TRITON_INTERPRET=1 runs it anywhere.

cuDNN's are made for many channels: the first one of LeNet-5 takes it as long as the rest of the network.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_PIXELS = 128  # of a program


@triton.jit
def _convolve(images, weights, bias, out, by_image, by_row, by_column, height, width, tall, wide, total,
              TOP: tl.constexpr, LEFT: tl.constexpr, DOWN: tl.constexpr, ACROSS: tl.constexpr, ROWS: tl.constexpr,
              COLUMNS: tl.constexpr, OUTPUTS: tl.constexpr, ROOM: tl.constexpr, PIXELS: tl.constexpr):  # fmt: skip
    """All outputs of some pixels: products are added one by one, in single precision."""
    flat = tl.program_id(0).to(tl.int64) * PIXELS + tl.arange(0, PIXELS)
    there = flat < total
    image, place = flat // (tall * wide), (flat % (tall * wide)).to(tl.int32)
    y, x = place // wide * DOWN - TOP, place % wide * ACROSS - LEFT
    corner = images + image * by_image
    output = tl.arange(0, ROOM)
    made = output < OUTPUTS
    # Pixels come last: a thread then has all outputs of its own, and loads each value once.
    sums = tl.load(bias + output, mask=made, other=0.0)[:, None] + tl.zeros([ROOM, PIXELS], tl.float32)
    for row in tl.static_range(ROWS):
        for column in tl.static_range(COLUMNS):
            seen = there & (y + row >= 0) & (y + row < height) & (x + column >= 0) & (x + column < width)
            value = tl.load(corner + (y + row) * by_row + (x + column) * by_column, mask=seen, other=0.0)
            weight = tl.load(weights + output * (ROWS * COLUMNS) + row * COLUMNS + column, mask=made, other=0.0)
            sums += weight[:, None] * value[None, :]
    goal = (image[None, :] * OUTPUTS + output[:, None]) * (tall * wide) + place[None, :]
    tl.store(out + goal, sums, mask=made[:, None] & there[None, :])


def convolve(images: Tensor, weights: Tensor, bias: Tensor, strides: list[int], padding: list[int]) -> Tensor:
    """The convolution of images (N, 1, H, W) with weights (O, 1, rows, columns), all of them float32."""
    count, _, height, width = images.shape
    outputs, _, rows, columns = weights.shape
    tall = (height + 2 * padding[0] - rows) // strides[0] + 1
    wide = (width + 2 * padding[1] - columns) // strides[1] + 1
    out = torch.empty((count, outputs, tall, wide), dtype=torch.float32, device=images.device)
    total = count * tall * wide
    if total:
        _convolve[(-(-total // _PIXELS),)](
            images, weights, bias, out, images.stride(0), images.stride(2), images.stride(3), height, width, tall, wide,
            total, TOP=padding[0], LEFT=padding[1], DOWN=strides[0], ACROSS=strides[1], ROWS=rows, COLUMNS=columns,
            OUTPUTS=outputs, ROOM=triton.next_power_of_2(outputs), PIXELS=_PIXELS,
        )  # fmt: skip
    return out
