"""The term of the `process` prior that depends on the order in which perturbations are applied.

With p_ab(s) = 1 where a is applied before b, -1 where after it, and 0 where one of them is off,

    k(s, t) = (1 + m C(s, t)) sum_(a < b) q_a q_b p_ab(s) p_ab(t) E_a(s, t) E_b(s, t)
              + r [same sequence of three or more] prod_j E_j(s, t).

E_j is a Matern-3/2 kernel over the levels of an axis given that nothing is there at level 0: what an order changes
grows with both severities. The sum is the effect of applying one perturbation before another: a part of it is constant,
and a part changes with all severities (C, a product of Matern-3/2 correlations). The second term is the effect of a
whole sequence beyond that. The scales q_j, m and r are learned; if they are small, the order has little effect.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from testifai.support.types import Floats
from testifai.surrogates.process.linear_algebra import Ints

LENGTH = 1.2  # correlation length of E_j; an axis is 1 long
NEAR = 0.6  # that of C
SHARED = 3  # least number of perturbations for which a sequence has an effect of its own


class Sequences:
    """The covariance due to the order of application, given the logarithms of the q_j, of m and of r.

    Configurations are rows of levels, by their places on the axes, and of the places at which these are applied.
    """

    def __init__(self, levels: Sequence[ArrayLike], active: Sequence[int]) -> None:
        self._axes, self._active = len(levels), list(active)
        self._roots = {j: _root(_matern(levels[j], LENGTH)) for j in active}
        self._tables = {j: _matern(levels[j], NEAR) for j in active}
        self._pairs = list(itertools.combinations(range(len(self._active)), 2))
        widths = [self._roots[j].shape[1] for j in self._active]
        sizes = [widths[a] * widths[b] for a, b in self._pairs]
        # Which two scales each feature has.
        self._scales = np.repeat(np.array(self._pairs, np.intp).reshape(-1, 2), sizes, axis=0)

    @property
    def count(self) -> int:
        """The number of parameters."""
        return len(self._active) + 2

    def variances(self, parameters: Floats) -> Floats:
        """Return the prior variance of each feature's weight."""
        return np.asarray(np.exp(parameters[self._scales].sum(axis=1)))

    def typical(self, parameters: Floats) -> Floats:
        """Return the mean variance that each feature adds to configurations with both axes on."""
        means = [(self._roots[j][1:] ** 2).mean(axis=0) for j in self._active]
        products = [np.multiply.outer(means[a], means[b]).ravel() for a, b in self._pairs]
        return np.asarray(self.variances(parameters) * np.concatenate([np.empty(0), *products]))

    def features(self, rows: Ints) -> Floats:
        """Return the features of each pair of axes, a row for each configuration."""
        parts = [np.empty((len(rows), 0))]
        for at, other in self._pairs:
            a, b = self._active[at], self._active[other]
            one, two = self._roots[a][rows[:, a]], self._roots[b][rows[:, b]]
            product = (one[:, :, None] * two[:, None, :]).reshape(len(rows), -1)
            before = np.sign(rows[:, self._axes + b] - rows[:, self._axes + a])
            parts.append(before[:, None] * product)
        return np.concatenate(parts, axis=1)

    def kernel(self, parameters: Floats, rows: Ints, columns: Ints) -> Floats:
        """Return the covariance between configurations."""
        return Between(self, rows, columns).kernel(parameters)

    def variance(self, parameters: Floats, rows: Ints) -> Floats:
        """Return the variance of configurations."""
        changing, shared = np.exp(parameters[-2:])
        diagonals = {j: (root**2).sum(axis=1) for j, root in self._roots.items()}
        own = [np.where(rows[:, j] > 0, diagonals[j][rows[:, j]], 1.0) for j in self._active]
        whole = shared * (self._order(rows) >= SHARED) * np.prod(own, axis=0)
        return np.asarray((1 + changing) * (self.features(rows) ** 2 @ self.variances(parameters)) + whole)

    def slope(self, by_feature: Floats) -> Floats:
        """Return the derivatives by the q_j's, given those by the logarithm of each feature's variance."""
        by_side = [np.bincount(side, by_feature, len(self._active)) for side in self._scales.T]
        return np.asarray(np.sum(by_side, axis=0))

    def near(self, rows: Ints, columns: Ints) -> Floats:
        """Return C: the similarity of configurations in all severities."""
        near = np.ones((len(rows), len(columns)))
        for j in self._active:
            near *= self._tables[j][rows[:, j]][:, columns[:, j]]
        return near

    def same(self, rows: Ints, columns: Ints) -> Floats:
        """Return the product of the E_j for configurations with the same sequence of three or more perturbations."""
        _, number = np.unique(np.concatenate([rows, columns])[:, self._axes :], axis=0, return_inverse=True)
        left, right = np.split(number.ravel(), [len(rows)])
        long = self._order(rows) >= SHARED
        total = np.zeros((len(rows), len(columns)))
        for sequence in np.intersect1d(left[long], right):
            some, others = np.flatnonzero(left == sequence), np.flatnonzero(right == sequence)
            block = np.ones((len(some), len(others)))
            for j in self._active:
                if rows[some[0], j]:
                    block *= self._roots[j][rows[some, j]] @ self._roots[j][columns[others, j]].T
            total[np.ix_(some, others)] = block
        return total

    def drawn(self, places: Ints, random: np.random.Generator) -> Ints:
        """Return levels with a random order of application for each row."""
        off = places == 0
        # Perturbations that are off come last, and have no position.
        place = np.argsort(np.argsort(random.random(places.shape) + off, axis=1), axis=1) + 1
        return np.concatenate([places, np.where(off, 0, place)], axis=1).astype(np.intp)

    def _order(self, rows: Ints) -> Ints:
        return np.asarray(np.count_nonzero(rows[:, self._active], axis=1))


