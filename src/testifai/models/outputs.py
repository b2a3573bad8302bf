"""What a model hands back, checked before anything is counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.data.annotations import CLASS, COLUMNS, MOST, NONE, Boxes, are_boxes, are_records, from_records
from testifai.errors import InputError, suggest
from testifai.support.serialization import plain
from testifai.support.types import Array


def check_outputs(
    outputs: Any, n: int, model_name: str = "model", *, columns: int | None = None, classes: int | None = None
) -> Array:
    """The outputs as an array (n,), (n, d) or (n, boxes, 6) of finite numbers, or an InputError that says why not.

    Args:
        outputs: what the model returned; of boxes also a mapping {boxes, labels, scores} for each image
        n: how many inputs it was given
        model_name: for the message
        columns: the d of an earlier call, 0 for (n,); None: there was none
        classes: how many there are, which bounds what labels (n,) may be; None: not known

    >>> check_outputs([1, 0], 2).tolist()
    [1, 0]
    """
    array = _to_array(outputs, model_name)
    if array.dtype.kind == "b":
        array = array.astype(np.uint8)
    check_form(array.shape, array.dtype, n, model_name, columns=columns)
    if array.dtype.kind == "f":
        _check_finite(array, n, model_name)
    if classes is not None and array.ndim == 1:
        _check_labels(array, classes, model_name)
    return array


def check_form(
    shape: tuple[int, ...], dtype: np.dtype[Any], n: int, model_name: str, *, columns: int | None = None
) -> None:
    """Refuse outputs of such a shape and kind for n inputs, whatever numbers they hold."""
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
        raise InputError(f"{model_name}: model returned outputs of shape {_shape(width)} after {_shape(columns)}")


def align_labels(labels: Array, names: Sequence[str] | None, class_values: Sequence[Any] | Array | None) -> Array:
    """Labels of the data as the model's own class indexes.

    A scikit-learn classifier trained on the digits 3 and 5 scores them in columns 0 and 1, and knows its
    classes as (3, 5): its adapter exposes them as `class_values`. Words are matched by the data's class
    names, whatever their case; whole numbers of data without names are a model's numbers of its named classes.

    Args:
        labels: of the data
        names: of the data's classes; None: there are none
        class_values: the model's classes in the order of its outputs; None: 0, 1, …

    >>> align_labels(np.array([5, 3, 5]), None, [3, 5]).tolist()
    [1, 0, 1]
    """
    if class_values is not None and are_boxes(labels):
        return _align_boxes(labels, names, class_values)
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


def _align_boxes(boxes: Boxes, names: Sequence[str] | None, class_values: Sequence[Any] | Array) -> Array:
    aligned, there = boxes.copy(), boxes[..., CLASS] != NONE
    aligned[there, CLASS] = align_labels(boxes[there, CLASS].astype(np.int64), names, class_values)
    return aligned


def _to_array(outputs: Any, model_name: str) -> Array:
    if hasattr(outputs, "detach"):  # a torch tensor, perhaps on another device or part of a gradient graph
        outputs = outputs.detach().cpu()
    if are_records(outputs):
        return from_records(outputs, model_name, MOST)
    if outputs is None or isinstance(outputs, dict | set | str | bytes):
        raise InputError(f"{model_name}: model returned {type(outputs).__name__}; an array (N,) or (N, d) is accepted")
    try:
        return np.asarray(outputs)
    except (ValueError, TypeError):
        raise InputError(f"{model_name}: model returned rows of different length; (N,) or (N, d) is accepted") from None


def _shape(columns: int) -> str:
    return f"(N, {columns})" if columns else "(N,)"


def _check_finite(array: Array, n: int, model_name: str) -> None:
    finite = np.isfinite(array)
    if finite.all():
        return
    what = "NaN" if np.isnan(array).any() else "infinity"
    rows = int((~finite.reshape(len(array), -1).all(axis=1)).sum())
    raise InputError(f"{model_name}: model returned {what} for {rows} of {n} inputs; outputs must be finite numbers")


def _check_labels(array: Array, classes: int, model_name: str) -> None:
    inside = (array >= 0) & (array < classes) & (array == np.floor(array))
    if not inside.all():
        wrong = array[~inside]
        raise InputError(
            f"{model_name}: model returned label {wrong[0]} ({len(wrong)} of {len(array)} labels are outside "
            f"the {classes} classes); accepted: 0 … {classes - 1}"
        )


def as_rows(activations: Array, inputs: int, layer: str) -> NDArray[np.float32]:
    """One row per input. Feature maps (N, C, H, W) are averaged over their places, tokens (N, T, D) over the tokens.

    Averaging feature maps is what surprise adequacy does (Kim et al., ICSE 2019); a convolution would otherwise
    give tens of thousands of columns.

    >>> as_rows(np.array([[[[1.0, 3.0]], [[5.0, 5.0]]]]), 1, "conv").tolist()
    [[2.0, 5.0]]
    """
    if activations.ndim == 0 or len(activations) != inputs:
        raise InputError(
            f"layer: {layer!r} gives shape {activations.shape} for {inputs} inputs; one row each is needed"
        )
    if activations.dtype.kind not in "iuf":
        raise InputError(f"layer: {layer!r} gives {activations.dtype} values; a layer that gives numbers is needed")
    if activations.ndim > 3:
        activations = activations.mean(axis=tuple(range(2, activations.ndim)))
    elif activations.ndim == 3:
        activations = activations.mean(axis=1)
    elif activations.ndim == 1:
        activations = activations[:, None]
    rows: NDArray[np.float32] = activations.astype(np.float32, copy=False)
    if not np.isfinite(rows).all():
        raise InputError(f"layer: {layer!r} gives NaN or infinity; choose another layer")
    return rows
