"""Inputs that stay on disk until a batch of them is read, and arrays in memory-mapped files."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.support.fingerprints import MAX_BYTES, Contents, FileTable, Hashes, Rows, as_numbers, hash_bytes, sampled
from testifai.support.types import Array


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

    def recall(self, digests: FileTable) -> None:  # noqa: B027  most have no files of their own
        """Take over what is known of unchanged files, so that they are not read again to tell what is in them."""

    def file_table(self) -> FileTable | None:
        """What to know of the files another time; None where their contents were not looked at."""
        return None

    def hashes(self, rows: Rows) -> Hashes:
        """What is in these rows now."""
        return as_numbers(hash_bytes(self.read(row).data) for row in rows[:, None])

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


class MappedFile:
    """A file mapped into memory. Touching what was cut off would end the process, so its length is looked at first."""

    def __init__(self, path: Path, needed: int) -> None:
        self.path, self.needed = path.absolute(), needed

    def check(self) -> None:
        """Refuse a file that has become shorter."""
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            return  # its name is gone, the file stays as long as it is mapped
        except OSError as error:
            raise InputError(f"data: {self.path} cannot be read ({error.strerror})") from None
        if size < self.needed:
            raise InputError(
                f"data: {self.path} is cut short: {size} bytes where {self.needed} are needed; "
                "do not change the data while they are read"
            )


class MappedInputs(LazyInputs):
    """An array in a file, which is looked at before every batch."""

    def __init__(
        self, path: Path, dtype: np.dtype[Any], offset: int, shape: tuple[int, ...], *, fortran: bool = False
    ) -> None:
        self.file = MappedFile(path, offset + int(np.prod(shape, dtype=object)) * dtype.itemsize)
        self.file.check()
        self.shape, self.dtype = shape, dtype
        self._array = np.asarray(np.memmap(path, dtype, "r", offset, shape, "F" if fortran else "C"))

        if self._array.nbytes > MAX_BYTES:
            self.contents = Contents(len(self))

    @classmethod
    def of(cls, array: np.memmap[Any, Any]) -> MappedInputs:
        """A whole array in a file that NumPy has mapped."""
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        return cls(Path(str(array.filename)), array.dtype, array.offset, array.shape, fortran=fortran)

    def read(self, rows: Rows) -> Array:
        self.file.check()
        part = np.ascontiguousarray(self._array[rows])
        if self.contents is not None:
            self.note(rows, _hashes(part))
            self._check_finite(rows, part)
        return part

    def hashes(self, rows: Rows) -> Hashes:
        self.file.check()
        return as_numbers(hash_bytes(np.ascontiguousarray(self._array[row]).data) for row in rows.tolist())

    def __getitem__(self, key: Any) -> Array:
        if isinstance(key, np.ndarray):
            picked: Array = super().__getitem__(key)
            return picked
        self.file.check()
        # A copy: a slice would look into the file later.
        return np.array(self._array[key], order="C")

    def _check_finite(self, rows: Rows, part: Array) -> None:
        if self.dtype.kind == "f":
            finite = np.isfinite(part).reshape(len(part), -1).all(axis=1)
            if not finite.all():
                raise InputError(f"inputs: row {rows[np.argmin(finite)]} holds NaN or infinity")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        whole = self[:]
        return whole if dtype is None else whole.astype(dtype, copy=False)


def _hashes(part: Array) -> Hashes:
    return as_numbers(hash_bytes(np.ascontiguousarray(row).data) for row in part)
