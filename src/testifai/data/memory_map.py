"""Arrays that stay in their file, read a batch at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from testifai.data.lazy import LazyInputs
from testifai.errors import InputError
from testifai.support.fingerprints import MAX_BYTES, Contents, Hashes, Rows, as_numbers, hash_bytes
from testifai.support.types import Array


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
