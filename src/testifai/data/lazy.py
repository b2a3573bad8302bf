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

    Subclasses set `shape` and `dtype` and define `read`. Data too large to be hashed before a run set `contents` and
    `note` the hashes of the rows they read.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    contents: Contents | None = None  # None: the data set is identified by all its contents

    @abstractmethod
    def read(self, rows: NDArray[np.intp]) -> Any:
        """The inputs at these rows (each within 0 … len − 1), as a C-contiguous array or as a list of images."""

    def identity(self) -> bytes | None:
        """Return what identifies the data set without reading all of it; None: its contents."""
        if self.contents is None:
            return self.whole_identity()
        return hashlib.blake2b(f"some of {self.shape} {self.dtype.str}\n".encode() + self.sample()).digest()

    def whole_identity(self) -> bytes | None:
        """Return a hash of all contents, even of large data; None: it is computed from the inputs."""
        return None

    def recall(self, digests: FileTable) -> None:  # noqa: B027  most have no files of their own
        """Use stored hashes of unchanged files instead of reading them again."""

    def file_table(self) -> FileTable | None:
        """Return the hashes for `recall`; None if no contents were hashed."""
        return None

    def hashes(self, rows: Rows) -> Hashes:
        return as_numbers(hash_bytes(self.read(row).data) for row in rows[:, None])

    def sample(self) -> bytes:
        return self.hashes(sampled(len(self))).astype("<u8").tobytes()

    def called(self, row: int) -> str:
        return f"row {row}"

    def note(self, rows: Rows, found: Hashes) -> None:
        """Raise InputError if rows have changed since they were read before."""
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
        return np.tile(np.array(self.shape[1:3], np.intp), (len(rows), 1))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, np.ndarray) and key.dtype.kind in "iu" and key.ndim == 1:
            rows = np.where(key < 0, key.astype(np.intp) + len(self), key).astype(np.intp)
            if len(rows) and not (rows.min() >= 0 and rows.max() < len(self)):
                raise IndexError(
                    f"row {key[(rows < 0) | (rows >= len(self))][0]} is out of bounds for {len(self)} rows"
                )
            return self.read(rows)
        rows = np.arange(len(self), dtype=np.intp)[key]
        if rows.ndim == 0:
            return self.read(rows.reshape(1))[0]
        return self.read(rows)


class MappedInputs(LazyInputs):
    def __init__(
        self, path: Path, dtype: np.dtype[Any], offset: int, shape: tuple[int, ...], *, fortran: bool = False
    ) -> None:
        self.path = path.absolute()
        self._needed = offset + int(np.prod(shape, dtype=object)) * dtype.itemsize
        self._check_length()
        self.shape, self.dtype = shape, dtype
        self._array = np.asarray(np.memmap(path, dtype, "r", offset, shape, "F" if fortran else "C"))
        if self._array.nbytes > MAX_BYTES:
            self.contents = Contents(len(self))

    @classmethod
    def of(cls, array: np.memmap[Any, Any]) -> MappedInputs:
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        return cls(Path(str(array.filename)), array.dtype, array.offset, array.shape, fortran=fortran)

    def read(self, rows: Rows) -> Array:
        self._check_length()
        part = np.ascontiguousarray(self._array[rows])
        if self.contents is not None:
            self.note(rows, as_numbers(hash_bytes(np.ascontiguousarray(row).data) for row in part))
            if self.dtype.kind == "f":
                finite = np.isfinite(part).reshape(len(part), -1).all(axis=1)
                if not finite.all():
                    raise InputError(f"inputs: row {rows[np.argmin(finite)]} holds NaN or infinity")
        return part

    def hashes(self, rows: Rows) -> Hashes:
        self._check_length()
        return as_numbers(hash_bytes(np.ascontiguousarray(self._array[row]).data) for row in rows.tolist())

    def __getitem__(self, key: Any) -> Array:
        if isinstance(key, np.ndarray):
            return np.asarray(super().__getitem__(key))
        self._check_length()
        # A copy: a slice would look into the file later.
        return np.array(self._array[key], order="C")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        whole = self[:]
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def _check_length(self) -> None:
        """Reject a file that has become shorter: reading the part that was cut off would end the process."""
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            return  # deleted, but readable as long as it is mapped
        except OSError as error:
            raise InputError(f"data: {self.path} cannot be read ({error.strerror})") from None
        if size < self._needed:
            raise InputError(
                f"data: {self.path} is cut short: {size} bytes where {self._needed} are needed; "
                "do not change the data while they are read"
            )
