"""The graph of an ONNX file: its nodes, constants, inputs and outputs, read without the package that knows all of ONNX.

(field numbers: onnx/onnx.proto)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from testifai.errors import InputError
from testifai.models.onnx_graph import fields, whole_numbers
from testifai.models.onnx_session import external_files, first_line
from testifai.support.types import Array, Record

# Kinds of elements: their number in a file, onnxruntime's word for them, the field that holds them where not raw bytes.
_FLOATS, _INT32, _INT64, _DOUBLES, _UINT64, _RAW = 4, 5, 7, 10, 11, 9
_ELEMENTS: dict[int, tuple[str, str, int]] = {
    1: ("<f4", "float", _FLOATS),
    2: ("<u1", "uint8", _INT32),
    3: ("<i1", "int8", _INT32),
    4: ("<u2", "uint16", _INT32),
    5: ("<i2", "int16", _INT32),
    6: ("<i4", "int32", _INT32),
    7: ("<i8", "int64", _INT64),
    9: ("<b1", "bool", _INT32),
    10: ("<f2", "float16", _INT32),
    11: ("<f8", "double", _DOUBLES),
    12: ("<u4", "uint32", _UINT64),
    13: ("<u8", "uint64", _UINT64),
}
DTYPES = {number: np.dtype(code) for number, (code, _, _) in _ELEMENTS.items()}
_EXTERNAL = 1  # a tensor's data_location


@dataclass(frozen=True)
class Node:
    """An operator with the names of what it takes ("" where an optional input is left out) and makes."""

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
    """What a file says: nodes in an order in which they can be run."""

    nodes: list[Node]
    constants: dict[str, Array]
    inputs: list[Value]
    outputs: list[Value]
    opset: int


def read(path: Path) -> Graph:
    """The graph of an ONNX file, weights in files beside it included."""
    if not path.is_file():
        raise InputError(f"model: {path} does not exist" if not path.exists() else f"model: {path} is not a file")
    beside = external_files(path)
    try:
        return _graph(_Message(memoryview(path.read_bytes())), beside)
    except (ValueError, KeyError, UnicodeDecodeError) as error:
        raise InputError(f"model: {path} is not a usable ONNX model ({first_line(error)})") from None


class _Message:
    """A message's fields by their numbers; of fields that are no lists the last counts, as the format has it."""

    def __init__(self, message: memoryview) -> None:
        self.found: dict[int, list[int | memoryview]] = defaultdict(list)
        for number, _, value in fields(message):
            self.found[number].append(value)

    def whole(self, number: int) -> int:
        return ([0, *whole_numbers(self.found[number])])[-1]

    def wholes(self, number: int) -> list[int]:
        return whole_numbers(self.found[number])

    def contents(self, number: int) -> list[memoryview]:
        return [value for value in self.found[number] if isinstance(value, memoryview)]

    def text(self, number: int) -> str:
        return ["", *self.texts(number)][-1]

    def texts(self, number: int) -> list[str]:
        return [bytes(value).decode() for value in self.contents(number)]

    def floats(self, number: int, code: str = "<f4") -> Array:
        return np.frombuffer(b"".join(self.contents(number)), dtype=code)

    def within(self, number: int) -> list[_Message]:
        return [_Message(value) for value in self.contents(number)]


def _graph(model: _Message, beside: dict[str, Path]) -> Graph:
    constants: dict[str, Array] = {}
    nodes: list[Node] = []
    inputs: list[Value] = []
    outputs: list[Value] = []
    # A message that occurs twice is merged, lists appended.
    for graph in model.within(7):
        constants |= {tensor.text(8): _tensor(tensor, beside) for tensor in graph.within(5)}
        for node in (_node(one, beside) for one in graph.within(1)):
            if node.operator == "Constant":
                constants[node.outputs[0]] = _constant(node)
            else:
                nodes.append(node)
        inputs += [_value(one) for one in graph.within(11)]
        outputs += [_value(one) for one in graph.within(12)]
    if not outputs:
        raise ValueError("it has no graph with an output")
    opset = next((one.whole(2) for one in model.within(8) if one.text(1) in ("", "ai.onnx")), 0)
    return Graph(nodes, constants, [one for one in inputs if one.name not in constants], outputs, opset)


def _node(node: _Message, beside: dict[str, Path]) -> Node:
    domain, operator = node.text(7), node.text(4)
    attributes = dict(_attribute(one, beside) for one in node.within(5))
    full = operator if domain in ("", "ai.onnx") else f"{domain}.{operator}"
    return Node(full, tuple(node.texts(1)), tuple(node.texts(2)), attributes)


def _constant(node: Node) -> Array:
    (value,) = node.attributes.values()
    dtype = {float: np.float32, int: np.int64}.get(type(value[0] if isinstance(value, list) and value else value))
    return np.asarray(value, dtype=dtype)


def _attribute(attribute: _Message, beside: dict[str, Path]) -> tuple[str, Any]:
    """Its name and value, by its kind; graphs within nodes stay unread."""
    read_as: dict[int, Callable[[], Any]] = {
        1: lambda: attribute.floats(2)[-1].item(),
        2: lambda: attribute.whole(3),
        3: lambda: attribute.text(4),
        4: lambda: _tensor(attribute.within(5)[-1], beside),
        6: lambda: attribute.floats(7).tolist(),
        7: lambda: attribute.wholes(8),
        8: lambda: attribute.texts(9),
    }
    kind = attribute.whole(20)
    return attribute.text(1), read_as[kind]() if kind in read_as else None


def _tensor(tensor: _Message, beside: dict[str, Path]) -> Array:
    kind, shape = tensor.whole(2), tensor.wholes(1)
    if kind not in _ELEMENTS:
        raise ValueError(f"constant {tensor.text(8)!r} has elements of kind {kind}, which is not known here")
    code, word, held = _ELEMENTS[kind]
    if tensor.whole(14) == _EXTERNAL:
        flat = np.frombuffer(_from_beside(tensor, beside), dtype=code)
    elif tensor.found[_RAW]:
        flat = np.frombuffer(tensor.contents(_RAW)[-1], dtype=code)
    elif held in (_FLOATS, _DOUBLES):
        flat = tensor.floats(held, code)
    else:
        numbers = np.array(tensor.wholes(held), dtype=np.int64)
        # Half floats are stored as the numbers that their bits are.
        flat = numbers.astype(np.uint16).view(code) if word == "float16" else numbers.astype(code)
    return flat.reshape(shape).astype(DTYPES[kind], copy=True)


def _from_beside(tensor: _Message, beside: dict[str, Path]) -> bytes:
    told = {entry.text(1): entry.text(2) for entry in tensor.within(13)}
    location = told.get("location", "")
    if location not in beside:
        raise ValueError(f"weights {location!r} do not exist beside it")
    with beside[location].open("rb") as stream:
        stream.seek(int(told.get("offset", 0)))
        return stream.read(int(told["length"])) if "length" in told else stream.read()


def _value(value: _Message) -> Value:
    kind, shape = 0, list[int | str | None]()
    for tensor in (one for described in value.within(2) for one in described.within(1)):
        kind = tensor.whole(1)
        shape = [_size(axis) for known in tensor.within(2) for axis in known.within(1)]
    word = f"tensor({_ELEMENTS[kind][1]})" if kind in _ELEMENTS else "unknown"
    return Value(value.text(1), word, tuple(shape))


def _size(axis: _Message) -> int | str | None:
    return axis.whole(1) if axis.found[1] else axis.text(2) or None
