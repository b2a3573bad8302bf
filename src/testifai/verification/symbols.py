"""Pixels whose parameters are unknown: smooth formulas applied to them become nodes of an ONNX graph.

Nodes are of the kinds that every verifier of image classifiers reads (Gemm, Reshape, Conv, Add, Relu), and Mul for
products of two numbers that vary, and Floor for rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from testifai.support import optional_imports
from testifai.support.types import Array, Floats

Shape = tuple[int, int, int]  # channels, height, width
INPUT = "parameters"  # the graph's one input, (1, parameters)
OWN = "testifai/"  # what the names of nodes begin with, so that none is the model's
WHITE = 255.0


@dataclass(frozen=True, eq=False)
class Symbol:
    """An image: bias + parameters · coefficients + scale × what a node made, where there is one.

    Sums and multiples by constants cost no node: they are gathered here until something needs their name.
    """

    drawing: GraphBuilder
    bias: Floats  # (channels, height, width)
    coefficients: Floats  # (parameters, channels, height, width)
    node: str | None
    scale: Floats  # (channels,)

    @property
    def constant(self) -> bool:
        return self.node is None and not self.coefficients.any()

    def times(self, factor: ArrayLike) -> Symbol:
        factors = np.broadcast_to(np.asarray(factor, np.float64), self.scale.shape)
        wide = factors[:, None, None]
        return Symbol(self.drawing, self.bias * wide, self.coefficients * wide, self.node, self.scale * factors)

    def __add__(self, given: Any) -> Symbol:
        other = self.drawing.symbol(given)
        if None not in (self.node, other.node) and self.node != other.node:
            return self.drawing.made("Add", self.name, other.name)
        bias, coefficients = self.bias + other.bias, self.coefficients + other.coefficients
        return Symbol(self.drawing, bias, coefficients, self.node or other.node, self.scale + other.scale)

    def __mul__(self, given: Any) -> Symbol:
        if isinstance(given, int | float):
            return self.times(given)
        other = self.drawing.symbol(given)
        constant, varying = (self, other) if self.constant else (other, self)
        if constant.constant and varying.node is None:
            bias, coefficients = varying.bias * constant.bias, varying.coefficients * constant.bias
            return Symbol(self.drawing, bias, coefficients, None, varying.scale)
        self.drawing.bilinear = self.drawing.bilinear or not constant.constant
        return self.drawing.made("Mul", varying.name, constant.name)

    def __sub__(self, given: Any) -> Symbol:
        return self.__add__(self.drawing.symbol(given).times(-1.0))

    def __rsub__(self, given: Any) -> Symbol:
        return self.times(-1.0).__add__(given)

    __radd__, __rmul__ = __add__, __mul__

    @property
    def name(self) -> str:
        """The name of a tensor (1, channels, height, width) that is this, its nodes written down."""
        drawing = self.drawing
        if self.node is None:
            return drawing.linear(self.coefficients, self.bias)
        made, shift = self.node, self.bias[:, 0, 0]
        if (self.scale != 1).any() or (shift != 0).any():
            made = drawing.mixed(made, np.diag(self.scale), shift)
        rest = self.bias - shift[:, None, None]
        if not (self.coefficients.any() or rest.any()):
            return made
        return drawing.write("Add", made, drawing.linear(self.coefficients, rest))


class GraphBuilder:
    """The nodes of a graph from parameters to an image, and the primitives of smooth formulas on symbols."""

    def __init__(self, parameters: int, shape: Shape) -> None:
        self._onnx = optional_imports.load("onnx", extra="verify")
        self.parameters, self._shape = parameters, shape
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.bilinear = False  # whether two numbers that vary are multiplied

    def image_shape(self, images: Symbol) -> tuple[int, int, int]:
        channels, height, width = self._shape
        return height, width, channels

    def channel_means(self, images: Symbol) -> Symbol:
        """The mean of its channel in place of each pixel."""
        if images.node is None:
            bias, coefficients = (
                np.broadcast_to(values.mean(axis=(-2, -1), keepdims=True), values.shape)
                for values in (images.bias, images.coefficients)
            )
            return Symbol(self, bias, coefficients, None, images.scale)
        channels, height, width = self._shape
        kernel = np.eye(channels)[:, :, None, None] * np.full((height, width), 1 / (height * width))
        means = self.write("Conv", images.name, self.constant(kernel))
        # As wide as the image: not every verifier makes a sum of tensors of different sizes.
        return self.made("Add", means, self.constant(np.zeros((1, *self._shape))))

    def symbol(self, given: Symbol | ArrayLike) -> Symbol:
        """Numbers, one for all pixels or one each, as a symbol."""
        if isinstance(given, Symbol):
            return given
        bias = np.broadcast_to(np.asarray(given, np.float64), self._shape)
        return Symbol(self, bias, self._no_coefficients, None, np.zeros(self._shape[0]))

    def parameter(self, place: int) -> Symbol:
        coefficients = self._no_coefficients
        coefficients[place] = 1.0
        return Symbol(self, np.zeros(self._shape), coefficients, None, np.zeros(self._shape[0]))

    def levels(self, images: Symbol, *, rounded: bool) -> Symbol:
        """Cut off at black and white, and rounded to whole levels if so wanted: max(v, 0) − max(v − 255, 0)."""
        if images.constant:
            return self.symbol(np.floor(np.clip(images.bias, 0, WHITE) + 0.5))
        same = np.eye(self._shape[0])
        both = self.mixed(images.name, np.vstack([same, same]), np.repeat([0.0, -WHITE], len(same)))
        cut = self.mixed(self.write("Relu", both), np.hstack([same, -same]), np.full(len(same), 0.5 * rounded))
        return self.made("Floor", cut) if rounded else self._of(cut)

    def made(self, operator: str, *inputs: str) -> Symbol:
        return self._of(self.write(operator, *inputs))

    def _of(self, node: str) -> Symbol:
        return Symbol(self, np.zeros(self._shape), self._no_coefficients, node, np.ones(self._shape[0]))

    @property
    def _no_coefficients(self) -> Floats:
        return np.zeros((self.parameters, *self._shape))

    def linear(self, coefficients: Floats, bias: Floats) -> str:
        weights = self.constant(coefficients.reshape(self.parameters, -1))
        row = self.write("Gemm", INPUT, weights, self.constant(bias.ravel()))
        return self.write("Reshape", row, self.constant((1, *self._shape), np.int64))

    def mixed(self, image: str, weights: Floats, shift: Floats) -> str:
        """Each pixel's channels times a matrix, plus a number for each channel that comes out."""
        return self.write("Conv", image, self.constant(weights[:, :, None, None]), self.constant(shift))

    def write(self, operator: str, *inputs: str, into: str | None = None, **attributes: Any) -> str:
        made = into or f"{OWN}{operator.lower()}_{len(self.nodes)}"
        named = f"{OWN}node_{len(self.nodes)}"
        self.nodes.append(self._onnx.helper.make_node(operator, inputs, [made], name=named, **attributes))
        return made

    def constant(self, values: ArrayLike, dtype: type = np.float32) -> str:
        name = f"{OWN}constant_{len(self.constants)}"
        self.constants.append(self._onnx.numpy_helper.from_array(np.ascontiguousarray(values, dtype), name))
        return name


def channels_first(batch: Array) -> Array:
    image: Array = batch[0].reshape(*batch.shape[1:3], math.prod(batch.shape[3:]))
    return image.transpose(2, 0, 1)
