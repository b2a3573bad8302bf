"""The correlation of outcomes of one input under several tests, and the information of correlated trials.

Every trial gives a pseudo-value e = eta_0 + (z - sin^2 eta_0) / sin(2 eta_0) of eta = arcsin sqrt(rate), with
variance 1/4 whatever the rate. Those of one input have covariance R/4; different inputs are independent. For what
follows, all trials together count as one value per test, with precision matrix P and P times those values, `score`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from testifai.runs.outcomes import Trials
from testifai.support.types import Floats
from testifai.surrogates.base import trials_at
from testifai.surrogates.process.kernel import EDGE, inside
from testifai.surrogates.process.linear_algebra import Ints, contracted, inverse

NEAR = 0.12  # distance in eta within which tests have similar dispersion
POOLED = 30.0  # weight, in trials, of the overall dispersion
UNSEEN = 3.0  # weight, in trials, of the dispersion of passes and failures: equal trials may be followed by others
LEAST_LEFT = 0.05
KNOTS = np.linspace(EDGE, np.pi / 2 - EDGE, 60)
TERMS = 8  # of the Hermite expansion; the next ones matter only for correlations near 1
PAIRS = 100_000  # of trials of the same input, enough to fit a few numbers
# Sum of cubed tests per input beyond which inputs are used through means per test: 70 tests on each of 10,000 inputs
# take some two seconds.
WORK = 10_000 * 70**3
SURE = 10_000  # pairs that determine their correlation well enough
CHUNK = 4_000_000  # matrix entries in a chunk
LOOPED = 24  # least size of blocks that are inverted one by one: slower to call, but half the work

Singles = NDArray[np.float32]


@dataclass(frozen=True)
class Dispersion:
    """The relative variance phi of trials, by the mean of their test."""

    values: Floats  # at KNOTS; 1 for passes and failures

    @classmethod
    def of(cls, eta: Floats, scores: Floats, left: Floats) -> Dispersion:
        """Learn from trials, the eta of each one's test, and the share of variance that the surface leaves."""
        squares = ((scores - np.sin(eta) ** 2) / (np.sin(2 * eta) / 2)) ** 2 / np.maximum(left, LEAST_LEFT)
        pooled = (squares.sum() + UNSEEN) / (len(squares) + UNSEEN)
        # There may be millions of trials: sum them at knots first.
        at = np.searchsorted((KNOTS[1:] + KNOTS[:-1]) / 2, eta)
        count, total = np.bincount(at, minlength=len(KNOTS)), np.bincount(at, squares, len(KNOTS))
        near = np.exp(-0.5 * ((KNOTS[:, None] - KNOTS) / NEAR) ** 2)
        found = (near @ total + POOLED * pooled + UNSEEN) / (near @ count + POOLED + UNSEEN)
        return cls(np.minimum(found, 1.0))

    def __call__(self, rates: Floats) -> Floats:
        return np.interp(inside(np.arcsin(np.sqrt(np.clip(rates, 0, 1)))), KNOTS, self.values)

    def terms(self, rates: Floats) -> Floats:
        """Return the dispersion as in `hermite`: scores of one input are correlated as their latent values."""
        terms = np.zeros((TERMS, len(rates)))
        terms[0] = np.sqrt(self(rates))
        return terms


@dataclass(frozen=True)
class SameInput:
    """The latent correlation a (c + (1 - c) exp(-sum_j |t_j - t_j'|)) of one input under two configurations."""

    strength: float  # a
    common: float  # c
    positions: tuple[Floats, ...]  # t_j of the levels of each axis

    @classmethod
    def of(cls, parameters: Floats, sizes: Sequence[int]) -> SameInput:
        """Convert unbounded parameters: of strength, common, and the steps between levels of axes of these sizes."""
        strength, common = 0.98 / (1 + np.exp(-parameters[:2]))
        ends = np.cumsum([size - 1 for size in sizes])
        steps = np.split(np.exp(parameters[2:]), ends[:-1])
        return cls(float(strength), float(common), tuple(np.r_[0.0, np.cumsum(axis)] for axis in steps))

    def correlation(self, rows: Ints, columns: Ints, left: Floats, right: Floats) -> Floats:
        """Return R, from places and Hermite coefficients; the caller must set the diagonal to 1."""
        latent = np.zeros((len(rows), len(columns)))
        for levels, a, b in zip(self.positions, rows.T, columns.T, strict=True):
            latent -= np.abs(levels[a][:, None] - levels[b])
        np.exp(latent, out=latent)
        latent *= self.strength * (1 - self.common)
        latent += self.strength * self.common
        total = np.zeros_like(latent)
        for a, b in zip(left[::-1], right[::-1], strict=True):
            total += np.outer(a, b)
            total *= latent
        return total

    def times(self, coefficients: Floats, weights: Floats) -> Floats:
        """Return R times a vector over all configurations of the grid, with these Hermite coefficients.

        A power of the latent correlation is, by the binomial theorem, a sum of Kronecker products over the axes.
        """
        sizes = [len(levels) for levels in self.positions]
        own = (self.strength ** np.arange(1, len(coefficients) + 1)) @ coefficients**2
        total = (1 - own) * weights
        for times in range(len(coefficients) + 1):
            decays = [np.exp(-times * np.abs(levels[:, None] - levels)) for levels in self.positions]
            powers = np.arange(max(times, 1), len(coefficients) + 1)
            rows = coefficients[powers - 1]
            share = self.strength**powers * np.array([math.comb(n, times) for n in powers.tolist()])
            share *= self.common ** (powers - times) * (1 - self.common) ** times
            spread = contracted((rows * weights).reshape(-1, *sizes), decays).reshape(rows.shape)
            total += np.einsum("n,ni,ni->i", share, rows, spread)
        return total


