"""Protocol buffers without their schema: fields carry numbers, and what a number means the reader must know.

(https://protobuf.dev/programming-guides/encoding/)
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
