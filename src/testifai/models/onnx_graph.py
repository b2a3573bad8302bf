"""Inside an ONNX file: its inner tensors, a copy that returns one of them, the files and operators it names, its graph.

An ONNX file is a protocol buffer. All but `read_graph` does without the package `onnx`, by two facts of the format.
Fields carry their numbers, so the names of the tensors that nodes make can be read without knowing the rest. And a
message that occurs twice is merged, lists appended: a graph with nothing but one more output, written after the model,
is added to the model's own graph.
(field numbers: onnx/onnx.proto)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from testifai.errors import InputError
from testifai.models.base import first_line
from testifai.support import optional_imports
from testifai.support.types import Array, Record

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, ValueInfoProto

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_VARINT_BYTES = 10
_SIZES = {FIXED64: 8, FIXED32: 4}


def fields(message: memoryview) -> Iterator[tuple[int, int, int | memoryview]]:
    """The number, kind and value of each field, in the order of the message: whole numbers, all else as its bytes."""
    place = 0
    while place < len(message):
        key, place = _read_varint(message, place)
        number, kind = (key & 0xFFFFFFFF) >> 3, key & 7
        if kind == VARINT:
            value, place = _read_varint(message, place)
            yield number, kind, value
            continue
        if kind == BYTES:
            length, place = _read_varint(message, place)
        elif kind in _SIZES:
            length = _SIZES[kind]
        else:
            raise ValueError(f"not a protocol buffer: field of kind {kind}")
        if length > len(message) - place:
            raise ValueError("not a protocol buffer: it is cut short")
        yield number, kind, message[place : place + length]
        place += length


def parts(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The fields that are texts, bytes or messages, with their numbers."""
    return (
        (number, value) for number, kind, value in fields(message) if kind == BYTES and isinstance(value, memoryview)
    )


def part(number: int, content: bytes) -> bytes:
    """A field of bytes, written."""
    return _varint(number << 3 | BYTES) + _varint(len(content)) + content


def _read_varint(message: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(message) and shift < 7 * _VARINT_BYTES:
        byte = message[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7
    raise ValueError("not a protocol buffer: it is cut short")


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])


MODEL_GRAPH, GRAPH_NODE, GRAPH_OUTPUT, NODE_OUTPUT, VALUE_NAME = 7, 1, 12, 2, 1
NODE_OPERATOR, TENSOR_EXTERNAL, ENTRY_KEY, ENTRY_VALUE = 4, 13, 1, 2

# Which fields of a message hold which messages, as far as tensors and nodes can lie within them.
_WITHIN: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {TENSOR_EXTERNAL: "entry"},
    "entry": {},
}
# Operators that draw, or may draw, random numbers each time they run.
RANDOM = frozenset({
    "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli",
})  # fmt: skip


def tensor_names(model: bytes) -> list[str]:
    """The tensors that the graph's nodes make, in the order of the file; ValueError if it cannot be read."""
    view = memoryview(model)
    nodes = (node for graph in _parts(view, MODEL_GRAPH) for node in _parts(graph, GRAPH_NODE))
    names = (bytes(name).decode() for node in nodes for name in _parts(node, NODE_OUTPUT))
    return [name for name in names if name]


def with_output(model: bytes, name: str) -> bytes:
    """The model with one more output: the tensor of that name."""
    return model + part(MODEL_GRAPH, part(GRAPH_OUTPUT, part(VALUE_NAME, name.encode())))


def external_files(model: bytes | memoryview) -> list[str]:
    """Every file beside the model that a tensor anywhere in it names, sorted; ValueError if it cannot be read."""
    found = set()
    for kind, message in _messages(memoryview(model)):
        if kind == "entry":
            entry = {number: bytes(value) for number, value in parts(message)}
            if entry.get(ENTRY_KEY) == b"location":
                found.add(entry.get(ENTRY_VALUE, b"").decode())
    return sorted(found)


def draws(model: bytes | memoryview) -> bool:
    """Whether an operator of the model draws random numbers; ValueError if it cannot be read.

    A Dropout does not count: in a file made for inference it does nothing.
    """
    names = (
        bytes(name).decode("utf-8", "replace")
        for kind, message in _messages(memoryview(model))
        if kind == "node"
        for name in _parts(message, NODE_OPERATOR)
    )
    return any(name in RANDOM for name in names)


def _messages(model: memoryview) -> Iterator[tuple[str, memoryview]]:
    """All messages of the kinds in `_WITHIN`, however deep they lie."""
    waiting = [("model", model)]
    while waiting:
        kind, message = waiting.pop()
        yield kind, message
        within = _WITHIN[kind]
        waiting += [(within[number], inner) for number, inner in parts(message) if number in within]


