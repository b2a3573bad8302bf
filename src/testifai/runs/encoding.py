"""Boxes of trials, as many as each has: what was found on an image, or expected there."""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from testifai.data.annotations import CLASS, COLUMNS, NONE, Boxes
from testifai.support import bits as packed
from testifai.support.types import Array, Bools

BLOCK = 1024


def joined(mine: Array | None, theirs: Array, known: Bools) -> Array:
    """Values by place, with those of the others where they are known."""
    mine = np.zeros_like(theirs) if mine is None else mine
    mine[known] = theirs[known]
    return mine


def span(block: int) -> tuple[int, int]:
    """The places of a block: the first, and the one after the last."""
    return block * BLOCK, (block + 1) * BLOCK


def is_of(whole: bytes, part: object) -> bool:
    """Whether a part's bits are as many as those of the whole, and none is set that is not set there."""
    if not isinstance(part, bytes) or len(part) != len(whole):
        return False
    if part is whole:
        return True
    return not int.from_bytes(part, "big") & ~int.from_bytes(whole, "big")


def as_bits(data: bytes) -> NDArray[np.uint8]:
    """Bits as they are stored."""
    return np.frombuffer(data, np.uint8)


@lru_cache(maxsize=4096)
def all_of(inputs: int, block: int) -> bytes:
    """The attempted bits of a block in which every input was tried."""
    return packed.pack(np.ones(max(0, min(BLOCK, inputs - block * BLOCK)), bool)).tobytes()


def checksum(*cells: object) -> int:
    """Of a row's cells with their lengths and types: a damaged key or length must not pass for another row."""
    crc = 0
    for cell in cells:
        data = cell if isinstance(cell, bytes) else repr(cell).encode("utf-8", "surrogatepass")
        crc = zlib.crc32(data, zlib.crc32(b"%d:" % len(data), crc))
    return crc


def sealed(*cells: object) -> tuple[object, ...]:
    """A row with its checksum."""
    return *cells, checksum(*cells)


DETECTIONS, EXPECTED = "detections", "expected"  # what a run that keeps detections keeps of each trial

Places = NDArray[np.intp]
Stored: TypeAlias = NDArray[np.float32]  # a row for each box: its place after the first of a block, and the box


class BoxRecords:
    """The boxes of one configuration's trials, by place."""

    __slots__ = ("_parts", "_sorted")

    def __init__(self, parts: list[tuple[Places, Boxes]] | None = None) -> None:
        self._parts = parts or []  # the place of each box, and the boxes
        self._sorted = False  # whether the first part has its places in order

    def copy(self) -> BoxRecords:
        """The same boxes; whatever is added to one of the two is not the other's."""
        return BoxRecords(list(self._parts))

    def add(self, places: Places, packed: Boxes) -> None:
        """The boxes of these places, an array (places, rows, 6) as `data.annotations.pack` makes them.

        >>> listed = BoxRecords()
        >>> listed.add(np.array([7]), np.array([[[0, 0, 2, 2, 1, 3], [0, 0, 0, 0, 0, -1]]], np.float32))
        >>> [len(boxes) for boxes in listed.at(np.array([6, 7]))]
        [0, 1]
        """
        row, column = np.nonzero(packed[..., CLASS] != NONE)
        self._parts.append((places[row], packed[row, column].astype(np.float32)))

    def among(self, wanted: Bools) -> BoxRecords:
        """The boxes of those places whose flag is set."""
        places, boxes = self._all()
        return BoxRecords([(places[wanted[places]], boxes[wanted[places]])])

    def join(self, other: BoxRecords) -> None:
        """Take in boxes of other places."""
        self._parts += other._parts

    def at(self, places: Places) -> list[Boxes]:
        """The boxes of each of these places."""
        own, boxes = self._all()
        first, last = np.searchsorted(own, places, "left"), np.searchsorted(own, places, "right")
        return [boxes[start:stop] for start, stop in zip(first.tolist(), last.tolist(), strict=True)]

    def span(self, start: int, stop: int) -> Stored:
        """The boxes of the places from `start` up to `stop`, to be stored."""
        places, boxes = self._all()
        part = slice(*np.searchsorted(places, [start, stop]).tolist())
        return np.column_stack([places[part] - start, boxes[part]]).astype(np.float32)

    def load(self, start: int, stored: Stored) -> None:
        """Take in what was stored of the places from `start` on."""
        self._parts.append((stored[:, 0].astype(np.intp) + start, np.ascontiguousarray(stored[:, 1:])))

    def _all(self) -> tuple[Places, Boxes]:
        """The places of all boxes, ascending, and the boxes; those of a place in the order in which they came."""
        if len(self._parts) != 1 or not self._sorted:
            none = (np.zeros(0, np.intp), np.zeros((0, COLUMNS), np.float32))
            places, boxes = (np.concatenate(column) for column in zip(none, *self._parts, strict=True))
            order = np.argsort(places, kind="stable")
            self._parts, self._sorted = [(places[order], boxes[order])], True
        return self._parts[0]


def is_stored(array: Array, places: int) -> bool:
    """Whether an array is what `BoxRecords.span` makes of so many places."""
    if array.ndim != 2 or array.shape[1] != 1 + COLUMNS or array.dtype != np.float32 or not np.isfinite(array).all():
        return False
    return bool(((array[:, 0] >= 0) & (array[:, 0] < places) & (array[:, CLASS + 1] >= 0)).all())
