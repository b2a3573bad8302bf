"""Flags as bits, eight to a byte, the first flag highest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from testifai.support.types import Bools

Bits = NDArray[np.uint8]
Places = NDArray[np.intp]

_ONE = (128 >> np.arange(8)).astype(np.uint8)  # the bit of each place in its byte
_ROW = 8  # number of places from which checking for consecutive ones pays


def pack(flags: Bools) -> Bits:
    """Pack flags along the last axis.

    >>> pack(np.array([True, False, True])).tolist()
    [160]
    """
    return np.packbits(flags, axis=-1)


def unpack(bits: Bits, count: int) -> Bools:
    """Return the first `count` flags along the last axis."""
    return np.unpackbits(bits, axis=-1, count=count).view(np.bool_)


def places_of(bits: Bits, count: int) -> Places:
    """Return the places of the flags that are set."""
    return np.flatnonzero(unpack(bits, count))


def count_set(bits: Bits) -> NDArray[np.int64]:
    """Count the flags that are set along the last axis."""
    return np.asarray(np.bitwise_count(bits).sum(axis=-1, dtype=np.int64))


def get(bits: Bits, places: Places) -> Bools:
    """Return the flags at these places of one row of bits."""
    chosen: Bits = bits[places >> 3] >> (7 - (places & 7)).astype(np.uint8)
    return (chosen & 1).astype(bool)


def put(bits: Bits, places: Places, flags: Bools | None = None) -> None:
    """Set the flags at these places of one row of bits: all of them, or those where `flags` is True."""
    if len(places) >= _ROW and (np.diff(places) == 1).all():
        first = int(places[0])
        whole = np.zeros(first % 8 + len(places), bool)
        whole[first % 8 :] = True if flags is None else flags
        row = np.packbits(whole)
        bits[first >> 3 : (first >> 3) + len(row)] |= row
        return
    chosen = _ONE[places & 7]
    np.bitwise_or.at(bits, places >> 3, chosen if flags is None else chosen * flags)


def size(count: int) -> int:
    """Return the number of bytes for a number of flags."""
    return (count + 7) // 8
