"""A user's ONNX model with the perturbation of one image before it: parameters in, scores out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.models.onnx import OnnxModel
from testifai.support import libraries
from testifai.verification.regions import Region
from testifai.verification.symbols import INPUT, WHITE, Drawing, Symbol, channels_first


def handed(model: OnnxModel, batch: NDArray[Any], region: Region, *, rounded: bool = False) -> tuple[bytes, bool]:
    """The graph as an ONNX file's content, and whether it multiplies two numbers that vary.

    `batch` holds the one image, as the data have it.
    """
    image = channels_first(batch)
    levels = np.rint(image * WHITE) if batch.dtype.kind == "f" else image
    drawing = Drawing(len(region.free), (image.shape[0], image.shape[1], image.shape[2]))
    images = _perturbed(drawing, levels.astype(np.float64), region, rounded)
    if batch.dtype.kind == "f":
        images = images * (1 / WHITE)
    ready = model.preprocess_for(batch)
    divisor, shift = ready.affine(batch.dtype)
    if divisor is not None:
        images = images.times(1 / divisor)
    if shift is not None:
        images = images - shift[:, None, None]
    return _before(model, drawing, _laid_out(drawing, images, ready.layout, batch.shape)), drawing.bilinear


def _perturbed(drawing: Drawing, levels: NDArray[np.float64], region: Region, rounded: bool) -> Symbol:
    images, free = drawing.symbol(levels), region.free
    for one in region.ranges:
        parameter = drawing.parameter(free.index(one)) if one.varies else one.low
        smooth = one.perturbation.smooth
        assert smooth is not None
        try:
            changed = smooth(drawing, images, parameter)
        except InputError as error:
            raise InputError(f"region: {one.axis} ({one.perturbation.name}) {error}") from None
        images = drawing.levels(changed, rounded=rounded)
    return images


def _laid_out(drawing: Drawing, images: Symbol, layout: str | None, given: tuple[int, ...]) -> str:
    """The image in the model's layout, by its name."""
    channels, height, width = images.bias.shape
    if layout == "NCHW":
        return images.name
    shape = {"NHWC": (1, height, width, channels), "flat": (1, images.bias.size), None: given}[layout]
    last = drawing.write("Transpose", images.name, perm=[0, 2, 3, 1]) if channels > 1 else images.name
    return drawing.write("Reshape", last, drawing.constant(shape, np.int64))


def _before(model: OnnxModel, drawing: Drawing, image: str) -> bytes:
    """The drawing, up to the image, in front of the model's own nodes."""
    onnx = libraries.load("onnx", extra="verify")
    content = onnx.load(model.path)
    graph, helper = content.graph, onnx.helper
    kept = {constant.name for constant in graph.initializer}
    taken = next(node.name for node in graph.input if node.name not in kept)
    element = helper.np_dtype_to_tensor_dtype(model.input_dtype)
    if element == onnx.TensorProto.FLOAT:
        drawing.write("Identity", image, into=taken)
    else:
        drawing.write("Cast", image, into=taken, to=element)
    own = _needed(graph, model.output)
    answer = next(node for node in graph.output if node.name == model.output)
    constants = [one for one in graph.initializer if any(one.name in _reads(node) for node in own)]
    made = helper.make_graph(
        [*drawing.nodes, *own],
        graph.name or "perturbed",
        [helper.make_tensor_value_info(INPUT, onnx.TensorProto.FLOAT, [1, drawing.parameters])],
        [helper.make_tensor_value_info(model.output, answer.type.tensor_type.elem_type, [1, model.classes])],
        [*drawing.constants, *constants],
    )
    made.sparse_initializer.extend(graph.sparse_initializer)
    whole = helper.make_model(
        made, producer_name="testifai", opset_imports=content.opset_import, functions=content.functions
    )
    whole.ir_version = max(4, content.ir_version)
    try:
        serialised: bytes = whole.SerializeToString()
    except ValueError:
        raise InputError(f"model: {model.name} is too large for one ONNX file (2 GB)") from None
    return serialised


def _needed(graph: Any, output: str) -> list[Any]:
    """The nodes that an output needs, in their order."""
    wanted, chosen = {output}, list[Any]()
    for node in reversed(graph.node):
        if wanted & set(node.output):
            wanted |= _reads(node)
            chosen.append(node)
    return chosen[::-1]


def _reads(node: Any) -> set[str]:
    """The names that a node reads, those within its branches and loops among them."""
    inner = [one for attribute in node.attribute for one in (attribute.g, *attribute.graphs)]
    return set(node.input).union(*(_reads(one) for graph in inner for one in graph.node))
