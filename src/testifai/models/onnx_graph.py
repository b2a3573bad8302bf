"""Contents of an ONNX file: inner tensors, external files, operators, and its graph.

An ONNX file is a protocol buffer (onnx/onnx.proto); all but `read_graph` needs no package `onnx`. Fields carry their
numbers, so some can be read without knowing the rest. A message that occurs twice is merged, lists appended: a graph
with nothing but one more output, written after the model, is added to the model's own graph.
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


def _parts(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Return number and value of each field that is a text, bytes or a message, in order."""
    place = 0
    while place < len(message):
        key, place = _read_varint(message, place)
        number, kind = (key & 0xFFFFFFFF) >> 3, key & 7
        if kind == VARINT:
            _, place = _read_varint(message, place)
            continue
        if kind == BYTES:
            length, place = _read_varint(message, place)
        elif kind in _SIZES:
            length = _SIZES[kind]
        else:
            raise ValueError(f"not a protocol buffer: field of kind {kind}")
        if length > len(message) - place:
            raise ValueError("not a protocol buffer: it is cut short")
        if kind == BYTES:
            yield number, message[place : place + length]
        place += length


def _named(message: memoryview, wanted: int) -> Iterator[memoryview]:
    return (value for number, value in _parts(message) if number == wanted)


def _written(number: int, content: bytes) -> bytes:
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

# Messages in the fields of a message, as far as these can contain tensors and nodes.
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
RANDOM = frozenset({
    "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli",
})  # fmt: skip


def tensor_names(model: bytes) -> list[str]:
    """Return the tensors that the graph's nodes make, in order; ValueError if the model cannot be read."""
    nodes = (node for graph in _named(memoryview(model), MODEL_GRAPH) for node in _named(graph, GRAPH_NODE))
    names = (bytes(name).decode() for node in nodes for name in _named(node, NODE_OUTPUT))
    return [name for name in names if name]


def with_output(model: bytes, name: str) -> bytes:
    return model + _written(MODEL_GRAPH, _written(GRAPH_OUTPUT, _written(VALUE_NAME, name.encode())))


def external_files(model: bytes | memoryview) -> list[str]:
    """Return the files that tensors of the model name, sorted; ValueError if the model cannot be read."""
    entries = ({number: bytes(value) for number, value in _parts(entry)} for entry in _messages(model, "entry"))
    return sorted({one.get(ENTRY_VALUE, b"").decode() for one in entries if one.get(ENTRY_KEY) == b"location"})


def draws(model: bytes | memoryview) -> bool:
    """Return True if an operator draws random numbers (Dropout does not); ValueError if the model cannot be read."""
    names = (bytes(name) for node in _messages(model, "node") for name in _named(node, NODE_OPERATOR))
    return any(name.decode("utf-8", "replace") in RANDOM for name in names)


def _messages(model: bytes | memoryview, wanted: str) -> Iterator[memoryview]:
    """Return all messages of a kind in `_WITHIN`, at any depth."""
    waiting = [("model", memoryview(model))]
    while waiting:
        kind, message = waiting.pop()
        if kind == wanted:
            yield message
        within = _WITHIN[kind]
        waiting += [(within[number], inner) for number, inner in _parts(message) if number in within]


@dataclass(frozen=True)
class Node:
    """An operator with the names of its inputs ("" for an optional one that is absent) and outputs."""

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Record


@dataclass(frozen=True)
class Value:
    """An input or output as onnxruntime describes it; an axis of any size is None or a name."""

    name: str
    type: str
    shape: tuple[int | str | None, ...]


@dataclass(frozen=True)
class Graph:
    """The contents of a file; nodes are in an order in which they can be run."""

    nodes: list[Node]
    constants: dict[str, Array]
    inputs: list[Value]
    outputs: list[Value]
    opset: int


def read_graph(path: Path, weights: Mapping[str, Path]) -> Graph:
    """Return the graph of an ONNX file (needs the package `onnx`); `weights` are its external files by name."""
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
    """Return the value; None for graphs within nodes and other kinds that no operator here takes."""
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
        # The package follows no links, and models in download caches are links.
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
