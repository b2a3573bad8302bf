"""A smooth surface of quality over the severities, which reaches from tests of few perturbations to those of many.

Let l in 0..1 be the damage: the value less the best measured one, over the range of the measured ones. On the scale

    z = -log(1 - kappa l) / kappa,    kappa < 1,

damage adds up where perturbations act one after the other: kappa near 1 is a score with a ceiling, of which each
perturbation leaves a share (z is the logarithm of what is left), kappa = 0 one that adds up as it is, and kappa < 0
one that each perturbation multiplies. kappa is learned with all the rest. z is a Gaussian process with

    k(s, t) = u + c (prod_j (1 + v_j K_j(s_j, t_j)) - 1),

K_j a centred Matern-5/2 kernel over the levels of axis j (Durrande et al. 2013, "ANOVA kernels and RKHS of zero mean
functions"): multiplied out, effects of single axes, of pairs, and so on. How much smaller pairs are than single
effects says what to expect of triples, which is all that tests of order two can say about order three.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from testifai.quality.surface_prior import (
    OVERALL,
    PER_AXIS,
    AxisPrior,
    Ints,
    Parameters,
    bend,
    prior_covariance,
    prior_variance,
    unbend,
)
from testifai.statistics.intervals import half_widths
from testifai.support.types import Floats

LEARNED = 256  # tests from which the parameters are learned: they need not be exact
CONDITIONED = 3_000  # tests that predictions rest on
STEPS = 60  # of the optimiser
FURTHEST = 3.5  # prior sd from the prior median within which parameters are looked for
ROWS = 2_000  # configurations predicted at a time
JITTER = 1e-9
STEP = 1e-3  # for the curvature at the parameters found
SHIFT = 0.3  # of a standard deviation, for how predictions depend on the parameters
NEIGHBOURS = 9  # measured tests of like value, from which the error of an unmeasured one is taken


class KnownValues(NamedTuple):
    """Measured configurations, their values and standard errors (0 where there is none)."""

    rows: Floats
    values: Floats
    errors: Floats


class Tests(NamedTuple):
    """Measured tests as the surface sees them: places on each axis, damages and the variances of their errors."""

    axes: list[AxisPrior]
    places: list[Ints]
    damage: Floats
    variance: Floats


class Solved(NamedTuple):
    """The surface for one set of parameters."""

    at: Parameters
    kappa: float
    factor: Floats  # of Cholesky, of the tests' covariance
    weights: Floats


class Surface:
    """Values of all configurations from those of measured ones, with 95 % intervals.

    Errors of the tests of a run have most in common, since all tests use the same inputs: a share of their variance,
    which is learned, scatters from test to test, and the rest is in every prediction too. What the surface cannot
    follow is taken for roughness, which other tests have as well.
    """

    def __init__(self, levels: Sequence[Floats], measured: KnownValues, *, seed: int = 0) -> None:
        from scipy.optimize import minimize

        self._columns = [j for j, axis in enumerate(levels) if len(axis) > 1]
        self._levels = [levels[j] for j in self._columns]
        measured = _some(measured, CONDITIONED, seed)
        self._rows = measured.rows
        self._scale(measured)
        prior = [one for one in PER_AXIS for _ in self._columns] + list(OVERALL)
        self._median, self._sd = np.array(prior).T
        self.parameters: Floats = minimize(
            self._cost,
            self._median,
            (self._tests(_some(measured, LEARNED, seed)),),
            method="L-BFGS-B",
            jac=True,
            bounds=[(median - FURTHEST * sd, median + FURTHEST * sd) for median, sd in prior],
            options={"maxiter": STEPS, "ftol": 1e-6},
        ).x
        self._condition(self._tests(measured))

    def _scale(self, measured: KnownValues) -> None:
        """Where damage starts and ends, whether values grow or fall with it, and how errors go with values."""
        severity = np.zeros(len(measured.rows))
        for j, axis in zip(self._columns, self._levels, strict=True):
            severity += (measured.rows[:, j] - axis[0]) / (axis[-1] - axis[0])
        together = (severity - severity.mean()) @ measured.values
        self._sign = -1.0 if together < 0 else 1.0
        self._range = float(np.ptp(measured.values))
        self._best = float((self._sign * measured.values).min())
        damage = self._damage(measured.values)
        order = np.argsort(damage, kind="stable")
        window = np.ones(min(NEIGHBOURS, 1 + len(order) // 4))
        means = [np.convolve(one[order], window / len(window), "valid") for one in (damage, measured.errors)]
        self._like_damage, self._like_error = means[0], means[1] / self._range

    def _damage(self, values: Floats) -> Floats:
        return (self._sign * values - self._best) / self._range

    def _tests(self, measured: KnownValues) -> Tests:
        columns = measured.rows[:, self._columns].T
        axes = [AxisPrior.of(levels, column) for levels, column in zip(self._levels, columns, strict=True)]
        places = [axis.places(column) for axis, column in zip(axes, columns, strict=True)]
        return Tests(axes, places, self._damage(measured.values), (measured.errors / self._range) ** 2)

    # -- learning -----------------------------------------------------------------------------------------------

    def _cost(self, vector: Floats, tests: Tests) -> tuple[float, Floats]:
        """Minus the logarithm of the parameters' posterior density, up to a constant, and its gradient."""
        from scipy.linalg.lapack import dpotrf, dpotri

        at, bent = Parameters.of(vector), bend(vector[-1], tests.damage)
        tables = [axis.table(*pair) for axis, *pair in zip(tests.axes, at.lengths, at.powers, strict=True)]
        factors = [
            (1 + scale * table[0])[places[:, None], places]
            for scale, table, places in zip(at.scales, tables, tests.places, strict=True)
        ]
        others, product = _products(factors)
        noise = bent.slope**2 * (at.share * tests.variance + at.rough)
        covariance = at.constant + at.size * (product - 1)
        covariance[np.diag_indices_from(covariance)] += noise + JITTER
        factor, failed = dpotrf(covariance, lower=1, clean=1)
        if failed:
            return 1e10, np.zeros_like(vector)
        inverse = dpotri(factor, lower=1)[0]
        inverse += np.tril(inverse, -1).T
        weights = inverse @ bent.z
        cost = 0.5 * bent.z @ weights + np.log(np.diag(factor)).sum() - np.log(bent.slope).sum()

        outer = 0.5 * (inverse - np.multiply.outer(weights, weights))  # the derivative by the covariance
        by_noise = np.diag(outer) * bent.slope**2
        by_axis = []
        for axis, places, other, scale in zip(tests.axes, tests.places, others, at.scales, strict=True):
            which = (np.arange(len(axis.values))[:, None] == places).astype(np.float64)
            by_axis.append(at.size * scale * (which @ (outer * other) @ which.T))
        by_kappa = bent.by_kappa @ weights + (2 * np.diag(outer) * noise - 1) @ (tests.damage * bent.slope)
        by_length, by_main, by_power = (
            [(by * table[i]).sum() for by, table in zip(by_axis, tables, strict=True)] for i in (1, 0, 2)
        )
        gradient = [
            *by_length,
            *by_main,
            *by_power,
            at.size * (outer * (product - 1)).sum() - sum(by_main),
            at.constant * outer.sum(),
            at.rough * by_noise.sum(),
            at.share * (1 - at.share) * (by_noise @ tests.variance),
            by_kappa * (1 - bent.kappa),
        ]
        off = (vector - self._median) / self._sd
        return float(cost + 0.5 * off @ off), np.array(gradient) + off / self._sd

    def _condition(self, tests: Tests) -> None:
        """Solve for the surface: with the parameters found, and with each a little off in every direction."""
        self._found = self._solve(self.parameters, tests)
        self._shifted: list[Solved] = []
        self._caution = 1.0
        if len(tests.damage) <= LEARNED:  # with more tests, little is left to doubt that this would show
            self._shifted = [self._solve(self.parameters + SHIFT * step, tests) for step in self._doubts(tests)]
            self._caution = max(1.0, self._surprise(tests))

    def _doubts(self, tests: Tests) -> Floats:
        """Independent directions in which the parameters may be off, each as long as its standard deviation."""
        here = self._cost(self.parameters, tests)[1]
        hessian = np.array([self._cost(self.parameters + step, tests)[1] - here for step in STEP * np.eye(len(here))])
        curvature, directions = np.linalg.eigh((hessian + hessian.T) / (2 * STEP))
        # Nothing is known less well than before the tests were seen.
        least = 1 / (self._sd.max() ** 2)
        doubts: Floats = (directions / np.sqrt(np.maximum(curvature, least))).T
        return doubts

    def _surprise(self, tests: Tests) -> float:
        """How far off the surface would be at tests of two perturbations and more, in standard deviations.

        It is asked about tests that join what no measured test joins. So each set of perturbations is left out in
        turn and predicted from the rest: residuals are M w with M the inverse of its block of the inverse covariance
        and w the weights, and M is their covariance (Rasmussen and Williams 2006, section 5.4.2, for blocks).
        """
        from scipy.linalg import cho_solve

        on = self._rows[:, self._columns] != 0
        inverse = cho_solve((self._found.factor, True), np.eye(len(on)))
        sets, number = np.unique(on, axis=0, return_inverse=True)
        squares = [np.empty(0)]
        for i in np.flatnonzero(sets.sum(axis=1) > 1):
            which = np.flatnonzero(number == i)
            covariance = np.linalg.inv(inverse[np.ix_(which, which)])
            squares.append((covariance @ self._found.weights[which]) ** 2 / np.diag(covariance))
        together = np.concatenate(squares)
        return math.sqrt(together.mean()) if len(together) else 1.0

    def _solve(self, vector: Floats, tests: Tests) -> Solved:
        from scipy.linalg import cho_solve, cholesky

        at, bent = Parameters.of(vector), bend(vector[-1], tests.damage)
        covariance = prior_covariance(at, tests.axes, tests.places, tests.places)
        noise = bent.slope**2 * (at.share * tests.variance + at.rough)
        covariance[np.diag_indices_from(covariance)] += noise + JITTER
        factor = cholesky(covariance, lower=True)
        return Solved(at, bent.kappa, factor, cho_solve((factor, True), bent.z))

    # -- predicting ---------------------------------------------------------------------------------------------

    def predict(self, rows: Floats) -> tuple[Floats, Floats, Floats]:
        """The value of each configuration (its median), and the two ends of its interval."""
        parts = [self._predict(rows[start : start + ROWS]) for start in range(0, len(rows), ROWS)]
        middle, low, high = (
            self._sign * (self._best + self._range * np.concatenate(one)) for one in zip(*parts, strict=True)
        )
        return (middle, low, high) if self._sign > 0 else (middle, high, low)

    def _predict(self, rows: Floats) -> tuple[Floats, Floats, Floats]:
        """Damages and the ends of their intervals."""
        from scipy.linalg import solve_triangular

        columns, measured = rows[:, self._columns].T, self._rows[:, self._columns].T
        axes = [AxisPrior.of(*three) for three in zip(self._levels, columns, measured, strict=True)]
        places, known = (
            [axis.places(one) for axis, one in zip(axes, some, strict=True)] for some in (columns, measured)
        )
        at, kappa, factor, weights = self._found
        cross = prior_covariance(at, axes, places, known)
        z = cross @ weights
        spread = prior_variance(at, axes, places) - (solve_triangular(factor, cross.T, lower=True) ** 2).sum(axis=0)
        half = half_widths() * self._caution * np.sqrt(np.maximum(spread, 0))
        middle, low, high = (unbend(kappa, one) for one in (z, z - half, z + half))
        doubt = np.zeros(len(rows))
        for shifted in self._shifted:
            moved = unbend(shifted.kappa, prior_covariance(shifted.at, axes, places, known) @ shifted.weights)
            doubt += ((moved - middle) / SHIFT) ** 2
        error = np.interp(middle, self._like_damage, self._like_error)
        error *= np.maximum(1, middle / self._like_damage[-1])  # beyond the worst measured test it grows as damage does
        extra = half_widths() ** 2 * (at.rough + (1 - at.share) * error**2 + doubt)
        return middle, middle - np.sqrt((middle - low) ** 2 + extra), middle + np.sqrt((high - middle) ** 2 + extra)


def _some(measured: KnownValues, count: int, seed: int) -> KnownValues:
    """So many of the tests, by chance, or all."""
    if len(measured.values) <= count:
        return measured
    chosen = np.sort(np.random.default_rng(seed).permutation(len(measured.values))[:count])
    return KnownValues(*(part[chosen] for part in measured))


def _products(factors: Sequence[Floats]) -> tuple[list[Floats], Floats]:
    """The product of all factors but one, for each, and of all; none is divided by, for it may be 0."""
    before = [np.ones_like(factors[0])]
    for factor in factors:
        before.append(before[-1] * factor)
    others, after = [], np.ones_like(factors[0])
    for place in reversed(range(len(factors))):
        others.append(before[place] * after)
        after = after * factors[place]
    return others[::-1], before[-1]
