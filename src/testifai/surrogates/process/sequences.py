"""The part of the `process` prior that knows in which order perturbations are applied.

With p_ab(s) = 1 where a is applied before b, -1 where after it, and 0 where one of them is off,

    k(s, t) = sum_(a < b) q_a q_b p_ab(s) p_ab(t) E_a(s, t) E_b(s, t) + r [same sequence of three or more] prod_j E_j(s, t).

E_j is a Matern-3/2 kernel over the levels of an axis given that nothing is there at level 0: what an order changes grows
with both severities. The first sum is what one perturbation before another one does; the second what all of them
together do beyond that. The scales q_j and r are learned, and small where the order makes no difference.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

LENGTH = 1.2  # correlation length; an axis is 1 long
SHARED = 3  # perturbations from which on a sequence has something of its own


class Sequences:
    """What the order of application adds to the covariance, given the logarithms of the q_j and of r.

    Configurations are rows of levels, by their places on the axes, and of the places at which these are applied.

    >>> sequences = Sequences([[0, 1, 2], [0, 1]], active=[0, 1])
    >>> both, rows = [[2, 1, 1, 2], [2, 1, 2, 1]], [[2, 1, 1, 2], [2, 0, 1, 0]]
    >>> sequences.kernel(np.zeros(3), np.array(both), np.array(rows)).round(2).tolist()
    [[1.38, 0.0], [-1.38, 0.0]]
    """

    def __init__(self, levels: Sequence[Sequence[int]], active: Sequence[int]) -> None:
        self._axes, self._active = len(levels), list(active)
        self._roots = {j: _root(np.asarray(levels[j], np.float64)) for j in active}
        self._pairs = list(itertools.combinations(range(len(self._active)), 2))
        widths = [self._roots[j].shape[1] for j in self._active]
        sizes = [widths[a] * widths[b] for a, b in self._pairs]
        # Which two scales each feature has.
        self._scales = np.repeat(np.array(self._pairs, np.intp).reshape(-1, 2), sizes, axis=0)

    @property
    def count(self) -> int:
        """The number of parameters."""
        return len(self._active) + 1

    def variances(self, parameters: Floats) -> Floats:
        """The prior variance of each feature's weight."""
        return np.asarray(np.exp(parameters[self._scales].sum(axis=1)))

    def typical(self, parameters: Floats) -> Floats:
        """What each feature adds to the variance of configurations with both axes on, on average."""
        means = [(self._roots[j][1:] ** 2).mean(axis=0) for j in self._active]
        products = [np.multiply.outer(means[a], means[b]).ravel() for a, b in self._pairs]
        return self.variances(parameters) * np.concatenate([np.empty(0), *products])

    def features(self, rows: Ints) -> Floats:
        """What the precedence of each pair of axes multiplies, a row for each configuration."""
        parts = [np.empty((len(rows), 0))]
        for at, other in self._pairs:
            a, b = self._active[at], self._active[other]
            one, two = self._roots[a][rows[:, a]], self._roots[b][rows[:, b]]
            product = (one[:, :, None] * two[:, None, :]).reshape(len(rows), -1)
            parts.append(self._before(rows, a, b)[:, None] * product)
        return np.concatenate(parts, axis=1)

    def kernel(self, parameters: Floats, rows: Ints, columns: Ints) -> Floats:
        """The covariance between configurations."""
        left = self.features(rows) * self.variances(parameters)
        total: Floats = left @ (self.features(columns)).T
        return total + math.exp(parameters[-1]) * self.same(rows, columns)

    def variance(self, parameters: Floats, rows: Ints) -> Floats:
        """The variance of configurations."""
        shared = self._order(rows) >= SHARED
        own = np.prod([np.where(rows[:, j] > 0, self._own[j][rows[:, j]], 1.0) for j in self._active], axis=0)
        return np.asarray(self.features(rows) ** 2 @ self.variances(parameters) + math.exp(parameters[-1]) * shared * own)

    def gradient(self, parameters: Floats, by_covariance: Floats, features: Floats, same: Floats) -> Floats:
        """From the derivative by the covariance of configurations to that by the parameters."""
        slope = np.zeros(self.count)
        by_feature = self.variances(parameters) * ((by_covariance @ features) * features).sum(axis=0)
        for side in self._scales.T:
            slope[:-1] += np.bincount(side, by_feature, self.count - 1)
        slope[-1] = math.exp(parameters[-1]) * np.vdot(by_covariance, same)
        return slope

    def same(self, rows: Ints, columns: Ints) -> Floats:
        """The product of the E_j of configurations that apply the same three or more perturbations in the same order."""
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
        """Levels with an order of application drawn for each row."""
        off = places == 0
        # Those that are off come last, and have no place.
        place = np.argsort(np.argsort(random.random(places.shape) + off, axis=1), axis=1) + 1
        return np.concatenate([places, np.where(off, 0, place)], axis=1).astype(np.intp)

    def _before(self, rows: Ints, a: int, b: int) -> Ints:
        return np.asarray(np.sign(rows[:, self._axes + b] - rows[:, self._axes + a]))

    def _order(self, rows: Ints) -> Ints:
        return np.asarray(np.count_nonzero(rows[:, self._active], axis=1))

    @cached_property
    def _own(self) -> dict[int, Floats]:
        """The diagonal of each E_j."""
        return {j: (root**2).sum(axis=1) for j, root in self._roots.items()}


def _root(levels: Floats) -> Floats:
    """A root of E_j: 0 at the first level, of mean variance 1 over all others."""
    distance = math.sqrt(3) / LENGTH * np.abs(levels[:, None] - levels) / (levels[-1] - levels[0])
    kernel = (1 + distance) * np.exp(-distance)
    kernel -= np.outer(kernel[0], kernel[0])
    kernel *= (len(levels) - 1) / np.trace(kernel)
    values, vectors = np.linalg.eigh(kernel[1:, 1:])
    root = np.zeros((len(levels), len(levels) - 1))
    root[1:] = vectors[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0))
    return root
