"""Outcomes of one input under several tests hang together: how much, and what the trials then say about the surface.

Every trial gives a pseudo-value e = eta_0 + (z - sin^2 eta_0) / sin(2 eta_0) of eta = arcsin sqrt(rate), with
variance 1/4 whatever the rate. Those of one input have covariance R/4; different inputs are independent. For what
follows, all trials together count as one value per test, with precision matrix P and P times those values, `score`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testifai.surrogates.base import Trials

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

TERMS = 8  # of the Hermite expansion; the next ones matter only for correlations near 1
PAIRS = 100_000  # of trials of the same input, enough to fit a handful of numbers
EACH = 70  # inputs tried on more tests than this are used through means per test
CHUNK = 4_000_000  # matrix entries at a time


@dataclass(frozen=True)
class SameInput:
    """The latent correlation a (c + (1 - c) exp(-sum_j s_j |t_j - t_j'|)) of one input under two configurations."""

    strength: float  # a
    common: float  # c
    scales: Floats  # s_j

    def correlation(self, rows: Floats, columns: Floats, left: Floats, right: Floats) -> Floats:
        """R, from positions and Hermite coefficients; 1 for a configuration with itself must be set by the caller."""
        latent = np.zeros((len(rows), len(columns)))
        for scale, a, b in zip(self.scales, rows.T, columns.T, strict=True):
            latent -= scale * np.abs(a[:, None] - b)
        np.exp(latent, out=latent)
        latent *= self.strength * (1 - self.common)
        latent += self.strength * self.common
        total = np.zeros_like(latent)
        for a, b in zip(left[::-1], right[::-1], strict=True):
            total += np.outer(a, b)
            total *= latent
        return total


def hermite(rates: Floats) -> Floats:
    """Coefficients g_n, a row each, with corr(z, z') = sum_n rho^n g_n g_n' for latent correlation rho.

    The tetrachoric series (Pearson 1900): z = [latent normal > h] has g_n = phi(h) He_(n-1)(h) / sqrt(n! r (1-r)).

    >>> g = hermite(np.array([0.5]))[:, 0]
    >>> float((0.5 ** np.arange(1, 9) * g**2).sum().round(3)), float(round(2 / np.pi * np.arcsin(0.5), 3))
    (0.333, 0.333)
    """
    from scipy.special import ndtri

    h = -ndtri(rates)
    polynomials = [np.ones_like(h), h]
    for n in range(2, TERMS):
        polynomials.append(h * polynomials[-1] - (n - 1) * polynomials[-2])
    factorials = np.cumprod(np.arange(1.0, TERMS + 1))
    density = np.exp(-(h**2) / 2) / np.sqrt(2 * np.pi * rates * (1 - rates))
    coefficients: Floats = np.array(polynomials[:TERMS]) * density / np.sqrt(factorials)[:, None]
    return coefficients


def fit_same_input(single: Trials, residuals: Floats, positions: Floats, coefficients: Floats, seed: int) -> SameInput:
    """Least squares on products of two residuals (variance 1) of the same input, held near moderate values."""
    from scipy.optimize import minimize

    first, second = _pairs(single, seed)
    products = residuals[first] * residuals[second]
    distances = np.abs(positions[single.test[first]] - positions[single.test[second]])
    pairs = coefficients[:, single.test[first]] * coefficients[:, single.test[second]]
    start = np.r_[1.0, 0.0, np.zeros(positions.shape[1])]

    def loss(parameters: Floats) -> tuple[float, Floats]:
        strength, common = 0.98 / (1 + np.exp(-parameters[:2]))
        scales = np.exp(parameters[2:])
        decay = np.exp(-distances @ scales)
        shape = common + (1 - common) * decay
        latent = strength * shape
        value, slope = pairs[-1] * latent, pairs[-1].copy()  # Horner, with the derivative beside it
        for row in pairs[-2::-1]:
            value += row
            slope = slope * latent + value
            value *= latent
        error = value - products
        by_latent = error * slope
        by_decay = -strength * (1 - common) * scales * ((by_latent * decay) @ distances)
        gradient = np.r_[
            by_latent @ shape * strength * (1 - strength / 0.98),
            by_latent @ (1 - decay) * strength * common * (1 - common / 0.98),
            by_decay,
        ]
        pull = parameters - start
        return 0.5 * float(error @ error + pull @ pull), gradient + pull

    bounds = [(-6, 6)] * len(start)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 40}).x
    strength, common = 0.98 / (1 + np.exp(-found[:2]))
    return SameInput(float(strength), float(common), np.exp(found[2:]))


def _pairs(single: Trials, seed: int) -> tuple[Ints, Ints]:
    """Pairs of trials of the same input, at most about PAIRS, none preferred."""
    rng = np.random.default_rng(seed)
    some = np.arange(len(single.place))
    if len(some) > 2 * PAIRS:  # then the trials of a part of the inputs are enough
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


class Information:
    """What single trials say about the values of the tests, given R: a precision matrix, and scores from outcomes."""

    def __init__(self, single: Trials, tests: int, correlation: Floats) -> None:
        order = np.argsort(single.place, kind="stable")
        self._test, self._z = single.test[order], single.passed[order].astype(np.float64)
        tried = np.bincount(single.place)
        self._tests = tests
        self._trials = np.bincount(single.test, minlength=tests).astype(np.float64)
        self.precision = np.zeros((tests, tests))
        self._groups: list[tuple[Ints, Floats]] = []  # trials of inputs with equally many, and their inverse blocks
        self._means = tried.max() > EACH
        if self._means:
            self._add_means(single, correlation)
        else:
            starts = np.cumsum(tried) - tried
            for count in np.unique(tried[tried > 0]):
                self._add_inputs(starts[tried == count], int(count), correlation)

    def _add_inputs(self, starts: Ints, count: int, correlation: Floats) -> None:
        for some in np.array_split(starts, 1 + len(starts) * count**2 // CHUNK):
            trials = some[:, None] + np.arange(count)
            tests = self._test[trials]
            flat = tests[:, :, None] * self._tests + tests[:, None, :]
            blocks = np.linalg.inv(correlation.ravel().take(flat))
            summed = np.bincount(flat.ravel(), blocks.ravel(), self._tests**2)
            self.precision += 4 * summed.reshape(self.precision.shape)
            self._groups.append((trials, blocks.astype(np.float32)))

    def _add_means(self, single: Trials, correlation: Floats) -> None:
        """One mean per test; means of two tests share the inputs that both were tried on."""
        from scipy.linalg import inv

        table = np.zeros((self._tests, single.inputs), np.float32)
        table[single.test, single.place] = 1
        used = np.flatnonzero(self._trials)
        trials = self._trials[used]
        shared = (table[used] @ table[used].T).astype(np.float64)
        covariance = shared / np.outer(trials, trials) * correlation[np.ix_(used, used)] / 4
        self.precision[np.ix_(used, used)] = inv(covariance, check_finite=False)

    def score(self, eta: Floats) -> Floats:
        """The precision times the tests' values, with pseudo-values taken at eta."""
        residuals = (self._z - np.sin(eta[self._test]) ** 2) / np.sin(2 * eta[self._test])
        total: Floats = self.precision @ eta
        if self._means:
            total += self.precision @ (np.bincount(self._test, residuals, self._tests) / np.maximum(self._trials, 1))
            return total
        for trials, blocks in self._groups:
            solved = 4 * (blocks @ residuals[trials][:, :, None])[:, :, 0]
            total += np.bincount(self._test[trials].ravel(), solved.ravel(), self._tests)
        return total
