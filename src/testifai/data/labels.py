"""Labels in various forms as arrays for oracles.

One label per input becomes integers (N,), several become 0/1 rows (N, classes), boxes on images (N, boxes, 6): see
`data.annotations`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from testifai.data.annotations import CLASS, NONE, are_boxes, are_label_maps, are_records, from_records
from testifai.data.annotations import MOST_CLASSES as MOST_OF_PIXELS
from testifai.errors import InputError, suggest
from testifai.support.types import Array

Classes = tuple[str, ...] | None
MOST_CLASSES = 1 << 20  # numbers of classes end here: counts by class have to fit into memory
_MOST_EXACT = 2**53  # larger numbers are values, not classes


def read_labels(labels: Any, count: int, classes: Sequence[str] | None = None) -> tuple[Array, Classes]:
    """Labels as an array, with class names if the labels are words.

    Words become class indexes, in the order of `classes`, else sorted. A list of sets or a 0/1 table, such as one-hot
    rows, means several labels per input. Fractional numbers are values for a regression oracle.
    """
    names = tuple(str(name) for name in classes) if classes is not None else None
    if are_records(labels) or are_boxes(labels):
        boxes = labels if are_boxes(labels) else from_records(labels, "labels")
        _check_count(len(boxes), count)
        highest = int(boxes[..., CLASS].max(initial=NONE))
        if highest == NONE:
            raise InputError("labels: not one box on any image; leave labels out to compare with what is found clean")
        if names is not None and highest >= len(names):
            raise InputError(f"labels: {highest} is not a class; accepted: 0 … {len(names) - 1}")
        return boxes.astype(np.float32, copy=False), names
    if isinstance(labels, list | tuple) and labels and all(isinstance(one, set | frozenset) for one in labels):
        _check_count(len(labels), count)
        return _from_sets(labels, names)
    try:
        # As objects: NumPy's own strings lose NUL characters at their end.
        are_words = isinstance(labels, list | tuple) and all(isinstance(one, str) for one in labels)
        array = np.asarray(labels, object if are_words and len(labels) else None)
    except ValueError:
        raise InputError("labels: rows of different length; several labels per input are a list of sets") from None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if are_label_maps(array):
        _check_count(len(array), count)
        low, high = int(array.min(initial=0)), int(array.max(initial=0))
        if low < 0 or high > MOST_OF_PIXELS:
            wrong = low if low < 0 else high
            raise InputError(f"labels: {wrong} is no class of a pixel; accepted: 0 … {MOST_OF_PIXELS}")
        return array.astype(np.int16), names
    if array.ndim not in (1, 2):
        raise InputError(
            f"labels: have shape {array.shape}; accepted: (N,) or, for several per input, (N, classes); "
            "for boxes a list of {'boxes': …, 'labels': …}"
        )
    _check_count(len(array), count)
    if array.dtype.kind not in "USO":
        return _from_numbers(array, names)
    if array.ndim != 1 or not all(isinstance(word, str) for word in array):
        raise InputError("labels: are neither numbers nor words; accepted: integers, strings, sets or a 0/1 table")
    words = [str(word) for word in array]
    names = names or tuple(sorted(set(words)))
    return np.array(_positions(words, names), dtype=np.int64), names


def _check_count(found: int, count: int) -> None:
    if found != count:
        raise InputError(f"labels: {found} labels for {count} inputs; there must be one per input")


def _from_sets(sets: Sequence[Any], names: Classes) -> tuple[Array, Classes]:
    members = {member for one in sets for member in one}
    if members and all(isinstance(member, str) for member in members):
        names = names or tuple(sorted(members))
        rows, width = [_positions(one, names) for one in sets], len(names)
    elif all(isinstance(member, int | np.integer) and member >= 0 for member in members):
        highest = int(max(members, default=-1))
        rows, width = [[int(member) for member in one] for one in sets], len(names) if names else highest + 1
        if highest >= width:
            raise InputError(f"labels: {highest} is not a class; accepted: 0 … {width - 1}")
    else:
        raise InputError("labels: sets hold something else than class numbers from 0 or class names")
    table = np.zeros((len(rows), width), dtype=np.uint8)
    for row, positions in enumerate(rows):
        table[row, positions] = 1
    return table, names


def _positions(words: Iterable[str], names: Sequence[str]) -> list[int]:
    index = {name: position for position, name in enumerate(names)}
    for word in words:
        if word not in index:
            raise InputError(f"labels: {word!r} is not one of the classes; {suggest(word, index)}")
    return [index[word] for word in words]


def _from_numbers(array: Array, names: Classes) -> tuple[Array, Classes]:
    if array.dtype.kind not in "biuf":
        raise InputError(f"labels: dtype {array.dtype} is not accepted; integers, strings, sets or a 0/1 table are")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError(f"labels: {int((~np.isfinite(array)).sum())} of {array.size} are NaN or infinite")
    if array.ndim == 2:
        if not np.isin(array, (0, 1)).all():
            raise InputError("labels: a table of labels may hold only 0 and 1, one column per class")
        if names is not None and array.shape[1] != len(names):
            raise InputError(f"labels: have {array.shape[1]} columns for {len(names)} classes")
        return array.astype(np.uint8), names
    if array.dtype.kind == "f" and not ((array == np.floor(array)) & (abs(array) <= _MOST_EXACT)).all():
        return array.astype(np.float64), names
    if array.dtype.kind == "u" and int(array.max(initial=0)) >= 2**63:
        raise InputError(f"labels: expected numbers below 2^63, got {int(array.max())}")
    numbers = array.astype(np.int64)
    if names is not None and len(numbers) and not (numbers.min() >= 0 and numbers.max() < len(names)):
        wrong = int(numbers[(numbers < 0) | (numbers >= len(names))][0])
        raise InputError(f"labels: {wrong} is not a class; accepted: 0 … {len(names) - 1} ({', '.join(names)})")
    return numbers, names