def _parts(message: memoryview, wanted: int) -> Iterator[memoryview]:
    """The parts of a message that have this field number."""
    return (value for number, value in parts(message) if number == wanted)


@dataclass(frozen=True)
class Node:
    """An operator with the names of its inputs ("" for an optional one that is left out) and outputs."""

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Record


@dataclass(frozen=True)
class Value:
    """An input or output as onnxruntime describes it: None or a name for an axis of any size."""

    name: str
    type: str
    shape: tuple[int | str | None, ...]


@dataclass(frozen=True)
class Graph:
    """The contents of a file: nodes in an order in which they can be run."""

    nodes: list[Node]
    constants: dict[str, Array]
    inputs: list[Value]
    outputs: list[Value]
    opset: int


def read_graph(path: Path, weights: Mapping[str, Path]) -> Graph:
    """Return the graph of an ONNX file; needs the package `onnx`.

    Args:
        path: of the file
        weights: the files of weights that it names, by the name it has for them
    """
    onnx = optional_imports.load("onnx", extra="torch")
    try:
        return _graph(onnx.load(path, load_external_data=False), weights)
    except Exception as error:  # protobuf's own, ValueError and others
        raise InputError(f"model: {path} is not a usable ONNX model ({first_line(error)})") from None


def _graph(model: ModelProto, weights: Mapping[str, Path]) -> Graph:
    graph: GraphProto = model.graph
    if not graph.output:
        raise ValueError("it has no graph with an output")
    constants = {tensor.name: _tensor(tensor, weights) for tensor in graph.initializer}
    nodes = []
    for node in graph.node:
        attributes = {one.name: _attribute(one, weights) for one in node.attribute}
        if node.op_type == "Constant":
            constants[node.output[0]] = _constant(*attributes.values())
            continue
        operator = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
        nodes.append(Node(operator, tuple(node.input), tuple(node.output), attributes))
    inputs = [_value(one) for one in graph.input if one.name not in constants]
    opset = next((one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), 0)
    return Graph(nodes, constants, inputs, [_value(one) for one in graph.output], opset)


def _attribute(attribute: AttributeProto, weights: Mapping[str, Path]) -> object:
    """Return its value; None for graphs within nodes and other kinds that no operator here takes."""
    from onnx import AttributeProto, helper

    if attribute.type == AttributeProto.TENSOR:
        return _tensor(attribute.t, weights)
    if attribute.type == AttributeProto.STRING:
        return attribute.s.decode()
    if attribute.type == AttributeProto.STRINGS:
        return [one.decode() for one in attribute.strings]
    numbers = (AttributeProto.FLOAT, AttributeProto.INT, AttributeProto.FLOATS, AttributeProto.INTS)
    return helper.get_attribute_value(attribute) if attribute.type in numbers else None


def _constant(value: object) -> Array:
    first = value[0] if isinstance(value, Sequence) and value else value
    return np.asarray(value, dtype={float: np.float32, int: np.int64}.get(type(first)))


def _tensor(tensor: TensorProto, weights: Mapping[str, Path]) -> Array:
    from onnx import TensorProto, external_data_helper, numpy_helper

    if tensor.data_location == TensorProto.EXTERNAL:
        # The package follows no links, and models in caches of downloads are links.
        found = external_data_helper.ExternalDataInfo(tensor)
        if found.location not in weights:
            raise ValueError(f"weights {found.location!r} do not exist beside it")
        with weights[found.location].open("rb") as stream:
            stream.seek(found.offset or 0)
            content = stream.read(-1 if found.length is None else found.length)
        tensor = TensorProto(name=tensor.name, dims=tensor.dims, data_type=tensor.data_type, raw_data=content)
    array: Array = numpy_helper.to_array(tensor)
    if array.dtype.kind not in "biuf":
        kind = TensorProto.DataType.Name(tensor.data_type)
        raise ValueError(f"constant {tensor.name!r} has elements of kind {kind}, which is not supported")
    return array


def _value(value: ValueInfoProto) -> Value:
    from onnx import TensorProto

    tensor = value.type.tensor_type
    kind = TensorProto.DataType.Name(tensor.elem_type).lower() if tensor.elem_type else "unknown"
    axes = [axis.dim_value if axis.HasField("dim_value") else axis.dim_param or None for axis in tensor.shape.dim]
    return Value(value.name, f"tensor({kind})", tuple(axes))
