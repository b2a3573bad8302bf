"""ONNX operators on PyTorch tensors (https://onnx.ai/onnx/operators).

A function takes an operator's inputs in order (None if absent) and attributes by name; attributes that became inputs
keep their name. Integers for shapes are tensors in host memory: reading them does not wait for a device.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

import onnx
import torch
from torch import Tensor
from torch.nn import functional

from testifai.errors import InputError
from testifai.models.base import first_line

Operator = Callable[..., Any]
Numbers: TypeAlias = Tensor | list[int] | None  # an input or an attribute
Sizes: TypeAlias = list[int] | None
TAPS, OUTPUTS = 64, 16  # most products for each output, and outputs, of the kernel of convolutions
_CONVOLUTIONS = (functional.conv1d, functional.conv2d, functional.conv3d)
_MAX_POOLS = (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)
_AVERAGES: tuple[Operator, ...] = (functional.avg_pool1d, functional.avg_pool2d, functional.avg_pool3d)

log = logging.getLogger(__name__)


def conv(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, *, auto_pad: str = "NOTSET", dilations: Sizes = None,
    group: int = 1, kernel_shape: Sizes = None, pads: Sizes = None, strides: Sizes = None,
) -> Tensor:  # fmt: skip
    axes = x.ndim - 2
    strides, dilations = strides or [1] * axes, dilations or [1] * axes
    spans = [(side - 1) * apart + 1 for side, apart in zip(weight.shape[2:], dilations, strict=True)]
    x, padding = _padded(x, _pads(x, auto_pad, pads, spans, strides), 0.0)
    return convolution(x, weight, bias, strides, padding, dilations, group)


def convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None, strides: list[int], padding: list[int], dilations: list[int],
    group: int,
) -> Tensor:  # fmt: skip
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
        log.info("convolutions without Triton: %s", first_line(error))
        return None
    return convolve


def max_pool(
    x: Tensor, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, dilations: Sizes = None, kernel_shape: list[int],
    pads: Sizes = None, storage_order: int = 0, strides: Sizes = None,
) -> Tensor:  # fmt: skip
    axes = x.ndim - 2
    strides, dilations = strides or [1] * axes, dilations or [1] * axes
    spans = [(side - 1) * apart + 1 for side, apart in zip(kernel_shape, dilations, strict=True)]
    pads = _pads(x, auto_pad, pads, spans, strides)
    x, padding = _padded(x, pads, -math.inf, most=[side // 2 for side in kernel_shape])
    return _MAX_POOLS[axes - 1](x, kernel_shape, strides, padding, dilations, bool(ceil_mode))


def average_pool(
    x: Tensor, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, count_include_pad: int = 0, kernel_shape: list[int],
    pads: Sizes = None, strides: Sizes = None,
) -> Tensor:  # fmt: skip
    axes = x.ndim - 2
    strides = strides or [1] * axes
    pads = _pads(x, auto_pad, pads, kernel_shape, strides)
    if pads[:axes] != pads[axes:] or any(pad > side // 2 for pad, side in zip(pads, kernel_shape, strict=False)):
        raise InputError(f"AveragePool: padding {pads} of {kernel_shape} differs between ends or is above half")
    return _AVERAGES[axes - 1](x, kernel_shape, strides, pads[:axes], bool(ceil_mode), bool(count_include_pad))


def batch_normalization(
    x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor, *, epsilon: float = 1e-5,
    momentum: float = 0.9, spatial: int = 1,
) -> Tensor:  # fmt: skip
    return functional.batch_norm(x, mean, variance, scale, bias, training=False, eps=epsilon)


def gemm(
    a: Tensor, b: Tensor, c: Tensor | None = None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
    transB: int = 0,
) -> Tensor:  # fmt: skip
    a, weight = a.T if transA else a, b if transB else b.T
    if alpha == beta == 1.0 and c is not None and c.ndim == 1:
        return functional.linear(a, weight, c)
    product = functional.linear(a, weight) * alpha
    return product if c is None else product + beta * c


def divide(a: Tensor, b: Tensor) -> Tensor:
    floats = a.is_floating_point() or b.is_floating_point()
    return torch.div(a, b, rounding_mode=None if floats else "trunc")


def clip(x: Tensor, low: Tensor | None = None, high: Tensor | None = None, **told: float) -> Tensor:
    return x.clamp(told.get("min", low), told.get("max", high))


def reducer(function: Operator) -> Operator:
    def reduce(x: Tensor, axes: Numbers = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
        chosen = _listed(axes)
        if not chosen and noop_with_empty_axes:
            return x
        return function(x, dim=tuple(chosen or range(x.ndim)), keepdim=bool(keepdims))

    return reduce


def arg_max(x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    if select_last_index:
        return x.shape[axis] - 1 - x.flip(axis).argmax(axis, keepdim=bool(keepdims))
    return x.argmax(axis, keepdim=bool(keepdims))


def reshape(x: Tensor, shape: Numbers, *, allowzero: int = 0) -> Tensor:
    sizes = _listed(shape)
    if not allowzero:
        sizes = [x.shape[axis] if size == 0 else size for axis, size in enumerate(sizes)]
    return x.reshape(sizes)


def squeeze(x: Tensor, axes: Numbers = None) -> Tensor:
    return x.squeeze() if axes is None else x.squeeze(tuple(_listed(axes)))


def unsqueeze(x: Tensor, axes: Numbers) -> Tensor:
    chosen = _listed(axes)
    rank = x.ndim + len(chosen)
    for axis in sorted(one % rank for one in chosen):
        x = x.unsqueeze(axis)
    return x


def cut(x: Tensor, starts: Numbers, ends: Numbers, axes: Numbers = None, steps: Numbers = None) -> Tensor:
    first, last, along, by = map(_listed, (starts, ends, axes, steps))
    for place, (start, end) in enumerate(zip(first, last, strict=True)):
        axis, step = along[place] if along else place, by[place] if by else 1
        chosen = range(x.shape[axis])[start:end:step]
        if step > 0:
            x = x[(slice(None),) * (axis % x.ndim) + (slice(chosen.start, chosen.stop, step),)]
        else:  # PyTorch's slices only go forwards
            x = x.index_select(axis, torch.tensor(chosen, dtype=torch.int64, device=x.device))
    return x


def pad(
    x: Tensor, pads: Numbers, value: Tensor | float = 0.0, axes: Numbers = None, *, mode: str = "constant"
) -> Tensor:
    given = _listed(pads)
    along = range(x.ndim) if axes is None else [axis % x.ndim for axis in _listed(axes)]
    sides = [(0, 0)] * x.ndim
    for place, axis in enumerate(along):
        sides[axis] = given[place], given[place + len(given) // 2]
    # PyTorch takes pairs starting with the last axis; other modes than constant only for the last axes.
    while mode != "constant" and sides and sides[0] == (0, 0):
        sides = sides[1:]
    flat = [side for pair in reversed(sides) for side in pair]
    if mode != "constant":
        return functional.pad(x, flat, mode={"edge": "replicate", "reflect": "reflect", "wrap": "circular"}[mode])
    return functional.pad(x, flat, value=float(value or 0.0))


def gather(x: Tensor, places: Tensor, *, axis: int = 0) -> Tensor:
    flat = places.to(x.device).reshape(-1) % x.shape[axis]
    axis %= x.ndim
    return x.index_select(axis, flat).reshape(*x.shape[:axis], *places.shape, *x.shape[axis + 1 :])


def cast(x: Tensor, *, to: int, saturate: int = 1) -> Tensor:
    return x.to(getattr(torch, onnx.helper.tensor_dtype_to_np_dtype(to).name))


def resize(
    x: Tensor, region: object = None, scales: Numbers = None, sizes: Numbers = None, *, mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel", nearest_mode: str = "round_prefer_floor", **_unused: object,
) -> Tensor:  # fmt: skip
    """Repeat pixels by integer factors, as upsampling layers do."""
    factors = _listed(scales)
    if sizes is not None:
        factors = [new / old for new, old in zip(_listed(sizes), x.shape, strict=True)]
    # With these, pixels are repeated; other pairs shift them.
    kind = (mode, coordinate_transformation_mode, nearest_mode.partition("_")[0])
    repeats = kind in [("nearest", "half_pixel", "round"), ("nearest", "asymmetric", "floor")]
    if not repeats or len(factors) != x.ndim or any(factor != int(factor) for factor in factors):
        raise InputError(f"Resize: {kind} by {factors} does not run on torch; pixels repeated a whole number of times")
    for axis, factor in enumerate(factors):
        x = x.repeat_interleave(int(factor), dim=axis) if factor != 1 else x
    return x


def identity(x: Tensor, *_unused: object, **_told: object) -> Tensor:
    return x


OPERATORS: dict[str, Operator] = {
    "Abs": torch.abs, "Add": torch.add, "ArgMax": arg_max, "AveragePool": average_pool,
    "BatchNormalization": batch_normalization, "Cast": cast, "Clip": clip, "Conv": conv,
    "Div": divide, "Dropout": identity, "Elu": functional.elu, "Erf": torch.erf, "Exp": torch.exp,
    "Gather": gather, "Gemm": gemm, "HardSwish": functional.hardswish,
    "Identity": identity, "Log": torch.log, "MatMul": torch.matmul,
    "MaxPool": max_pool, "Mul": torch.mul, "Neg": torch.neg, "Pad": pad, "Pow": torch.pow,
    "ReduceMax": reducer(torch.amax), "ReduceMean": reducer(torch.mean), "ReduceMin": reducer(torch.amin),
    "ReduceSum": reducer(torch.sum), "Relu": torch.relu, "Reshape": reshape, "Resize": resize,
    "Sigmoid": torch.sigmoid, "Slice": cut, "Sqrt": torch.sqrt,
    "Squeeze": squeeze, "Sub": torch.sub, "Tanh": torch.tanh, "Unsqueeze": unsqueeze,
    "Concat": lambda *parts, axis: torch.cat(parts, dim=axis),
    "Flatten": lambda x, *, axis=1: x.reshape(math.prod(x.shape[:axis]) if axis else 1, -1),
    "Gelu": lambda x, *, approximate="none": functional.gelu(x, approximate=approximate),
    "GlobalAveragePool": lambda x: x.mean(dim=tuple(range(2, x.ndim)), keepdim=True),
    "GlobalMaxPool": lambda x: x.amax(dim=tuple(range(2, x.ndim)), keepdim=True),
    "HardSigmoid": lambda x, *, alpha=0.2, beta=0.5: (alpha * x + beta).clamp(0, 1),
    "LeakyRelu": lambda x, *, alpha=0.01: functional.leaky_relu(x, alpha),
    "LogSoftmax": lambda x, *, axis=-1: x.log_softmax(axis),
    "PRelu": lambda x, slope: torch.where(x < 0, x * slope, x),
    "Shape": lambda x, *, start=0, end=None: torch.tensor(x.shape[start:end], dtype=torch.int64),
    "Softmax": lambda x, *, axis=-1: x.softmax(axis),
    "Split": lambda x, split=None, *, axis=0, outputs: tuple(
        x.split(_listed(split) or -(-x.shape[axis] // outputs), dim=axis)
    ),
    "Transpose": lambda x, *, perm=None: x.permute(perm or list(range(x.ndim))[::-1]),
}  # fmt: skip
# The implementations of operators before some operator set.
OLD: dict[str, tuple[int, Operator]] = {
    "LogSoftmax": (13, lambda x, *, axis=1: x.flatten(axis).log_softmax(-1).reshape(x.shape)),
    "Softmax": (13, lambda x, *, axis=1: x.flatten(axis).softmax(-1).reshape(x.shape)),
}


def find(name: str, opset: int) -> Operator | None:
    """Return the implementation of an operator in an operator set, None if it is not supported."""
    before, old = OLD.get(name, (0, None))
    return old if opset < before else OPERATORS.get(name)


def _listed(numbers: Numbers) -> list[Any]:
    return list(numbers.tolist() if isinstance(numbers, Tensor) else numbers or [])


def _pads(x: Tensor, auto_pad: str, pads: Sizes, spans: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Return the padding before each axis, then after each."""
    if auto_pad == "NOTSET":
        return list(pads or [0] * 2 * len(spans))
    if auto_pad == "VALID":
        return [0] * 2 * len(spans)
    missing = [
        max((-(-size // stride) - 1) * stride + span - size, 0)
        for size, stride, span in zip(x.shape[2:], strides, spans, strict=True)
    ]
    less, more = [one // 2 for one in missing], [one - one // 2 for one in missing]
    return less + more if auto_pad == "SAME_UPPER" else more + less


def _padded(x: Tensor, pads: list[int], value: float, most: Sequence[int] | None = None) -> tuple[Tensor, list[int]]:
    """Return the input, padded if PyTorch's operator cannot do it, and the padding left to it, equal at both ends."""
    axes = len(pads) // 2
    before, after = pads[:axes], pads[axes:]
    within = most is None or all(one <= limit for one, limit in zip(before, most, strict=True))
    if before == after and within:
        return x, before
    sides = [side for pair in zip(reversed(before), reversed(after), strict=True) for side in pair]
    return functional.pad(x, sides, value=value), [0] * axes
