"""Batches of any kind of input: arrays whose first axis is the input, lists of texts, of pairs of texts, of images.

Images of one size are an array; a list of arrays are images that need not be of one size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from testifai.support.types import Array

Pair = tuple[str, str]
Images = list[Array]
Batch = Array | list[str] | list[Pair] | Images
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
    if are_images(batch):
        return [image.copy() for image in batch]
    return list(batch) if isinstance(batch, list) else None if batch is None else np.array(batch)


def are_pairs(batch: Any) -> TypeGuard[list[Pair]]:
    """Whether a batch is made of pairs of texts; the first of them tells.

    >>> are_pairs([("a", "b")]), are_pairs(["a", "b"])
    (True, False)
    """
    return isinstance(batch, list) and bool(batch) and isinstance(batch[0], tuple)


def are_images(batch: Any) -> TypeGuard[Images]:
    """Whether a batch is a list of images; the first of them tells.

    >>> are_images([np.zeros((4, 6, 3), np.uint8)]), are_images(np.zeros((2, 4, 6, 3)))
    (True, False)
    """
    return isinstance(batch, list) and bool(batch) and isinstance(batch[0], np.ndarray)


def several_sizes(images: Images) -> str:
    """Why a model that takes images of one size cannot take these."""
    sizes = sorted({f"{image.shape[0]}×{image.shape[1]}" for image in images})
    more = " …" if len(sizes) > 3 else ""
    return (
        f"the images are of different sizes ({', '.join(sizes[:3])}{more}) and the model takes one; resize them with "
        "size = [height, width] under [data]"
    )


def are_texts(batch: Any) -> TypeGuard[list[str] | list[Pair]]:
    """Whether a batch is made of texts or of pairs of them."""
    return isinstance(batch, list) and not are_images(batch)


def by_shape(images: Images, change: Callable[[Array, NDArray[np.intp]], Sequence[Array]]) -> list[Array]:
    """What becomes of images, those of one shape together: `change` gets them as an array, and which they are.

    >>> by_shape([np.zeros((1, 2)), np.zeros((2, 1)), np.ones((1, 2))], lambda part, rows: part + rows[:, None, None])
    [array([[0., 0.]]), array([[1.],
           [1.]]), array([[3., 3.]])]
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for row, image in enumerate(images):
        groups.setdefault(image.shape, []).append(row)
    made: list[Any] = [None] * len(images)
    for rows in groups.values():
        for row, one in zip(rows, change(np.stack([images[row] for row in rows]), np.array(rows)), strict=True):
            made[row] = one
    return made