def thinned(single: Trials, most: Floats) -> Trials:
    """Keep at most this many trials of each test, those of the first inputs in the run's random order."""
    order = np.lexsort((single.place, single.test))
    count = np.bincount(single.test, minlength=len(most))
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count)
    return trials_at(single, np.flatnonzero(rank < most[single.test]))


def hermite(rates: Floats) -> Floats:
    """Return coefficients g_n, a row each, with corr(z, z') = sum_n rho^n g_n g_n' for latent correlation rho.

    The tetrachoric series (Pearson 1900): z = [latent normal > h] has g_n = phi(h) He_(n-1)(h) / sqrt(n! r (1-r)).
    """
    h = -scipy.special.ndtri(rates)
    polynomials = np.ascontiguousarray(np.polynomial.hermite_e.hermevander(h, TERMS - 1).T)
    factorials = np.cumprod(np.arange(1.0, TERMS + 1))
    density = np.exp(-(h**2) / 2) / np.sqrt(2 * np.pi * rates * (1 - rates))
    return np.asarray(polynomials * density / np.sqrt(factorials)[:, None])


def fit_same_input(
    single: Trials, residuals: Floats, places: Ints, coefficients: Floats, sizes: Sequence[int], seed: int
) -> Floats:
    """Fit the parameters of `SameInput` by penalised least squares on products of two residuals of the same input."""
    first, second = _pairs(single, seed)
    products = residuals[first] * residuals[second]
    one, two = single.test[first], single.test[second]
    crossed = _crossed(places[one], places[two], sizes)
    pairs = coefficients[:, one] * coefficients[:, two]
    start = np.r_[1.0, 0.0, [-np.log(size - 1) for size in sizes for _ in range(size - 1)]]

    def loss(parameters: Floats) -> tuple[float, Floats]:
        strength, common = 0.98 / (1 + np.exp(-parameters[:2]))
        steps = np.exp(parameters[2:])
        decay = np.exp(-(crossed @ steps))
        shape = common + (1 - common) * decay
        latent = strength * shape
        value, slope = pairs[-1] * latent, pairs[-1].copy()  # Horner, with the derivative
        for row in pairs[-2::-1]:
            value += row
            slope = slope * latent + value
            value *= latent
        error = value - products
        by_latent = error * slope
        by_steps = -strength * (1 - common) * steps * ((by_latent * decay) @ crossed)
        gradient = np.r_[
            by_latent @ shape * strength * (1 - strength / 0.98),
            by_latent @ (1 - decay) * strength * common * (1 - common / 0.98),
            by_steps,
        ]
        pull = parameters - start
        return 0.5 * float(error @ error + pull @ pull), gradient + pull

    bounds = [(-6, 6)] * len(start)
    options = {"maxiter": 40}
    found = scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.asarray(found.x)


def _crossed(one: Ints, two: Ints, sizes: Sequence[int]) -> Floats:
    """Return which steps between neighbouring levels are between two configurations, a column for each step."""
    columns = [
        (np.minimum(one[:, j], two[:, j]) <= step) & (step < np.maximum(one[:, j], two[:, j]))
        for j, size in enumerate(sizes)
        for step in range(size - 1)
    ]
    return np.array(columns, np.float64).reshape(len(columns), len(one)).T


def _pairs(single: Trials, seed: int) -> tuple[Ints, Ints]:
    rng = np.random.default_rng(seed)
    some = np.arange(len(single.place))
    if len(some) > 2 * PAIRS:  # the trials of a part of the inputs suffice
        kept = rng.random(single.inputs) < 2 * PAIRS / len(some)
        some = np.flatnonzero(kept[single.place])
    order = some[np.lexsort((rng.permutation(len(some)), single.place[some]))]
    place = single.place[order]
    first, second, found = [], [], 0
    for gap in range(1, len(order)):
        at = np.flatnonzero(place[gap:] == place[:-gap])
        if not len(at) or found >= PAIRS:
            break
        first.append(order[at])
        second.append(order[at + gap])
        found += len(at)
    none = np.empty(0, np.intp)
    return np.concatenate([none, *first])[:PAIRS], np.concatenate([none, *second])[:PAIRS]


