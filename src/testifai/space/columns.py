"""What queries may name of the tests of a space, an array for each name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_before(rows: Callable[[], NDArray[Any]], a: int, b: int) -> NDArray[np.bool_]:
    """In which configurations one axis is applied before another; both are on then."""
    places = rows()[:, rows().shape[1] // 2 :]
    return np.asarray((places[:, a] > 0) & (places[:, a] < places[:, b]))


class Lazy(Mapping[str, NDArray[Any]]):
    """Columns made when first asked for."""

    def __init__(self, makers: Mapping[str, Callable[[], NDArray[Any]]]) -> None:
        self._makers = makers
        self._made: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)
