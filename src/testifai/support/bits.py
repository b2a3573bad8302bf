"""Flags as bits, eight to a byte, the first flag highest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from testifai.support.types import Bools

Bits = NDArray[np.uint8]
Flags = Bools
Places = NDArray[np.intp]

_ONE = (128 >> np.arange(8)).astype(np.uint8)  # the bit of each place in its byte

_ROW = 8  # places from which on it pays to look whether they follow each other


def pack(flags: Bools) -> Bits:
    """Flags along the last axis as bits.

    >>> pack(np.array([True, False, True])).tolist()
    [160]
    """
    return np.packbits(flags, axis=-1)


def unpack(bits: Bits, count: int) -> Flags:
    """The first `count` flags along the last axis.

    >>> unpack(np.array([160], np.uint8), 3).tolist()
    [True, False, True]
    """
    return np.unpackbits(bits, axis=-1, count=count).view(np.bool_)


def places_of(bits: Bits, count: int) -> Places:
    """Where the flags are set.

    >>> places_of(np.array([160], np.uint8), 3).tolist()
    [0, 2]
    """
    return np.flatnonzero(unpack(bits, count))


def count_set(bits: Bits) -> NDArray[np.int64]:
    """How many flags are set along the last axis.

    >>> int(count_set(np.array([160], np.uint8)))
    2
    """
    return np.asarray(np.bitwise_count(bits).sum(axis=-1, dtype=np.int64))


def get(bits: Bits, places: Places) -> Flags:
    """The flags at these places of one row of bits.

    >>> get(np.array([160], np.uint8), np.array([2, 1])).tolist()
    [True, False]
    """
    chosen: Bits = bits[places >> 3] >> (7 - (places & 7)).astype(np.uint8)
    return (chosen & 1).astype(bool)


def put(bits: Bits, places: Places, flags: Flags | None = None) -> None:
    """Set the flags at these places of one row of bits, all of them or those given as set.

    >>> bits = np.zeros(2, np.uint8)
    >>> put(bits, np.arange(3, 11), np.arange(8) % 2 == 0)
    >>> bits.tolist()
    [21, 64]
    """
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
    """How many bytes so many flags take."""
    return (count + 7) // 8
