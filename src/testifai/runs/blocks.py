"""Rows of a run file: blocks of places, bits, and the checksum that each row carries."""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.support import bits as packed

BLOCK = 1024


def joined(mine: NDArray[Any] | None, theirs: NDArray[Any], known: NDArray[np.bool_]) -> NDArray[Any]:
    """Values by place, with those of the others where they are known."""
    mine = np.zeros_like(theirs) if mine is None else mine
    mine[known] = theirs[known]
    return mine


def span(block: int) -> tuple[int, int]:
    """The places of a block: the first, and the one after the last."""
    return block * BLOCK, (block + 1) * BLOCK


def is_of(whole: bytes, part: Any) -> bool:
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


def checksum(*cells: Any) -> int:
    """Of a row's cells with their lengths and types: a damaged key or length must not pass for another row."""
    crc = 0
    for cell in cells:
        data = cell if isinstance(cell, bytes) else repr(cell).encode("utf-8", "surrogatepass")
        crc = zlib.crc32(data, zlib.crc32(b"%d:" % len(data), crc))
    return crc


def sealed(*cells: Any) -> tuple[Any, ...]:
    """A row with its checksum."""
    return *cells, checksum(*cells)
