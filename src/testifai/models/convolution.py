"""Convolutions on tensors: PyTorch's, except for those of grey images on a GPU."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

TAPS, OUTPUTS = 64, 16  # most products for each output, and outputs, of the kernel

_CONVOLUTIONS = (functional.conv1d, functional.conv2d, functional.conv3d)

log = logging.getLogger(__name__)


def convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None, strides: list[int], padding: list[int], dilations: list[int],
    group: int,
) -> Tensor:  # fmt: skip
    """Return the convolution of x (N, C, …) with weights (O, C / group, …)."""
    if group == 1 and set(dilations) == {1} and _small(x, weight) and (kernel := _kernel()) is not None:
        made: Tensor = kernel(x, weight, weight.new_zeros(len(weight)) if bias is None else bias, strides, padding)
        return made
    return _CONVOLUTIONS[x.ndim - 3](x, weight, bias, strides, padding, dilations, group)


def _small(x: Tensor, weight: Tensor) -> bool:
    grey = x.device.type == "cuda" and x.ndim == 4 and x.shape[1] == 1 and x.dtype == weight.dtype == torch.float32
    few = len(weight) <= OUTPUTS and weight.numel() <= TAPS * len(weight)
    return grey and few and weight.is_contiguous() and not torch.is_autocast_enabled("cuda")


@cache
def _kernel() -> Callable[..., Tensor] | None:
    try:
        from testifai.models.convolution_kernel import convolve

        one = torch.zeros((1, 1, 1, 1), device="cuda")
        convolve(one, one, one.reshape(1), [1, 1], [0, 0])
    except Exception as error:  # a compiler or a driver may be missing
        log.info("convolutions without Triton: %s", " ".join(str(error).split())[:200])
        return None
    return convolve
