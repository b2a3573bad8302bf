"""Inputs that stay on disk until a batch of them is asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A row for each file: size, times of change of content and of the entry, inode, and a hash of its content in two parts.
Digests = NDArray[np.uint64]


class LazyInputs(ABC):
    """A read-only stack of equally shaped inputs; indexing it with rows reads those rows.

    Subclasses set `shape` and `dtype` and say how rows are read.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @abstractmethod
    def read(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        """The inputs at these rows (each within 0 … len − 1), as a C-contiguous array."""

    def identity(self) -> bytes | None:
        """What tells this data set from another without reading all of it; None: its contents."""
        return None

    def former_identity(self) -> bytes | None:
        """What version 0.1.0 told it by, where that was less."""
        return None

    def recall(self, digests: Digests) -> None:
        """Take over what is known of unchanged files, so that they are not read again to tell what is in them."""

    def digests(self) -> Digests | None:
        """What to know of the files another time; None where their contents were not looked at."""
        return None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> NDArray[Any]:
        rows = np.arange(len(self), dtype=np.intp)[key]
        if rows.ndim == 0:
            row: NDArray[Any] = self.read(rows.reshape(1))[0]
            return row
        return self.read(rows)
