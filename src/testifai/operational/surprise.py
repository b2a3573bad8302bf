"""Surprise adequacy of activation traces: how far an input is from what the model saw in training.

Kim, Feldt and Yoo, "Guiding deep learning system testing using surprise adequacy" (ICSE 2019). A trace is the vector
of a layer's activations for one input; `labels` are the classes that the model predicted for the inputs, and
`train_labels` those of the training inputs. Everything works block by block: no distance matrix is ever whole.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.errors import InputError
from testifai.operational.base import Indices
from testifai.support.types import Array, Floats

_BLOCK = 4_000_000  # distances held at a time; float32 in the search, float64 in the kernel density
VARIANCE = 1e-5


def dsa(train_traces: ArrayLike, train_labels: ArrayLike, traces: ArrayLike, labels: ArrayLike) -> Floats:
    """Distance-based surprise: (distance to the nearest training trace of the same class, call it a) divided by
    (distance from a to the nearest training trace of another class).

    Where a coincides with a trace of another class the value is infinite, or 1 where the input lies there too.

    Args:
        train_traces: activations of the training inputs, a row each
        train_labels: their classes
        traces: activations of the inputs to judge
        labels: their predicted classes

    >>> train, classes = [[0.0], [1.0], [5.0]], [0, 0, 1]
    >>> [float(value) for value in dsa(train, classes, [[2.0], [4.0]], [0, 1])]
    [0.25, 0.25]
    """
    train, train_classes, new, classes = _checked(train_traces, train_labels, traces, labels)
    if len(np.unique(train_classes)) < 2:
        raise InputError("train_labels: only one class; distance-based surprise compares with other classes")
    inner, outer = np.empty(len(new)), np.empty(len(new))
    for each in np.unique(classes):
        here, same = np.flatnonzero(classes == each), np.flatnonzero(train_classes == each)
        nearest, inner[here] = _nearest(new[here], train[same])
        anchors, back = np.unique(nearest, return_inverse=True)
        _, across = _nearest(train[same][anchors], train[train_classes != each])
        outer[here] = across[back]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = inner / outer
    return np.where((inner == 0) & (outer == 0), 1.0, ratio)


def lsa(
    train_traces: ArrayLike,
    train_labels: ArrayLike,
    traces: ArrayLike,
    labels: ArrayLike,
    *,
    variance: float = VARIANCE,
) -> Floats:
    """Likelihood-based surprise: minus the logarithm of the density of the class's training traces at the trace.

    The density is a Gaussian kernel estimate with the class's covariance and Scott's bandwidth n^(-1/(d+4)). Features
    whose variance is below `variance` in any class are left out, and so are directions in which a class does not vary.

    Args:
        train_traces: activations of the training inputs, a row each
        train_labels: their classes
        traces: activations of the inputs to judge
        labels: their predicted classes
        variance: features that vary less in any class are left out

    >>> train, classes = [[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1]
    >>> [round(float(value), 3) for value in lsa(train, classes, [[0.5], [9.0]], [0, 1])]
    [0.764, 13.002]
    """
    train, train_classes, new, classes = _checked(train_traces, train_labels, traces, labels)
    members = {each: train[train_classes == each].astype(np.float64) for each in np.unique(classes)}
    for each, rows in members.items():
        if len(rows) < 2:
            raise InputError(f"train_traces: class {each} has a single trace; a density needs at least 2")
    varied = [train[train_classes == each].var(axis=0) >= variance for each in np.unique(train_classes)]
    kept = np.logical_and.reduce(varied)
    if not kept.any():
        raise InputError(f"variance: no feature varies by {variance:g} in every class; give a smaller variance")
    result = np.empty(len(new))
    for each, rows in members.items():
        here = classes == each
        result[here] = -_log_density(rows[:, kept], new[here][:, kept].astype(np.float64))
    return result


def combined(confidence: ArrayLike, distances: ArrayLike) -> Floats:
    """Risk from confidence and DSA together: 1 - confidence (1 - DSA / max DSA) (DeepEST, Eq. 4).

    Args:
        confidence: of each example, 0 … 1
        distances: DSA of each example

    >>> [round(float(value), 2) for value in combined([0.9, 0.5], [1.0, 2.0])]
    [0.55, 1.0]
    """
    certain, far = np.asarray(confidence, np.float64), np.asarray(distances, np.float64)
    if certain.shape != far.shape:
        raise InputError(f"confidence and distances: shapes {certain.shape} and {far.shape} differ")
    most = far.max(initial=0.0)
    if not np.isfinite(most):
        raise InputError("distances: must be finite to be divided by their maximum")
    return 1 - certain * (1 - far / most) if most > 0 else 1 - certain


def _checked(
    train_traces: ArrayLike, train_labels: ArrayLike, traces: ArrayLike, labels: ArrayLike
) -> tuple[NDArray[np.float32], Array, NDArray[np.float32], Array]:
    train, new = _flat("train_traces", train_traces), _flat("traces", traces)
    train_classes, classes = np.asarray(train_labels), np.asarray(labels)
    if train.shape[1] != new.shape[1]:
        raise InputError(f"traces: {new.shape[1]} features, but train_traces have {train.shape[1]}; use the same layer")
    for name, given, rows in (("train_labels", train_classes, train), ("labels", classes, new)):
        if given.shape != (len(rows),):
            raise InputError(f"{name}: shape {given.shape}; expected one label for each of the {len(rows)} traces")
    missing = np.setdiff1d(classes, train_classes)
    if len(missing):
        raise InputError(f"labels: class {missing[0]} is not among train_labels; give training traces of every class")
    return train, train_classes, new, classes


def _flat(name: str, traces: ArrayLike) -> NDArray[np.float32]:
    rows = np.asarray(traces, np.float32)
    if rows.ndim < 2 or not len(rows):
        raise InputError(f"{name}: shape {rows.shape}; expected one row of activations for each of at least 1 input")
    rows = rows.reshape(len(rows), -1)
    if not np.isfinite(rows).all():
        raise InputError(f"{name}: holds NaN or infinity at row {int(np.argmin(np.isfinite(rows).all(axis=1)))}")
    return rows


def _nearest(queries: NDArray[np.float32], points: NDArray[np.float32]) -> tuple[Indices, Floats]:
    """For each query the nearest point (the first of equals) and the exact distance to it."""
    # Squared distances come from one float32 product; points within its rounding error are measured again in float64.
    centre = points.mean(axis=0)
    left, right = queries - centre, points - centre
    query_norms, point_norms = (np.einsum("ij,ij->i", rows, rows) for rows in (left, right))
    # |q - p|^2 - |q|^2 = (-2 q, 1) (p, |p|^2): the product itself does the sums.
    left = np.column_stack([-2 * left, np.ones_like(query_norms)])
    right = np.ascontiguousarray(np.column_stack([right, point_norms]).T)
    # Twice the textbook bound on the rounding error of an inner product, for the value and for its rival.
    error = 4 * (queries.shape[1] + 4) * float(np.finfo(np.float32).eps)
    slack = error * (np.sqrt(query_norms) + np.sqrt(point_norms.max())) ** 2
    best, distance = np.empty(len(queries), np.int64), np.empty(len(queries))
    step = max(1, _BLOCK // len(points))
    for start in range(0, len(queries), step):
        rows = slice(start, min(start + step, len(queries)))
        squared = left[rows] @ right
        bar = squared.min(axis=1) + slack[rows]
        query, point = np.divmod(np.flatnonzero(squared <= bar[:, None]), len(points))
        exact = _distances(queries[rows], points, query, point)
        order = np.lexsort((point, exact, query))
        first = order[np.searchsorted(query[order], np.arange(rows.stop - start))]
        best[rows], distance[rows] = point[first], exact[first]
    return best, distance


def _distances(left: NDArray[np.float32], right: NDArray[np.float32], i: Indices, j: Indices) -> Floats:
    found = np.empty(len(i))
    step = max(1, _BLOCK // (4 * left.shape[1]))
    for start in range(0, len(i), step):
        part = slice(start, start + step)
        gap = left[i[part]].astype(np.float64) - right[j[part]]
        found[part] = np.sqrt(np.einsum("ij,ij->i", gap, gap))
    return found


def _log_density(members: Floats, points: Floats) -> Floats:
    from scipy.special import logsumexp

    count = len(members)
    centre = members.mean(axis=0)
    # The covariance's square root by way of QR: its square would lose half the digits of the narrow directions.
    _, deviations, axes = np.linalg.svd(np.linalg.qr((members - centre) / np.sqrt(count - 1), mode="r"))
    real = deviations > deviations[0] * max(members.shape) * np.finfo(np.float64).eps
    deviations, axes = deviations[real], axes[: len(real)][real]
    bandwidth = count ** (-1 / (len(deviations) + 4))
    # In these coordinates a kernel is a standard normal.
    whiten = axes.T / (deviations * bandwidth)
    members, points = (members - centre) @ whiten, (points - centre) @ whiten
    scale = np.log(np.sqrt(2 * np.pi) * deviations * bandwidth).sum() + np.log(count)
    member_norms = np.einsum("ij,ij->i", members, members) / 2
    result = np.empty(len(points))
    step = max(1, _BLOCK // (2 * count))
    for start in range(0, len(points), step):
        block = points[start : start + step]
        exponent = block @ members.T - member_norms
        norms = np.einsum("ij,ij->i", block, block) / 2
        result[start : start + step] = logsumexp(exponent, axis=1) - norms - scale
    return result
