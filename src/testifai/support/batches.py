"""Batches of any kind of input: arrays whose first axis is the input, lists of texts, lists of pairs of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

Pair = tuple[str, str]
Batch = NDArray[Any] | list[str] | list[Pair]
Side = Literal["first", "second", "both"]  # which text of a pair is perturbed
SIDES: tuple[Side, ...] = ("first", "second", "both")


def take(batch: Batch, rows: NDArray[np.intp]) -> Batch:
    """The given rows, as a batch of the same kind.

    >>> take(["a", "b", "c"], np.array([2, 0]))
    ['c', 'a']
    """
    if isinstance(batch, list):
        return cast(Batch, [batch[row] for row in rows.tolist()])
    return batch[rows]


def concat(batches: Sequence[Batch]) -> Batch:
    """Batches of one kind, one after the other.

    >>> concat([["a"], ["b", "c"]])
    ['a', 'b', 'c']
    """
    if len(batches) == 1:
        return batches[0]
    if isinstance(batches[0], list):
        return cast(Batch, [one for batch in batches for one in batch])
    return np.concatenate([np.asarray(batch) for batch in batches])


def roomy(batch: Batch, size: int) -> Any:
    """A batch of this size that begins with the given one; the rest is to be written.

    >>> made = roomy(["a", "b"], 3)
    >>> made[2:] = ["c"]
    >>> made
    ['a', 'b', 'c']
    """
    if isinstance(batch, list):
        return batch + batch[:1] * (size - len(batch))
    made = np.empty((size, *batch.shape[1:]), batch.dtype)
    made[: len(batch)] = batch
    return made


def own_copy(batch: Any) -> Any:
    """The same again for code that may write into what it is given; None stays None.

    >>> own_copy(["a", "b"])
    ['a', 'b']
    """
    return list(batch) if isinstance(batch, list) else None if batch is None else np.array(batch)


def are_pairs(batch: Any) -> TypeGuard[list[Pair]]:
    """Whether a batch is made of pairs of texts; the first of them tells.

    >>> are_pairs([("a", "b")]), are_pairs(["a", "b"])
    (True, False)
    """
    return isinstance(batch, list) and bool(batch) and isinstance(batch[0], tuple)
