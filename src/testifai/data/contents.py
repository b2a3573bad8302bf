"""Data sets too large to be read before a run: some of their contents tell them, and each input as it is read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

HASH_BYTES = 16
WORDS = HASH_BYTES // 8
# Up to here all contents tell a data set, which takes some seconds at most.
MOST_BYTES = 1 << 30
MOST_FILES = 20_000
SAMPLED = 256  # inputs whose contents tell a larger one

Rows = NDArray[np.intp]
Hashes = NDArray[np.uint64]  # two numbers for each input, not both 0


def hashed(content: Any) -> bytes:
    """A hash of bytes."""
    return hashlib.blake2b(content, digest_size=HASH_BYTES).digest()


def as_numbers(digests: Iterable[bytes]) -> Hashes:
    """Hashes as numbers, a row for each."""
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64).reshape(-1, WORDS)


def sampled(inputs: int) -> Rows:
    """Inputs that stand for all of them, from the first to the last.

    >>> sampled(3).tolist(), len(sampled(10_000))
    ([0, 1, 2], 256)
    """
    return np.unique(np.linspace(0, inputs - 1, min(inputs, SAMPLED)).astype(np.intp))


class Contents:
    """What inputs held when they were first read.

    >>> contents = Contents(5)
    >>> contents.note(np.array([1, 3]), as_numbers([hashed(b"one"), hashed(b"three")])).tolist()
    []
    >>> contents.note(np.array([3, 4]), as_numbers([hashed(b"other"), hashed(b"four")])).tolist()
    [3]
    >>> contents.rows().tolist()
    [1, 3, 4]
    """

    def __init__(self, inputs: int) -> None:
        self._hashes: Hashes = np.zeros((inputs, WORDS), np.uint64)

    def note(self, rows: Rows, found: Hashes) -> Rows:
        """Take in what these inputs hold now; gives those that held something else before."""
        before = self._hashes[rows]
        new = ~before.any(axis=1)
        self._hashes[rows[new]] = found[new]
        changed: Rows = rows[~new & (before != found).any(axis=1)]
        return changed

    def of(self, rows: Rows) -> Hashes:
        """What these inputs held; zeros where one was not read."""
        return self._hashes[rows]

    def rows(self) -> Rows:
        """The inputs that were read."""
        return np.flatnonzero(self._hashes.any(axis=1))
