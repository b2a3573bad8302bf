"""Rates of higher orders from those of orders 0 to 2: the Kirkwood product, a log-linear model with two-way terms."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from testifai.errors import InputError
from testifai.runs.outcomes import Trials
from testifai.support.types import Bools, Floats
from testifai.surrogates.base import PlainSurrogate, are_numbered, in_chunks, selected

Rows = NDArray[np.intp]

USUAL_INTERACTION = 0.5  # log-linear, assumed if no pair was measured
MOST_CORRELATED = 4_000  # measured tests up to which the covariance of their errors is used: 128 MB
CHUNK = 4_000_000  # numbers in a chunk of predictions


class Pairwise(PlainSurrogate):
    """The Kirkwood product: no interaction of three or more perturbations.

    With l = log r, a test of order t has l = Σ_{i<j} l_ij - (t - 2) Σ_i l_i + (t - 1)(t - 2)/2 l_0: for three
    perturbations r_ij r_jk r_ik r_0 / (r_i r_j r_k), for fewer the measured rate itself. An unmeasured pair is taken as
    independent, and a severity that was not measured alone is interpolated, with a larger variance.

    Variances are the sum of that of the measured rates, by the delta method (with single outcomes it accounts for
    shared inputs), and of the model's: the ratio of three-way to two-way terms is that of two-way to one-way terms.
    """

    name = "pairwise"

    def fit(self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike, *, single: Trials | None = None) -> Self:
        self.measured_ = LogRates.of(self.name, self.levels, features, passes, trials, single, most_order=2)
        return self

    def predict(self, features: ArrayLike) -> tuple[Floats, Floats]:
        return self.measured_.predict(features, self.measured_.kirkwood)


@dataclass(frozen=True)
class Terms:
    """Log rates of configurations as sums of weighted log rates of measured tests.

    Configuration c is Σ_q weights[c, q] · log rate of test tests[c, q]; `extra` is the variance of omitted terms.
    """

    tests: Rows
    weights: Floats
    extra: Floats

    def __add__(self, other: Terms) -> Terms:
        tests, weights = np.hstack([self.tests, other.tests]), np.hstack([self.weights, other.weights])
        return Terms(tests, weights, self.extra + other.extra)


class LogRates:
    def __init__(self, features: NDArray[np.int64], logs: Floats, noise: Floats) -> None:
        self.features, self.logs, self.noise = features, logs, noise  # noise: variances or covariance
        active = features > 0
        orders = active.sum(axis=1)
        self.axes = features.shape[1]
        self.clean = int(np.flatnonzero(orders == 0)[0])
        self._severities = [np.unique(column) for column in features.T]
        self._alone = [self._single_axis(j, np.flatnonzero((orders == 1) & active[:, j])) for j in range(self.axes)]
        self._joint = {
            (i, j): self._table(i, j, np.flatnonzero((orders == 2) & active[:, i] & active[:, j]))
            for i, j in itertools.combinations(range(self.axes), 2)
        }
        self._squares, self.decay = self._interactions()

    @classmethod
    def of(
        cls,
        who: str,
        levels: Sequence[Any] | None,
        features: ArrayLike,
        passes: ArrayLike,
        trials: ArrayLike,
        single: Trials | None,
        most_order: int | None = None,
    ) -> LogRates:
        rows = severities(who, levels, features)
        won, tried = np.asarray(passes, np.float64), np.asarray(trials, np.float64)
        used = (tried > 0) & (np.count_nonzero(rows, axis=1) <= (rows.shape[1] if most_order is None else most_order))
        active = rows[used] > 0
        orders = active.sum(axis=1)
        accepted = "accepted: runs that measure the clean test and first-order tests of every axis, such as 'ordered'"
        if not (orders == 0).any():
            raise InputError(f"surrogate: {who!r} needs the clean test, which was not measured; {accepted}")
        missing = np.flatnonzero(~active[orders == 1].any(axis=0))
        if len(missing):
            axes = ", ".join(str(j + 1) for j in missing)
            raise InputError(f"surrogate: {who!r} has no first-order test of axis {axes}; {accepted}")
        rate = won[used] / tried[used]
        # A rate of zero has no logarithm: half a pass is hardly distinguishable from none.
        floored = np.maximum(rate, 0.5 / tried[used])
        smooth = (won[used] + 0.5) / (tried[used] + 1)
        binomial = (1 - smooth) / (smooth * tried[used])
        noise = binomial
        if single is not None and used.sum() <= MOST_CORRELATED:
            noise = _covariance(single, np.flatnonzero(used), len(rows), rate, floored)
            constant = (rate == 0) | (rate == 1)  # a sample variance of 0 is not informative
            noise[constant, constant] += binomial[constant]
        return cls(rows[used], np.log(floored), noise)

    def predict(self, features: ArrayLike, terms: Callable[[NDArray[np.int64]], Terms]) -> tuple[Floats, Floats]:
        rows = np.asarray(features, np.int64)
        if rows.size == 0:
            rows = rows.reshape(0, self.axes)
        if rows.ndim != 2 or rows.shape[1] != self.axes:
            raise InputError(f"features: shape {rows.shape}; accepted: rows of {self.axes} severities")
        size = max(1, CHUNK // max(len(self.logs), self.axes**2))
        return in_chunks(lambda part: self._rates(terms(part)), rows, size)

    def kirkwood(self, rows: NDArray[np.int64]) -> Terms:
        """Return the terms of configurations: pairs, single perturbations and the clean test.

        l = l_0 + Σ_i u_i + Σ_{i<j} d_ij with u_i = l_i - l_0 and d_ij = l_ij - l_0 - u_i - u_j, the last sum over the
        measured pairs. The size of omitted interactions of three and more is estimated by Σ |d_ij| times `decay`.
        """
        active = rows > 0
        orders = active.sum(axis=1)
        alone, clean = active.astype(np.float64), 1.0 - orders
        extra, reach = np.zeros(len(rows)), np.zeros(len(rows))
        tests, weights = [], []
        for i, j in self._joint:
            if not (active[:, i] & active[:, j]).any():
                continue
            found, known, interaction, doubt = self._pair(i, j, rows)
            tests.append(found)
            weights.append(known.astype(np.float64))
            alone[:, i] -= known
            alone[:, j] -= known
            clean += known
            reach += np.abs(interaction)
            extra += doubt
        extra += np.where(orders > 2, (self.decay * reach) ** 2, 0)
        for j in range(self.axes):
            below, above, share, doubt = self._between(j, rows[:, j])
            tests += [below, above]
            weights += [alone[:, j] * (1 - share), alone[:, j] * share]
            extra += alone[:, j] ** 2 * doubt
        tests.append(np.full(len(rows), self.clean, np.intp))
        weights.append(clean)
        return Terms(np.stack(tests, axis=1), np.stack(weights, axis=1), extra)

    def apart(self, rows: NDArray[np.int64], pairs: Iterable[tuple[int, int]]) -> Floats:
        """Return the variance of taking these pairs of axes as independent: their interactions, in one direction."""
        reach, extra = np.zeros(len(rows)), np.zeros(len(rows))
        for i, j in pairs:
            _, _, interaction, doubt = self._pair(i, j, rows)
            reach += np.abs(interaction)
            extra += doubt
        return reach**2 + extra

    def _rates(self, terms: Terms) -> tuple[Floats, Floats]:
        count, width = terms.tests.shape
        ends = np.arange(0, count * width + 1, width)
        shape = (count, len(self.logs))
        weights = scipy.sparse.csr_array((terms.weights.reshape(-1), terms.tests.reshape(-1), ends), shape=shape)
        weights.sum_duplicates()
        mean = np.exp(np.minimum(weights @ self.logs, 0))
        if self.noise.ndim == 1:
            variance = weights.power(2) @ self.noise
        else:
            variance = np.asarray((weights * (weights @ self.noise)).sum(axis=1)).reshape(-1)
        # A variance above that of an unknown rate is impossible.
        return mean, np.minimum(mean**2 * (np.maximum(variance, 0) + terms.extra), 0.25)

    def _single_axis(self, j: int, tests: Rows) -> tuple[NDArray[np.int64], Rows]:
        ordered = tests[np.argsort(self.features[tests, j])]
        return np.append(0, self.features[ordered, j]), np.append(self.clean, ordered)

    def _table(self, i: int, j: int, tests: Rows) -> Rows:
        """Return a table from severity positions of two axes to the test that joins them, -1 if unmeasured."""
        table = np.full((len(self._severities[i]) + 1, len(self._severities[j]) + 1), -1, np.intp)
        where = self._position(i, self.features[tests, i]), self._position(j, self.features[tests, j])
        table[where] = tests
        return table

    def _position(self, j: int, values: NDArray[np.int64]) -> Rows:
        """Return the positions of severities among those of an axis; one past the end for others."""
        known = self._severities[j]
        position = np.searchsorted(known, values)
        return np.where(known[np.minimum(position, len(known) - 1)] == values, position, len(known))

    def _between(self, j: int, values: NDArray[np.int64]) -> tuple[Rows, Rows, Floats, Floats]:
        """Return the first-order tests on both sides of severities, the upper one's share, and the doubt's variance."""
        known, tests = self._alone[j]
        above = np.minimum(np.searchsorted(known, values), len(known) - 1)
        exact = known[above] == values
        inside = ~exact & (known[above] > values)
        below = np.where(exact, above, np.maximum(above - 1, 0))
        share = np.where(inside, (values - known[below]) / np.maximum(known[above] - known[below], 1), 1.0)
        step = self.logs[tests[above]] - self.logs[tests[below]]
        return tests[below], tests[above], share, np.where(exact, 0, step**2 * np.where(inside, 0.25, 1))

    def _effect(self, j: int, values: NDArray[np.int64]) -> Floats:
        below, above, share, _ = self._between(j, values)
        return np.asarray(self.logs[below] * (1 - share) + self.logs[above] * share - self.logs[self.clean])

    def _pair(self, i: int, j: int, rows: NDArray[np.int64]) -> tuple[Rows, Bools, Floats, Floats]:
        """Return the test that joins two axes, whether it was measured, d_ij if so, else its mean square as a doubt."""
        both = (rows[:, i] > 0) & (rows[:, j] > 0)
        found = self._joint[i, j][self._position(i, rows[:, i]), self._position(j, rows[:, j])]
        known = both & (found >= 0)
        found = np.where(known, found, self.clean)
        product = self.logs[self.clean] + self._effect(i, rows[:, i]) + self._effect(j, rows[:, j])
        doubt = np.where(both & ~known, self._squares[i, j], 0.0)
        return found, known, np.where(known, self.logs[found] - product, 0), doubt

    def _interactions(self) -> tuple[Floats, float]:
        """Return the mean square interaction per pair of axes (overall for unmeasured pairs), and `decay`."""
        squares = np.full((self.axes, self.axes), np.nan)
        one, two = [np.empty(0)], [np.empty(0)]
        for (i, j), table in self._joint.items():
            rows = self.features[table[table >= 0]]
            if len(rows):
                effects = self._effect(i, rows[:, i]) + self._effect(j, rows[:, j])
                one.append(effects)
                two.append(self.logs[table[table >= 0]] - self.logs[self.clean] - effects)
                squares[i, j] = squares[j, i] = np.mean(two[-1] ** 2)
        first, second = np.sum(np.concatenate(one) ** 2), np.sum(np.concatenate(two) ** 2)
        usual = second / sum(map(len, two)) if len(two) > 1 else USUAL_INTERACTION**2
        decay = np.sqrt(second / first) if second < first else 1.0
        return np.where(np.isnan(squares), usual, squares), float(decay if len(two) > 1 else USUAL_INTERACTION)


def severities(who: str, levels: Sequence[Any] | None, features: ArrayLike) -> NDArray[np.int64]:
    """Return features as rows of severities; raise InputError if they also contain the order of application."""
    rows = np.asarray(features, np.int64)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise InputError(f"features: shape {rows.shape}; accepted: one row of severities per configuration")
    # Never true for plain rows with first-order tests.
    ordered = bool(rows.any()) and are_numbered(rows)
    if ordered or (levels is not None and rows.shape[1] == 2 * len(levels)):
        raise InputError(f"surrogate: {who!r} takes no application orders; accepted: spaces without order_sensitive")
    if levels is not None and rows.shape[1] != len(levels):
        raise InputError(f"features: {rows.shape[1]} columns; accepted: {len(levels)}, one per axis")
    return rows


def dense(single: Trials, tests: Rows, count: int) -> tuple[Bools, Bools]:
    chosen = selected(single, tests, count)
    tried = np.zeros((single.inputs, len(tests)), bool)
    passed = np.zeros_like(tried)
    tried[chosen.place, chosen.test] = True
    passed[chosen.place, chosen.test] = chosen.passed
    return tried, passed


def _covariance(single: Trials, tests: Rows, count: int, rate: Floats, floored: Floats) -> Floats:
    """Return the covariance of the log rates over inputs: the sum over inputs of products of their influences.

    Input x changes log r_c by (y_xc - r_c) / (n_c r_c) where it was tried, independently of the other inputs.
    """
    tried, passed = dense(single, tests, count)
    scale = 1 / (np.maximum(tried.sum(axis=0), 1) * floored)
    total = np.zeros((len(tests), len(tests)))
    size = max(1, CHUNK // len(tests))
    for start in range(0, single.inputs, size):
        part = slice(start, start + size)
        influence = ((passed[part] - rate * tried[part]) * scale).astype(np.float32)
        total += influence.T @ influence
    return total
