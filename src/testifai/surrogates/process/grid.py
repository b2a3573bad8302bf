"""The prior on all configurations of a space: sums over the whole grid without pairs of configurations."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from testifai.errors import InputError
from testifai.space.numbering import rank_places, unrank_places
from testifai.support.types import Floats
from testifai.surrogates.base import are_numbered
from testifai.surrogates.process.kernel import AxisKernel, Prior
from testifai.surrogates.process.linear_algebra import Ints, contracted


class GridIndex:
    def __init__(self, places: Ints, sizes: Sequence[int], *, ordered: bool = False) -> None:
        self._sizes, self._sequences = tuple(sizes), math.factorial(len(sizes)) if ordered else 1
        self.size = math.prod(sizes) * self._sequences  # how many keys there may be
        strides = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
        # Keys of larger spaces exceed a machine word.
        whole = np.int64 if self.size < 2**63 else object
        self._strides = np.array(strides, whole)
        counts = range(len(sizes) + 1) if ordered else ()
        self._factorials = np.array([math.factorial(count) for count in counts], whole)
        keys = self.keys(places)
        self._order = np.argsort(keys, kind="stable")
        self._sorted = keys[self._order]

    def __call__(self, places: Ints) -> Ints:
        keys = self.keys(places)
        at = np.searchsorted(self._sorted, keys, side="right") - 1
        found: Ints = np.where(self._sorted[at] == keys, self._order[at], -1)
        return found

    def keys(self, places: Ints) -> NDArray[np.generic]:
        """Return positions on the grid, the last axis running fastest; then by sequence."""
        axes = len(self._sizes)
        keys: NDArray[np.generic] = places[:, :axes].astype(self._strides.dtype) @ self._strides
        if self._sequences == 1:
            return keys
        return np.asarray(keys * self._sequences + rank_places(places[:, axes:].T, self._factorials))

    def places(self, keys: Ints) -> Ints:
        found = np.array(np.unravel_index(keys // self._sequences, self._sizes), np.intp)
        if self._sequences > 1:
            sequences = unrank_places(keys % self._sequences, found > 0, self._factorials)
            found = np.concatenate([found, sequences]).astype(np.intp)
        return found.T


def severities(features: ArrayLike) -> NDArray[np.int64]:
    rows = np.asarray(features)
    if rows.ndim != 2 or rows.shape[1] == 0 or rows.dtype.kind not in "iu":
        raise InputError(f"features: {rows.dtype} of shape {rows.shape}; accepted: a row of severities each")
    return rows.astype(np.int64)


def known_places(prior: Prior, rows: NDArray[np.int64]) -> Ints:
    if rows.shape[1] != prior.width:
        raise InputError(f"features: {rows.shape[1]} severities to a row; accepted: {prior.width}")
    if prior.ordered and not are_numbered(rows):
        raise InputError("features: the places of some rows do not number the axes that are on; accepted: 1, 2, …")
    places = prior.places(rows)
    if (places < 0).any():
        i, j = np.argwhere(places < 0)[0]
        raise InputError(
            f"features: severity {rows[i, j]} on axis {j}; accepted: {', '.join(map(str, prior.levels[j].tolist()))}"
        )
    return places


@dataclass(frozen=True)
class Spectrum:
    """Eigenvectors and eigenvalues of the prior on the grid, for one vector of parameters.

    An eigenvector is a product of one of each axis; its eigenvalue is the sum of a smooth and a rough one.
    """

    kernels: list[AxisKernel]
    vectors: list[Floats]  # per axis, in columns, the constant one first
    factors: list[Floats]  # eigenvalues of each axis's smooth kernel
    weights: Floats  # of the product of these
    smooth: Floats
    rough: Floats


class WholeGrid:
    """All configurations over the axes with more than one level, the last axis running fastest.

    All terms of the prior have the Kronecker product of the axes' eigenvectors as eigenvectors (see `process.kernel`).
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
        smooth, rough = self.prior.weights(parameters)
        kernels, vectors, factors = self.prior.axes(parameters), [], []
        for n, kernel in zip(self.sizes, kernels, strict=True):
            values, inner = np.linalg.eigh(self._bases[n].T @ kernel.matrix @ self._bases[n])
            vectors.append(np.column_stack([np.full(n, n**-0.5), self._bases[n] @ inner]))
            factors.append(np.r_[n, kernel.scale * np.maximum(values, 0)])
        weights = np.where(self._modelled, smooth[self.used], 0.0)
        rough_part = np.where(self._modelled, rough[self.used], 0.0) * self._rough_shape
        return Spectrum(kernels, vectors, factors, weights, weights * outer(factors), rough_part)

    def times(self, parameters: Floats, weights: Floats) -> Floats:
        spectrum = self.spectrum(parameters)
        coefficients = contracted(weights.reshape(self.sizes), spectrum.vectors)
        coefficients *= spectrum.smooth + spectrum.rough
        return contracted(coefficients, [vectors.T for vectors in spectrum.vectors]).reshape(-1)


def outer(factors: Sequence[Floats]) -> Floats:
    return np.asarray(functools.reduce(np.multiply.outer, factors, np.ones(())))


def contrasts(n: int) -> Floats:
    """Return an orthonormal basis of the vectors that sum to zero (Helmert), in columns."""
    return np.asarray(scipy.linalg.helmert(n).T)
