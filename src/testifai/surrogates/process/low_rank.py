"""A surface over more tests than a covariance matrix can hold: the prior's largest effects, and a remainder per test.

On the scale of eta, the prior of `kernel` is a sum of products of the axes' eigenvectors (Mercer). The products of
largest variance are kept, a few hundred to a thousand weights learned from all tests; the others add independent
variance to each test, so that every test keeps its prior variance. Trials count as if each had its own input, but for
one offset that all tests share: the inputs used may be easier or harder than all inputs.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from testifai.support.types import Floats
from testifai.surrogates.process.grid import GridIndex
from testifai.surrogates.process.kernel import CONSTANT, Prior, inside
from testifai.surrogates.process.linear_algebra import Ints, cholesky, chunks, explained_root, solve
from testifai.surrogates.process.outlier_tests import OutlierTests, find_outliers

MOST_EFFECTS = 1_200
CANDIDATES = 200_000  # effects of one order that are considered
ROUNDS = 3  # of Fisher scoring


class Effects:
    """The prior's effects of largest variance, the constant first."""

    def __init__(self, prior: Prior, parameters: Floats, most: int = MOST_EFFECTS) -> None:
        self._active = prior.active
        self._vectors: list[Floats] = []
        widest = max((prior.sizes[j] - 1 for j in prior.active), default=0)
        variances, unrelated = np.zeros((2, len(prior.active), widest))
        for at, (j, kernel) in enumerate(zip(prior.active, prior.axes(parameters), strict=True)):
            levels = prior.sizes[j]
            found, vectors = np.linalg.eigh(kernel.table)
            # Centred kernels do not contain the constant: its eigenvalue, 0, is the smallest.
            self._vectors.append(vectors[:, :0:-1] * math.sqrt(levels))
            variances[at, : levels - 1] = np.maximum(found[:0:-1], 0) / levels
            unrelated[at, : levels - 1] = 1 / (levels - 1)
        self._starts = np.cumsum([0, *(vectors.shape[1] for vectors in self._vectors)])[:-1]
        smooth, rough = prior.weights(parameters)
        groups = []
        for order in range(1, prior.orders + 1):
            axes, which = _candidates(len(prior.active), order, widest)
            if len(axes):
                size = smooth[order] * variances[axes, which].prod(axis=1)
                size += rough[order] * unrelated[axes, which].prod(axis=1)
                groups.append((axes, which, size))
        self._sequences, scales = prior.sequences, parameters[prior.order]
        ordered = np.zeros(0) if self._sequences is None else self._sequences.typical(scales)
        sizes = np.concatenate([*(size for _, _, size in groups), ordered])
        least = np.sort(sizes)[-most] if len(sizes) > most else 0.0
        self._groups = [
            (self._starts[axes[kept]] + which[kept], np.sqrt(size[kept]))
            for axes, which, size in groups
            if (kept := (size >= least) & (size > 0)).any()
        ]
        self._ordered = np.flatnonzero(ordered >= least)
        if self._sequences is not None:
            self._ordered_sd = np.sqrt(self._sequences.variances(scales)[self._ordered])

    def __call__(self, places: Ints) -> Floats:
        parts = [np.full((len(places), 1), math.sqrt(CONSTANT))]
        lifted = [vectors[places[:, j]] for j, vectors in zip(self._active, self._vectors, strict=True)]
        table = np.concatenate(lifted, axis=1) if lifted else np.empty((len(places), 0))
        for columns, sd in self._groups:
            product = table[:, columns[:, 0]] * sd
            for column in columns.T[1:]:
                product *= table[:, column]
            parts.append(product)
        if self._sequences is not None:
            parts.append(self._sequences.features(places)[:, self._ordered] * self._ordered_sd)
        return np.concatenate(parts, axis=1)


def _candidates(axes: int, order: int, widest: int) -> tuple[Ints, Ints]:
    """Return sets of axes and an eigenvector of each: the first ones of too many, none of an order too large."""
    sets = math.comb(axes, order)
    each = min(widest, int((CANDIDATES / max(sets, 1)) ** (1 / order)))
    if each < 1:
        return np.empty((0, order), np.intp), np.empty((0, order), np.intp)
    chosen = np.array(list(itertools.combinations(range(axes), order)), np.intp)
    which = np.indices((each,) * order).reshape(order, -1).T
    return np.repeat(chosen, len(which), axis=0), np.tile(which, (sets, 1))


