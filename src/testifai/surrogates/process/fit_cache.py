"""What a fit takes long to find, noted as plain numbers, so that another fit of the same need not look for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from testifai.support.types import Floats, Record, RecordLike


class Notes:
    """Vectors by name: those that are known, or were found since.

    >>> notes = Notes({"mode": [1.0, 2.0]})
    >>> notes("mode", 2, lambda: np.zeros(2)).tolist(), notes("other", 2, lambda: np.zeros(2)).tolist()
    ([1.0, 2.0], [0.0, 0.0])
    >>> notes.as_dict()
    {'mode': [1.0, 2.0], 'other': [0.0, 0.0]}
    """

    def __init__(self, known: RecordLike | None = None) -> None:
        self._known: Record = dict(known or {})
        self._vectors: dict[str, Floats] = {}

    def __call__(self, name: str, size: int, find: Callable[[], Floats]) -> Floats:
        """The vector of this name and size; it is looked for where it is not known, or cannot be what is meant."""
        if name not in self._vectors:
            known = _vector(self._known.get(name))
            self._vectors[name] = find() if known is None or len(known) != size else known
        return self._vectors[name]

    def as_dict(self) -> dict[str, list[float]]:
        """All that was asked for, as plain data that is read back to the last bit."""
        return {name: vector.tolist() for name, vector in self._vectors.items()}


def _vector(known: Any) -> Floats | None:
    """Finite numbers in a row; None where it is anything else."""
    try:
        vector = np.asarray(known, np.float64)
    except (TypeError, ValueError):
        return None
    return vector if vector.ndim == 1 and np.isfinite(vector).all() else None