class Between:
    """The covariance between configurations; what does not depend on parameters is cached."""

    def __init__(self, sequences: Sequences, rows: Ints, columns: Ints) -> None:
        self._sequences = sequences
        self._left = sequences.features(rows)
        self._right = self._left if columns is rows else sequences.features(columns)
        self._near, self._same = sequences.near(rows, columns), sequences.same(rows, columns)

    def kernel(self, parameters: Floats) -> Floats:
        """Return the covariance, given the logarithms of its scales."""
        changing, shared = np.exp(parameters[-2:])
        total: Floats = (self._left * self._sequences.variances(parameters)) @ self._right.T
        total *= 1 + changing * self._near
        total += shared * self._same
        return total

    def gradient(self, parameters: Floats, by_covariance: Floats) -> Floats:
        """Return the derivative by the logarithms of the scales, given that by the covariance."""
        changing, shared = np.exp(parameters[-2:])
        weighted = self._left * self._sequences.variances(parameters)
        by_near = by_covariance * self._near
        alike, near = (((by @ self._right) * weighted).sum(axis=0) for by in (by_covariance, changing * by_near))
        by_shared = shared * np.vdot(by_covariance, self._same)
        return np.concatenate([self._sequences.slope(alike + near), [near.sum(), by_shared]])


def _matern(levels: ArrayLike, length: float) -> Floats:
    at = np.asarray(levels, np.float64)
    distance = math.sqrt(3) / length * np.abs(at[:, None] - at) / (at[-1] - at[0])
    kernel: Floats = (1 + distance) * np.exp(-distance)
    return kernel


def _root(kernel: Floats) -> Floats:
    """Return a root of E_j: 0 at the first level, of mean variance 1 over all others."""
    levels = len(kernel)
    kernel = kernel - np.outer(kernel[0], kernel[0])
    kernel *= (levels - 1) / np.trace(kernel)
    values, vectors = np.linalg.eigh(kernel[1:, 1:])
    root = np.zeros((levels, levels - 1))
    root[1:] = vectors[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0))
    return root