@dataclass(frozen=True)
class SeenTests:
    places: Ints
    won: Floats
    tried: Floats
    inputs: Floats | float  # in the population of interest; counted as the trials are
    offset: float


class LowRankPosterior:
    def __init__(self, prior: Prior, parameters: Floats, seen: SeenTests, level: float) -> None:
        self._prior, self._parameters, self._level, self._seen = prior, parameters, level, seen
        self._effects = Effects(prior, parameters)
        self.numbered = GridIndex(seen.places, prior.sizes, ordered=prior.ordered)
        self._noise = 0.25 / seen.tried
        effects = np.concatenate([self._effects(seen.places[some]) for some in chunks(len(seen.places))])
        self._own = self._rest(seen.places, effects)
        self._learn(effects, 0.0)
        self.outliers = self._outlier_tests(effects)
        if self.outliers.any_likely:  # these are hardly informative
            self._learn(effects, self.outliers.off)
            self.outliers = self._outlier_tests(effects)

    def values(self, places: Ints) -> tuple[Floats, Floats]:
        eta, variance = np.empty(len(places)), np.empty(len(places))
        for some in chunks(len(places)):
            effects = self._effects(places[some])
            eta[some] = self._level + effects @ self._weights
            variance[some] = self._explained(effects)
            test = self.numbered(places[some])
            rest, gain = self._rest(places[some], effects), np.where(test >= 0, self._gain[test], 0)
            eta[some] += gain * (self._values[test] - eta[some])
            variance[some] = (1 - gain) ** 2 * variance[some] + np.where(test >= 0, self._left[test], rest)
        return eta, variance + self._seen.offset

    def along(self, places: Ints, weights: Floats) -> Floats:
        total = sum((self._effects(places[some]).T @ weights[some] for some in chunks(len(places))), np.zeros(()))
        solved = solve(self._factor, np.asarray(total))
        along = np.concatenate([self._effects(places[some]) @ solved for some in chunks(len(places))])
        return np.asarray(along + self._apart(places)[:, None] * weights + self._seen.offset * weights.sum(axis=0))

    def covariance(self, places: Ints) -> Floats:
        spent = explained_root(self._factor, self._effects(places)).T
        return np.asarray(spent @ spent.T + np.diag(self._apart(places)) + self._seen.offset)

    def _apart(self, places: Ints) -> Floats:
        test = self.numbered(places)
        rest = np.concatenate([self._rest(places[some], self._effects(places[some])) for some in chunks(len(places))])
        return np.where(test >= 0, self._left[test], rest)

    def _learn(self, effects: Floats, off: Floats | float) -> None:
        """Learn the weights by Fisher scoring; only the values change from round to round, not their variances."""
        own, tried = self._own, self._seen.tried
        spread = self._noise + own + off
        precision = np.eye(effects.shape[1])
        for some in chunks(len(effects)):
            scaled = effects[some] / np.sqrt(spread[some])[:, None]
            precision += scaled.T @ scaled
        self._factor = cholesky(precision)
        self._gain = own / spread
        self._left = self._gain * (self._noise * (1 - tried / self._seen.inputs) + off)
        eta = np.full(len(own), self._level)
        for _ in range(ROUNDS):
            at = inside(eta)
            self._values = at + (self._seen.won / tried - np.sin(at) ** 2) / np.sin(2 * at)
            self._weights = solve(self._factor, effects.T @ ((self._values - self._level) / spread))
            surface = self._level + effects @ self._weights
            eta = surface + self._gain * (self._values - surface)
        self._spread, self._surface = spread, surface

    def _outlier_tests(self, effects: Floats) -> OutlierTests:
        variance = np.concatenate([self._explained(effects[some]) for some in chunks(len(effects))])
        leverage = np.minimum(variance / self._spread, 1 - 1e-9)
        predicted = (self._surface - leverage * self._values) / (1 - leverage)
        seen, spread = self._seen, variance / (1 - leverage) + self._own
        return find_outliers(predicted, spread, seen.won, seen.tried, seen.inputs)

    def _rest(self, places: Ints, effects: Floats) -> Floats:
        left: Floats = self._prior.variance(self._parameters, places) - (effects**2).sum(axis=1)
        return np.maximum(left, 1e-9)

    def _explained(self, effects: Floats) -> Floats:
        return np.asarray((explained_root(self._factor, effects).T ** 2).sum(axis=1))
