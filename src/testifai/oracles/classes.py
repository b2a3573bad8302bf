"""The class a model decides for, and by how much."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.data.labels import MOST_CLASSES
from testifai.errors import InputError
from testifai.support.types import Array, Floats


def predicted(outputs: Array) -> NDArray[np.int64]:
    """Return the class a model decides for: labels as they are, else the (first) column with the highest score.

    Args:
        outputs: of the model

    >>> predicted(np.array([[0.1, 0.9], [0.5, 0.5]])).tolist()
    [1, 0]
    """
    if outputs.ndim == 2 and outputs.shape[1] > 1:
        columns: NDArray[np.int64] = outputs.argmax(1)
        return columns
    if outputs.ndim > 2:
        raise InputError(
            f"oracle: the model returned outputs of shape {outputs.shape} where a class is needed; for boxes use the "
            "oracle detection"
        )
    labels = outputs.reshape(-1)
    if labels.dtype.kind == "f" and not np.array_equal(labels, np.floor(labels)):
        wrong = labels[labels != np.floor(labels)][0]
        raise InputError(
            f"oracle: the model returned {wrong:g} where a class is needed; labels (N,) or scores (N, d) of "
            "at least two classes are accepted (for numeric outputs use the oracle tolerance)"
        )
    highest = labels.max(initial=0)
    if highest >= MOST_CLASSES:
        raise InputError(
            f"oracle: expected the model to return classes below {MOST_CLASSES:,}, got {highest}; for numeric outputs "
            "use the oracle tolerance"
        )
    return labels.astype(np.int64)


def confidence(outputs: ArrayLike) -> Floats:
    """Return the highest probability of each row of scores: by softmax, unless the row is a distribution already.

    Args:
        outputs: scores, a row per input

    >>> confidence([[0.0, np.log(3)], [0.1, 0.9]]).round(3).tolist()
    [0.75, 0.9]
    """
    rows = np.asarray(outputs, np.float64)
    if rows.ndim != 2 or rows.shape[1] < 2:
        raise InputError(f"scores: have shape {rows.shape}; confidence needs (N, classes) with at least two classes")
    if not np.isfinite(rows).all():
        raise InputError("scores: hold NaN or infinity; confidence needs finite numbers")
    distribution = (rows >= 0).all(axis=1) & (np.abs(rows.sum(axis=1) - 1) < 1e-3)
    top = rows.max(axis=1)
    return np.asarray(np.where(distribution, top, 1 / np.exp(rows - top[:, None]).sum(axis=1)))


def margin(outputs: Array, labels: NDArray[np.int64]) -> NDArray[np.float32] | None:
    """Return the score of the labelled class minus the best other; None if a model returns labels alone.

    Args:
        outputs: of the model
        labels: the right classes

    >>> margin(np.array([[3.0, 1.0, 2.5]]), np.array([0])).tolist()
    [0.5]
    """
    if outputs.ndim != 2 or outputs.shape[1] < 2:
        return None
    xp = namespace(outputs)
    scores = xp.asarray(outputs, dtype=xp.float32)
    own = xp.arange(outputs.shape[1], device=outputs.device) == labels[:, None]
    labelled, others = xp.where(own, scores, -xp.inf), xp.where(own, -xp.inf, scores)
    margins: NDArray[np.float32] = xp.amax(labelled, 1) - xp.amax(others, 1)
    return margins


def namespace(outputs: Array) -> ModuleType:
    return np if isinstance(outputs, np.ndarray) else sys.modules["torch"]
