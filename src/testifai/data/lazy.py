"""Inputs that stay on disk until a batch of them is asked for."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.support.types import Array

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


# A row for each file: size, times of change of content and of the entry, inode, and a hash of its content in two parts.
Digests = NDArray[np.uint64]


class LazyInputs(ABC):
    """A read-only stack of equally shaped inputs, or of images of any size; indexing it with rows reads those rows.

    Subclasses set `shape` and `dtype` and say how rows are read. Those that may be too large to look at all contents
    beforehand set `contents` then, and `note` what is in the rows they read.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    contents: Contents | None = None  # None: all contents tell the data set

    @abstractmethod
    def read(self, rows: NDArray[np.intp]) -> Any:
        """The inputs at these rows (each within 0 … len − 1), as a C-contiguous array or as a list of images."""

    def identity(self) -> bytes | None:
        """What tells this data set from another without reading all of it; None: its contents."""
        if self.contents is None:
            return self.whole_identity()
        return hashlib.blake2b(f"some of {self.shape} {self.dtype.str}\n".encode() + self.sample()).digest()

    def whole_identity(self) -> bytes | None:
        """What tells it by all contents, however large it is; None: they themselves."""
        return None

    def former_identity(self) -> bytes | None:
        """What version 0.1.0 told it by, where that was less."""
        return None

    def recall(self, digests: Digests) -> None:  # noqa: B027  most have no files of their own
        """Take over what is known of unchanged files, so that they are not read again to tell what is in them."""

    def digests(self) -> Digests | None:
        """What to know of the files another time; None where their contents were not looked at."""
        return None

    def hashes(self, rows: Rows) -> Hashes:
        """What is in these rows now."""
        return as_numbers(hashed(self.read(row).data) for row in rows[:, None])

    def sample(self) -> bytes:
        """Hashes of rows that stand for all."""
        return self.hashes(sampled(len(self))).astype("<u8").tobytes()

    def called(self, row: int) -> str:
        """One of the inputs, in words."""
        return f"row {row}"

    def note(self, rows: Rows, found: Hashes) -> None:
        """Refuse rows that held something else when they were read before."""
        assert self.contents is not None
        changed = self.contents.note(rows, found)
        if len(changed):
            raise InputError(
                f"data: {self.called(int(changed[0]))} is not what it was when it was read before; "
                "do not change the data of a run"
            )

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def sizes(self, rows: Rows) -> NDArray[np.intp]:
        """Height and width of images at these rows."""
        return np.tile(np.array(self.shape[1:3], np.intp), (len(rows), 1))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, np.ndarray) and key.dtype.kind in "iu" and key.ndim == 1:
            return self.read(self._within(key))
        rows = np.arange(len(self), dtype=np.intp)[key]
        if rows.ndim == 0:
            return self.read(rows.reshape(1))[0]
        return self.read(rows)

    def _within(self, key: Array) -> Rows:
        """Rows as they are numbered from 0; those of a batch, without a look at all others."""
        rows = np.where(key < 0, key.astype(np.intp) + len(self), key).astype(np.intp)
        if len(rows) and not (rows.min() >= 0 and rows.max() < len(self)):
            raise IndexError(f"row {key[(rows < 0) | (rows >= len(self))][0]} is out of bounds for {len(self)} rows")
        return rows
