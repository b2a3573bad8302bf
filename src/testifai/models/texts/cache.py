"""What was worked out for texts before, within a limit of memory."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.support import checks

Key = str | tuple[str, str]

LIMIT_MB = 256
# Besides its text and its numbers an entry takes the dictionary's slot and link and the array's header.
ENTRY_BYTES = 320


class RowCache:
    """One row of numbers per text or pair of texts; those not asked for the longest go first.

    Several threads may ask at once. What two of them miss at the same moment is worked out twice.

    >>> cache = RowCache()
    >>> cache.rows(["a", "bb", "a"], lambda texts: np.array([[len(text)] for text in texts])).tolist()
    [[1], [2], [1]]
    >>> cache.rows(["bb"], lambda texts: 1 / 0).tolist()
    [[2]]
    """

    def __init__(self, limit_mb: float = LIMIT_MB) -> None:
        self.limit = int(checks.number("model: cache_mb", limit_mb, least=0) * 2**20)
        self.bytes = 0
        self._rows: OrderedDict[Key, NDArray[Any]] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return RowCache, (self.limit / 2**20,)  # in another process it begins empty

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, keys: Sequence[Any], compute: Callable[[list[Any]], NDArray[Any]]) -> NDArray[Any]:
        """A row for each key; `compute` is asked once, for the distinct ones that are not known."""
        places: dict[Key, int] = {}
        inverse = np.fromiter((places.setdefault(key, len(places)) for key in keys), np.intp, len(keys))
        distinct = list(places)
        known = self._look_up(distinct)
        missing = [key for key, row in zip(distinct, known, strict=True) if row is None]
        # Nothing at all still needs one call, to see the shape of a row.
        if missing or not distinct:
            made = compute(missing)
            self._put(missing, made)
            if len(missing) == len(distinct):
                return made[inverse]
            fresh = iter(made)
            known = [next(fresh) if row is None else row for row in known]
        return np.stack([row for row in known if row is not None])[inverse]

    def _look_up(self, keys: list[Key]) -> list[NDArray[Any] | None]:
        with self._lock:
            found = [self._rows.get(key) for key in keys]
            for key, row in zip(keys, found, strict=True):
                if row is not None:
                    self._rows.move_to_end(key)
            return found

    def _put(self, keys: list[Key], rows: NDArray[Any]) -> None:
        if not self.limit:
            return
        with self._lock:
            for key, row in zip(keys, rows, strict=True):
                if key not in self._rows:
                    self._rows[key] = row.copy()  # a view would keep the whole batch
                    self.bytes += _size(key, row)
            while self.bytes > self.limit:
                self.bytes -= _size(*self._rows.popitem(last=False))


def _size(key: Key, row: NDArray[Any]) -> int:
    texts = (key,) if isinstance(key, str) else key
    return ENTRY_BYTES + row.nbytes + sum(map(sys.getsizeof, texts))
