"""Batches of any kind of input: arrays whose first axis is the input, or lists of strings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Batch = NDArray[Any] | list[str]


def take(batch: Batch, rows: NDArray[np.intp]) -> Batch:
    """The given rows, as a batch of the same kind.

    >>> take(["a", "b", "c"], np.array([2, 0]))
    ['c', 'a']
    """
    if isinstance(batch, list):
        return [batch[row] for row in rows]
    return batch[rows]


def concat(batches: Sequence[Batch]) -> Batch:
    """Batches of one kind, one after the other.

    >>> concat([["a"], ["b", "c"]])
    ['a', 'b', 'c']
    """
    if len(batches) == 1:
        return batches[0]
    if isinstance(batches[0], list):
        return [text for batch in batches for text in batch]
    return np.concatenate([np.asarray(batch) for batch in batches])
