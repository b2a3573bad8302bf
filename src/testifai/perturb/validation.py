"""Checks of the arguments of perturbations."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from testifai.errors import InputError
from testifai.support.batches import are_images, are_pairs
from testifai.support.types import Floats


def check_batch(batch: Any) -> int:
    """Return the number of inputs of a batch, at least one, or raise InputError."""
    if isinstance(batch, list):
        _check_rows(batch)
        shape: Sequence[int] = (len(batch),)
    elif isinstance(batch, np.ndarray) or is_tensor(batch):
        shape = batch.shape
    else:
        raise InputError(
            f"batch: {kind(batch)} is not accepted; give an array or a list of strings, of pairs or of images"
        )
    if len(shape) == 0:
        raise InputError("batch: a single number is not accepted; give an array whose first axis is the input")
    if 0 in shape:
        raise InputError("batch: it holds no inputs; at least one is needed")
    return len(batch)


def check_indices(indices: Any, count: int) -> Any:
    """Return the inputs' indices as an integer array; a tensor is not checked, which would wait for the device."""
    if indices is None:
        return np.arange(count)
    if is_tensor(indices):
        return indices
    numbers = np.asarray(indices)
    if numbers.shape != (count,) or numbers.dtype.kind not in "iu" or numbers.min() < 0:
        raise InputError(
            f"indices: {numbers.dtype} of shape {numbers.shape} is not accepted; "
            f"give one whole number ≥ 0 for each of the {count} inputs"
        )
    return numbers


def is_tensor(batch: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(batch, torch.Tensor)


def _check_rows(rows: list[object]) -> None:
    pairs, images = are_pairs(rows), are_images(rows)
    known = [_is_pair(row) if pairs else isinstance(row, np.ndarray if images else str) for row in rows]
    if not all(known):
        place = known.index(False)
        wanted = "an array, a list of strings or of pairs"
        if pairs or images:
            wanted = "a list of pairs (first, second) of strings" if pairs else "a list of arrays"
        raise InputError(f"batch: its row {place} is {kind(rows[place])}; give {wanted}")


def _is_pair(one: object) -> bool:
    return isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str) and isinstance(one[1], str)


def box_rows(rows: ArrayLike, place: int) -> Floats:
    try:
        made = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError):
        made = np.array(np.nan)
    made = made.reshape(0, 4) if made.size == 0 else made
    if made.ndim != 2 or made.shape[1] != 4 or not (made[:, :2] <= made[:, 2:]).all():
        raise InputError(
            f"boxes[{place}]: give rows of (x1, y1, x2, y2) with x1 ≤ x2 and y1 ≤ y2, an array of shape (boxes, 4)"
        )
    return made


def check_size(size: tuple[int, int]) -> tuple[int, int]:
    whole = [isinstance(side, int | np.integer) and side > 0 for side in size] if isinstance(size, tuple | list) else []
    if whole != [True, True]:
        raise InputError(f"size: {size!r} is not accepted; give the images' (height, width)")
    return int(size[0]), int(size[1])


def protected(batch: Any) -> Any:
    """A view or a copy of the batch for a user's function, which cannot change the original."""
    if isinstance(batch, list):
        return list(batch)
    if is_tensor(batch):
        return batch.clone()  # a tensor cannot be made read-only
    view = batch.view()
    view.flags.writeable = False
    return view


def kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
