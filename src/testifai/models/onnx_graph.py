"""Inside an ONNX file: its inner tensors, a copy that hands one of them out, the files and operators it names.

An ONNX file is a protocol buffer, and the package that knows its whole schema is large. Two facts of the format are
enough here. Fields carry their numbers, so the names of the tensors that nodes make can be read without knowing the
rest. And a message that occurs twice is merged, lists appended: a graph with nothing but one more output, written
after the model, is added to the model's own graph.
(field numbers: onnx/onnx.proto)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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


def whole_numbers(values: Iterable[int | memoryview]) -> list[int]:
    """A repeated int64 field, whether each number is a field of its own or all are packed into one."""
    numbers = []
    for value in values:
        if isinstance(value, int):
            numbers.append(_signed(value))
            continue
        place = 0
        while place < len(value):
            number, place = _read_varint(value, place)
            numbers.append(_signed(number))
    return numbers


def part(number: int, content: bytes) -> bytes:
    """A field of bytes, written."""
    return _varint(number << 3 | BYTES) + _varint(len(content)) + content


def _signed(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


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