class Independent:
    """The information of trials of variance 1 about the values of the tests, if each has its own input."""

    sure = False

    def __init__(self, test: Ints, weight: Floats, tests: int) -> None:
        self._test, self.weight, self._tests = test, weight, tests
        self.trials: Floats = np.bincount(test, weight, tests).astype(np.float64)

    def covariance(self) -> Floats:
        return np.diag(1 / self.trials)

    def score(self, deviations: Floats) -> Floats:
        return np.bincount(self._test, self.weight * deviations, self._tests).astype(np.float64)


class Information:
    """The information of single trials of variance 1 about the values of the tests, given R: a precision matrix P."""

    def __init__(self, single: Trials, tests: int, correlation: Floats) -> None:
        self._order = np.argsort(single.place, kind="stable")
        self._test = single.test[self._order]
        tried = np.bincount(single.place)
        self._tests = tests
        self.weight = np.ones(len(single.test))
        self.trials: Floats = np.bincount(single.test, minlength=tests).astype(np.float64)
        self.sure = float((tried * (tried - 1) / 2).sum()) > SURE  # of their correlation
        self.precision = np.zeros((tests, tests))
        self._groups: list[tuple[Ints, Singles]] = []  # trials of inputs with equally many, and their inverse blocks
        self._means = float((tried.astype(float) ** 3).sum()) > WORK
        if self._means:
            self._add_means(single, correlation)
        else:
            starts = np.cumsum(tried) - tried
            table = correlation.astype(np.float32).ravel()
            for count in np.unique(tried[tried > 0]):
                self._add_inputs(starts[tried == count], int(count), table)

    def _add_inputs(self, starts: Ints, count: int, correlation: Singles) -> None:
        """Add Σ_x S_x' B_x S_x to P, with B_x = (S_x R S_x')^-1, over the inputs x that have `count` trials.

        S_x selects the tests t_1, …, t_count of x: entry (i, j) of B_x is added to P at (t_i, t_j). As B_x is
        symmetric, only its entries with i >= j are added up, those with i = j halved: with L their sum, P += L + L'.
        """
        row, column = np.tril_indices(count)
        lower = row * count + column  # of these entries in a flat block
        halving = np.where(row == column, 0.5, 1.0).astype(np.float32)
        for some in np.array_split(starts, 1 + len(starts) * count**2 // CHUNK):
            trials = some[:, None] + np.arange(count)
            tests = self._test[trials]
            cells = tests[:, :, None] * self._tests + tests[:, None, :]  # (t_i, t_j) in flat P
            blocks = _inverses(correlation.take(cells))
            entries = blocks.reshape(len(some), -1).take(lower, axis=1) * halving
            goals = cells.reshape(len(some), -1).take(lower, axis=1)
            half = np.bincount(goals.ravel(), entries.ravel(), self._tests**2).reshape(self.precision.shape)
            self.precision += half
            self.precision += half.T
            self._groups.append((trials, blocks))

    def _add_means(self, single: Trials, correlation: Floats) -> None:
        """Use one mean per test; means of two tests share the inputs that both were tried on."""
        tried, column = np.unique(single.place, return_inverse=True)
        table = np.zeros((self._tests, len(tried)), np.float32)
        table[single.test, column] = 1
        used = np.flatnonzero(self.trials)
        trials = self.trials[used]
        shared = (table[used] @ table[used].T).astype(np.float64)
        covariance = shared / np.outer(trials, trials) * correlation[np.ix_(used, used)]
        self.precision[np.ix_(used, used)] = scipy.linalg.inv(covariance, check_finite=False)

    def covariance(self) -> Floats:
        return inverse(scipy.linalg.lapack.dpotrf(self.precision, lower=1)[0])

    def score(self, deviations: Floats) -> Floats:
        """Return P times the tests' values, from the trials' standardised deviations."""
        ordered = deviations[self._order]
        if self._means:
            means = np.bincount(self._test, ordered, self._tests) / np.maximum(self.trials, 1)
            return np.asarray(self.precision @ means)
        total = np.zeros(self._tests)
        for trials, blocks in self._groups:
            solved = (blocks @ ordered[trials][:, :, None].astype(np.float32))[:, :, 0]
            total += np.bincount(self._test[trials].ravel(), solved.ravel(), self._tests)
        return total


def _inverses(blocks: Singles) -> Singles:
    lapack, count = scipy.linalg.lapack, blocks.shape[-1]
    if count < LOOPED:
        return np.linalg.inv(blocks)
    for block in blocks:
        # The transpose is in Fortran's order, so that LAPACK works in place and fills the upper triangle.
        lapack.spotri(lapack.spotrf(block.T, lower=1, overwrite_a=1, clean=0)[0], lower=1, overwrite_c=1)
    upper = np.triu(np.ones((count, count), bool))
    return np.where(upper, blocks, blocks.transpose(0, 2, 1))
