"""Arrays that stay in their file, read a batch at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.data.lazy import LazyInputs
from testifai.errors import InputError


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

    def read(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        return self[rows]

    def __getitem__(self, key: Any) -> NDArray[Any]:
        self.file.check()
        part = self._array[key]
        # Rows picked one by one are a copy already; a slice would look into the file later.
        return np.ascontiguousarray(part) if isinstance(key, np.ndarray) else np.array(part, order="C")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        whole = self[:]
        return whole if dtype is None else whole.astype(dtype, copy=False)
