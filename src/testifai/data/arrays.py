"""A data set in memory or on disk: inputs, labels where there are any, class names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.data.fingerprint import chunks, fingerprint
from testifai.data.labels import read_labels
from testifai.data.lazy import LazyInputs
from testifai.errors import InputError

Inputs = NDArray[Any] | list[str] | LazyInputs


@dataclass(frozen=True, eq=False)
class Data:
    """Inputs (first axis = input), their labels and the names of the classes."""

    inputs: Inputs
    labels: NDArray[Any] | None = None
    classes: tuple[str, ...] | None = None
    name: str = "data"

    def __len__(self) -> int:
        return len(self.inputs)

    @cached_property
    def fingerprint(self) -> str:
        """Changes when inputs, labels or classes change; computed when first asked for."""
        return fingerprint(self.inputs, self.labels, self.classes)


def from_arrays(inputs: Any, labels: Any = None, classes: Sequence[str] | None = None, *, name: str = "data") -> Data:
    """A data set from arrays or lists, checked.

    >>> data = from_arrays(np.zeros((2, 28, 28), np.uint8), ["seven", "two"])
    >>> len(data), data.labels.tolist(), data.classes
    (2, [0, 1], ('seven', 'two'))
    """
    checked = _read_inputs(inputs)
    if len(checked) == 0:
        raise InputError(f"{name}: has no rows; at least one input is needed")
    names = tuple(str(one) for one in classes) if classes is not None else None
    array: NDArray[Any] | None = None
    if labels is not None:
        array, names = read_labels(labels, len(checked), names)
    return Data(checked, array, names, name)


def _read_inputs(inputs: Any) -> Inputs:
    if isinstance(inputs, LazyInputs):
        return inputs
    if isinstance(inputs, str | bytes | dict | set | frozenset):
        raise InputError(f"inputs: {type(inputs).__name__} is not accepted; an array or a list of strings is")
    if isinstance(inputs, list | tuple) and inputs and all(isinstance(text, str) for text in inputs):
        return list(inputs)
    try:
        array: NDArray[Any] = np.asanyarray(inputs)
    except ValueError:
        raise InputError("inputs: rows have different shapes; all inputs must have the same shape") from None
    if array.ndim == 0:
        raise InputError("inputs: a single value is not accepted; the first axis is the input")
    if array.dtype.kind in "USO":
        return _texts(array)
    if array.dtype.kind not in "biuf":
        raise InputError(f"inputs: dtype {array.dtype} is not accepted; numbers or strings are")
    if array.dtype.kind == "f":
        _check_finite(array)
    return array


def _texts(array: NDArray[Any]) -> list[str]:
    if array.ndim != 1:
        raise InputError(f"inputs: texts have shape {array.shape}; a list of strings is accepted")
    try:
        words = [word.decode() if isinstance(word, bytes) else word for word in array.tolist()]
    except UnicodeDecodeError:
        raise InputError("inputs: byte strings that are not UTF-8 text") from None
    for row, word in enumerate(words):
        if not isinstance(word, str):
            raise InputError(f"inputs: row {row} is a {type(word).__name__}; numbers or strings are accepted")
    return words


def _check_finite(array: NDArray[Any]) -> None:
    bad, first, row = 0, -1, 0
    for chunk in chunks(array):
        finite = np.isfinite(chunk).reshape(len(chunk), -1).all(axis=1)
        if not finite.all():
            first = row + int(np.argmin(finite)) if first < 0 else first
            bad += int((~finite).sum())
        row += len(chunk)
    if bad:
        raise InputError(f"inputs: {bad} of {len(array)} hold NaN or infinity (the first is row {first})")
