"""Checks of model outputs, made before anything is counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.data.annotations import CLASS, COLUMNS, MOST, NONE, are_boxes, are_records, from_records
from testifai.errors import InputError, suggest
from testifai.support.serialization import plain
from testifai.support.types import Array


def check_outputs(
    outputs: Any, n: int, model_name: str = "model", *, columns: int | None = None, classes: int | None = None
) -> Array:
    """Return the outputs as an array (n,), (n, d) or (n, boxes, 6) of finite numbers, or raise InputError.

    Args:
        outputs: returned by the model; boxes also as a mapping {boxes, labels, scores} per image
        n: number of inputs
        model_name: for the message
        columns: the d of an earlier call, 0 for (n,); None: there was none
        classes: number of classes, which bounds labels (n,); None: unknown

    >>> check_outputs([1, 0], 2).tolist()
    [1, 0]
    """
    if hasattr(outputs, "detach"):  # a PyTorch tensor, perhaps on another device or part of a gradient graph
        outputs = outputs.detach().cpu()
    if are_records(outputs):
        outputs = from_records(outputs, model_name, MOST)
    if outputs is None or isinstance(outputs, dict | set | str | bytes):
        raise InputError(f"{model_name}: model returned {type(outputs).__name__}; an array (N,) or (N, d) is accepted")
    try:
        array = np.asarray(outputs)
    except (ValueError, TypeError):
        raise InputError(f"{model_name}: model returned rows of different length; (N,) or (N, d) is accepted") from None
    if array.dtype.kind == "b":
        array = array.astype(np.uint8)
    check_form(array.shape, array.dtype, n, model_name, columns=columns)
    if array.dtype.kind == "f" and not (finite := np.isfinite(array)).all():
        what = "NaN" if np.isnan(array).any() else "infinity"
        rows = int((~finite.reshape(len(array), -1).all(axis=1)).sum())
        raise InputError(
            f"{model_name}: model returned {what} for {rows} of {n} inputs; outputs must be finite numbers"
        )
    if classes is not None and array.ndim == 1:
        wrong = array[(array < 0) | (array >= classes) | (array != np.floor(array))]
        if len(wrong):
            raise InputError(
                f"{model_name}: model returned label {wrong[0]} ({len(wrong)} of {len(array)} labels are outside "
                f"the {classes} classes); accepted: 0 … {classes - 1}"
            )
    return array


def check_form(
    shape: tuple[int, ...], dtype: np.dtype[Any], n: int, model_name: str, *, columns: int | None = None
) -> None:
    pixels = len(shape) == 4 or (len(shape) == 3 and dtype.kind in "iu")
    if len(shape) not in (1, 2) and not pixels and not (len(shape) == 3 and shape[2] == COLUMNS):
        raise InputError(
            f"{model_name}: model returned outputs of shape {shape} for {n} inputs; accepted: (N,) labels, (N, d) "
            "scores or values, label maps (N, H, W) of whole numbers, scores of pixels (N, classes, H, W), or boxes: "
            "for each image {'boxes': …, 'labels': …, 'scores': …}"
        )
    if shape[0] != n:
        raise InputError(f"{model_name}: model returned {shape[0]} outputs for {n} inputs")
    if dtype.kind not in "iuf":
        raise InputError(
            f"{model_name}: model returned outputs of dtype {dtype}; numbers are accepted (class indexes for labels)"
        )
    width = shape[1] if len(shape) == 2 else 0
    if len(shape) == 2 and width == 0:
        raise InputError(f"{model_name}: model returned no columns: outputs of shape {shape} for {n} inputs")
    if columns is not None and width != columns:
        now, before = (f"(N, {count})" if count else "(N,)" for count in (width, columns))
        raise InputError(f"{model_name}: model returned outputs of shape {now} after {before}")


def align_labels(labels: Array, names: Sequence[str] | None, class_values: Sequence[Any] | Array | None) -> Array:
    """Return labels of the data as the model's class indices.

    A classifier trained on the digits 3 and 5 scores them in columns 0 and 1: its adapter exposes (3, 5) as
    `class_values`. Words are matched with the data's class names, ignoring case; integers of data without names are
    indices of a model's named classes.

    Args:
        labels: of the data
        names: of the data's classes; None: there are none
        class_values: the model's classes in the order of its outputs; None: 0, 1, …

    >>> align_labels(np.array([5, 3, 5]), None, [3, 5]).tolist()
    [1, 0, 1]
    """
    if class_values is not None and are_boxes(labels):
        aligned, there = labels.copy(), labels[..., CLASS] != NONE
        aligned[there, CLASS] = align_labels(labels[there, CLASS].astype(np.int64), names, class_values)
        return aligned
    if class_values is None or labels.ndim != 1:
        return labels
    index = {plain(value): column for column, value in enumerate(class_values)}
    named = all(isinstance(value, str) for value in index)
    if named and names is None and labels.dtype.kind in "iu":
        return labels
    folded = {str(value).casefold(): column for value, column in index.items()}
    if named and len(folded) == len(index):
        index |= folded
    table = {}
    for label in np.unique(labels):
        value = names[int(label)] if named and names is not None else plain(label)
        found = index.get(value, index.get(value.casefold()) if isinstance(value, str) else None)
        if found is None:
            known = suggest(value, map(str, class_values))
            raise InputError(f"labels: {value!r} is not a class of the model; {known}")
        table[label] = found
    return np.array([table[label] for label in labels], dtype=np.int64)


def as_rows(activations: Array, inputs: int, layer: str) -> NDArray[np.float32]:
    """Return one row per input: feature maps averaged over pixels, as Kim et al. (ICSE 2019) do, tokens over tokens."""
    if activations.ndim == 0 or len(activations) != inputs:
        raise InputError(
            f"layer: {layer!r} gives shape {activations.shape} for {inputs} inputs; one row each is needed"
        )
    if activations.dtype.kind not in "iuf":
        raise InputError(f"layer: {layer!r} gives {activations.dtype} values; a layer that gives numbers is needed")
    if activations.ndim == 1:
        activations = activations[:, None]
    elif activations.ndim > 2:
        axes = 1 if activations.ndim == 3 else tuple(range(2, activations.ndim))
        activations = activations.mean(axis=axes)
    rows: NDArray[np.float32] = activations.astype(np.float32, copy=False)
    if not np.isfinite(rows).all():
        raise InputError(f"layer: {layer!r} gives NaN or infinity; choose another layer")
    return rows
