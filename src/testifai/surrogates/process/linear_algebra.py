"""Linear algebra of covariance matrices, and rows in chunks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy
from numpy.typing import NDArray

from testifai.support.types import Floats

Ints = NDArray[np.intp]
ROWS = 2_000  # rows of a chunk


def chunks(rows: int) -> Iterator[slice]:
    return (slice(start, start + ROWS) for start in range(0, rows, ROWS))


def cholesky(covariance: Floats) -> Floats:
    return np.asarray(scipy.linalg.cholesky(covariance, lower=True, overwrite_a=True, check_finite=False))


def solve(factor: Floats, values: Floats) -> Floats:
    return np.asarray(scipy.linalg.cho_solve((factor, True), values, check_finite=False))


def explained_root(factor: Floats, cross: Floats) -> Floats:
    """Return L^-1 cross', whose squares sum over each column to the variance that the factored values explain."""
    return np.asarray(scipy.linalg.solve_triangular(factor, cross.T, lower=True, check_finite=False))


def inverse(factor: Floats) -> Floats:
    lower = scipy.linalg.lapack.dpotri(factor, lower=1)[0]
    return np.asarray(np.tril(lower) + np.tril(lower, -1).T)


def contracted(tensor: Floats, matrices: list[Floats]) -> Floats:
    """Multiply each of a tensor's last axes by a matrix: sum over i of tensor[..., i, ...] matrix[i, k]."""
    first = tensor.ndim - len(matrices)
    for matrix in matrices:  # each product moves the axis to the end
        tensor = np.tensordot(tensor, matrix, axes=(first, 0))
    return tensor
