"""The prior on all configurations of a space at once: sums over the whole grid without a pair of configurations."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from testifai.surrogates.process.kernel import AxisKernel, Floats, Prior


@dataclass(frozen=True)
class Spectrum:
    """Eigenvectors and eigenvalues of the prior on the grid, for one vector of parameters.

    An eigenvector is a product of one of each axis; the eigenvalues, an array over them, are the sum of two parts.
    """

    kernels: list[AxisKernel]
    scales: list[float]
    vectors: list[Floats]  # per axis, in columns, the constant one first
    factors: list[Floats]  # eigenvalues of each axis's smooth kernel
    weights: Floats  # of the product of these
    smooth: Floats
    rough: Floats


class WholeGrid:
    """All configurations over the axes that have more than one level, the last axis running fastest.

    All terms of the prior have the Kronecker product of the axes' eigenvectors as eigenvectors (see `process.kernel`).

    >>> prior = Prior([[0, 1, 2], [0, 1]])
    >>> places = np.indices(prior.sizes).reshape(2, -1).T
    >>> slow = prior.kernel(prior.mean, places, places) @ np.arange(6.0)
    >>> bool(np.allclose(WholeGrid(prior).times(prior.mean, np.arange(6.0)), slow))
    True
    """

    def __init__(self, prior: Prior) -> None:
        self.prior = prior
        self.sizes = [prior.sizes[j] for j in prior.active]
        order = np.count_nonzero(np.indices(self.sizes), axis=0)  # place 0 is the constant vector
        self.used = np.minimum(order, prior.orders)
        self._modelled = order <= prior.orders
        self._rough_shape = outer([np.r_[n, np.full(n - 1, n / (n - 1))] for n in self.sizes])
        self._bases = {n: contrasts(n) for n in set(self.sizes)}

    def spectrum(self, parameters: Floats) -> Spectrum:
        """The prior's eigenvectors and eigenvalues."""
        prior = self.prior
        smooth, rough = prior.weights(parameters)
        kernels = [prior.axis(parameters, j) for j in prior.active]
        scales = [prior.scale(parameters, j) for j in prior.active]
        vectors, factors = [], []
        for n, kernel, scale in zip(self.sizes, kernels, scales, strict=True):
            values, inner = np.linalg.eigh(self._bases[n].T @ kernel.matrix @ self._bases[n])
            vectors.append(np.column_stack([np.full(n, n**-0.5), self._bases[n] @ inner]))
            factors.append(np.r_[n, scale * np.maximum(values, 0)])
        weights = np.where(self._modelled, smooth[self.used], 0.0)
        rough_part = np.where(self._modelled, rough[self.used], 0.0) * self._rough_shape
        return Spectrum(kernels, scales, vectors, factors, weights, weights * outer(factors), rough_part)

    def times(self, parameters: Floats, weights: Floats) -> Floats:
        """The prior's covariance matrix times a vector over the grid."""
        spectrum = self.spectrum(parameters)
        coefficients = contracted(weights.reshape(self.sizes), spectrum.vectors)
        coefficients *= spectrum.smooth + spectrum.rough
        return contracted(coefficients, [vectors.T for vectors in spectrum.vectors]).reshape(-1)


def contracted(tensor: Floats, matrices: Sequence[Floats]) -> Floats:
    """A tensor with each of its last axes multiplied by a matrix: sum over i of tensor[..., i, ...] matrix[i, k]."""
    first = tensor.ndim - len(matrices)
    for matrix in matrices:  # each turn moves the axis to the end
        tensor = np.tensordot(tensor, matrix, axes=(first, 0))
    return tensor


def outer(factors: Sequence[Floats]) -> Floats:
    """The product of every choice of one entry of each."""
    product: Floats = functools.reduce(np.multiply.outer, factors, np.ones(()))
    return product


def contrasts(n: int) -> Floats:
    """An orthonormal basis of the vectors that sum to zero (Helmert)."""
    columns = [np.r_[np.ones(i), -i, np.zeros(n - i - 1)] / math.sqrt(i * (i + 1)) for i in range(1, n)]
    return np.array(columns).T
