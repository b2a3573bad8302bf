"""Inner tensors of an ONNX file: which there are, and a copy of the file that hands one of them out.

An ONNX file is a protocol buffer, and the package that knows its whole schema is large. Two facts of the format are
enough here. Fields carry their numbers, so the names of the tensors that nodes make can be read without knowing the
rest. And a message that occurs twice is merged, lists appended: a graph with nothing but one more output, written
after the model, is added to the model's own graph.
(https://protobuf.dev/programming-guides/encoding/, field numbers: onnx/onnx.proto)
"""

from __future__ import annotations

from collections.abc import Iterator

MODEL_GRAPH, GRAPH_NODE, GRAPH_OUTPUT, NODE_OUTPUT, VALUE_NAME = 7, 1, 12, 2, 1
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def tensor_names(model: bytes) -> list[str]:
    """The tensors that the graph's nodes make, in the order of the file; ValueError if it cannot be read."""
    view = memoryview(model)
    nodes = (node for graph in _parts(view, MODEL_GRAPH) for node in _parts(graph, GRAPH_NODE))
    names = (bytes(name).decode() for node in nodes for name in _parts(node, NODE_OUTPUT))
    return [name for name in names if name]


def with_output(model: bytes, name: str) -> bytes:
    """The model with one more output: the tensor of that name."""
    return model + _part(MODEL_GRAPH, _part(GRAPH_OUTPUT, _part(VALUE_NAME, name.encode())))


def _parts(message: memoryview, wanted: int) -> Iterator[memoryview]:
    """The parts of a message that have this field number."""
    place = 0
    while place < len(message):
        key, place = _read_varint(message, place)
        number, kind = key >> 3, key & 7
        if kind == _BYTES:
            length, place = _read_varint(message, place)
            if number == wanted:
                yield message[place : place + length]
            place += length
        elif kind == _VARINT:
            _, place = _read_varint(message, place)
        elif kind in (_FIXED64, _FIXED32):
            place += 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"not a protocol buffer: field of kind {kind}")


def _read_varint(message: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(message):
        byte = message[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7
    raise ValueError("not a protocol buffer: it is cut short")


def _part(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])
