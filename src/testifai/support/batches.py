"""Batches of inputs: arrays with one input per row, or lists of texts, of text pairs, or of images of several sizes."""

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
    """Return the given rows as a batch of the same kind."""
    if isinstance(batch, list):
        return cast(Batch, [batch[row] for row in rows.tolist()])
    return batch[rows]


def concat(batches: Sequence[Batch]) -> Batch:
    """Concatenate batches of one kind."""
    if len(batches) == 1:
        return batches[0]
    if isinstance(batches[0], list):
        return cast(Batch, [one for batch in batches for one in batch])
    return np.concatenate([np.asarray(batch) for batch in batches])


def roomy(batch: Batch, size: int) -> Any:
    """Return a batch of the given size that starts with a copy of this one; the caller writes the rest."""
    if isinstance(batch, list):
        return batch + batch[:1] * (size - len(batch))
    made = np.empty((size, *batch.shape[1:]), batch.dtype)
    made[: len(batch)] = batch
    return made


def own_copy(batch: Any) -> Any:
    """Return a copy for code that may write into its argument; None for None."""
    if are_images(batch):
        return [image.copy() for image in batch]
    return list(batch) if isinstance(batch, list) else None if batch is None else np.array(batch)


def are_pairs(batch: Any) -> TypeGuard[list[Pair]]:
    """Return True for a list of text pairs."""
    return isinstance(batch, list) and bool(batch) and isinstance(batch[0], tuple)


def are_images(batch: Any) -> TypeGuard[Images]:
    """Return True for a list of images."""
    return isinstance(batch, list) and bool(batch) and isinstance(batch[0], np.ndarray)


def several_sizes(images: Images) -> str:
    """Return the message for images of several sizes and a model that needs one size."""
    sizes = sorted({f"{image.shape[0]}×{image.shape[1]}" for image in images})
    more = " …" if len(sizes) > 3 else ""
    return (
        f"the images are of different sizes ({', '.join(sizes[:3])}{more}) and the model takes one; resize them with "
        "size = [height, width] under [data]"
    )


def are_texts(batch: Any) -> TypeGuard[list[str] | list[Pair]]:
    """Return True for a list of texts or of text pairs."""
    return isinstance(batch, list) and not are_images(batch)


def by_shape(images: Images, change: Callable[[Array, NDArray[np.intp]], Sequence[Array]]) -> list[Array]:
    """Apply a function to the images of each shape as one array; it also gets their positions."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for row, image in enumerate(images):
        groups.setdefault(image.shape, []).append(row)
    made: list[Any] = [None] * len(images)
    for rows in groups.values():
        for row, one in zip(rows, change(np.stack([images[row] for row in rows]), np.array(rows)), strict=True):
            made[row] = one
    return made
