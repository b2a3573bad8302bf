"""The quality of every test, predicted from the measured ones.

Let l in 0..1 be the damage: the value less the best measured one, over the range of the measured ones. On the scale

    z = -log(1 - kappa l) / kappa,    kappa < 1,

damage adds up if perturbations act one after the other: kappa near 1 is a score with a ceiling, of which each
perturbation leaves a share (z is the logarithm of what is left), kappa = 0 one that adds up as it is, and kappa < 0
one that each perturbation multiplies. z is a Gaussian process with the prior of the surrogate `process`; kappa is the
one with the largest evidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.errors import InputError
from testifai.space import LISTED, Space
from testifai.statistics.intervals import half_widths
from testifai.support.threads import one_blas_thread
from testifai.support.types import Floats, RecordLike
from testifai.support.validation import choice
from testifai.surrogates.process.grid import known_places
from testifai.surrogates.process.kernel import Medians, Prior
from testifai.surrogates.process.linear_algebra import Ints
from testifai.surrogates.process.marginal_likelihood import LEARNED, ValueSurface

PREDICTORS = ("smooth", "forest")


def no_quality_in(space: Space, instead: str) -> InputError:
    return InputError(
        f"quality: it is predicted for every test, of at most {LISTED:,}, and the space has {space.size:,}; {instead}"
    )


@dataclass(frozen=True, eq=False)
class Scores:
    """The quality of the inputs under every configuration, predicted from the ids `measured`."""

    space: Space
    name: str
    higher_is_better: bool
    measured: NDArray[np.int64]
    values: Floats
    errors: Floats
    inferences: int = 0  # inputs passed to the model under test
    predictor: str = "smooth"
    seed: int = 0
    description: RecordLike | None = None

    def __repr__(self) -> str:
        return f"<{self.name} of {self.space.size:,} tests: {len(self.measured):,} measured>"

    @property
    def estimate(self) -> Floats:
        """The score of every test, in the space's shape; NaN before the first measurement."""
        return self._flat[0].reshape(self.space.shape)

    @property
    def low(self) -> Floats:
        return self._flat[1].reshape(self.space.shape)

    @property
    def high(self) -> Floats:
        return self._flat[2].reshape(self.space.shape)

    @property
    def sign(self) -> str:
        """The comparison of a query for plausible inputs: `quality <= x`, or `>=` if higher is better."""
        return ">=" if self.higher_is_better else "<="

    @cached_property
    def _flat(self) -> tuple[Floats, Floats, Floats]:
        size = self.space.size
        estimate, low, high = (np.full(size, np.nan) for _ in range(3))
        if not len(self.measured):
            return estimate, low, high
        missing = np.setdiff1d(np.arange(size), self.measured)
        if len(missing):
            known = self.space.matrix(self.measured)
            levels = [axis.severities for axis in self.space.axes]
            predict = fit(self.predictor, levels, known, self.values, self.errors, seed=self.seed)
            estimate[missing], low[missing], high[missing] = predict(self.space.matrix(missing))
        estimate[self.measured] = self.values
        low[self.measured] = self.values - half_widths() * self.errors
        high[self.measured] = self.values + half_widths() * self.errors
        return estimate, low, high


Bounded = tuple[Floats, Floats, Floats]
Predict = Callable[[NDArray[np.int64]], Bounded]

TREES = 100
SAME = 1e-12  # share of the largest value: a smaller range is rounding
CONDITIONED = 3_000  # most tests that predictions are conditioned on
# On five recorded grids (`benchmarks/validity.py`) these predicted tests of order three and four as well as a process
# with priors of its own did.
PRIOR = Medians((0.1, 0.01, 0.002, 0.0005), (1e-6,) * 4, 1.5, 2.0, (1e-2, 1.0, 1e-3), length=2.5)
BENDS = (0.0, -1.0, -2.0, -3.0, 1.0, 2.5, 4.0)  # kappas that are tried first, as t = -log(1 - kappa)
BEND_SD = 2.0  # prior sd of t
SHIFT = 0.1  # of t, for how far it may be off
ROUGH_STEPS, STEPS = 30, 40  # of the optimiser
TURNS = 2  # between kappa and the other parameters
ROUGH_TESTS = 120  # tests from which kappa is first chosen
# Tests of a run use the same inputs: a share of an error's variance scatters from test to test, all have the rest.
SCATTERED = (0.02, 0.2, 1.0)
LINEAR = 1e-6  # kappa below which the scale is that of the damage
MOST = 50.0  # exponent beyond which an end of an interval is as good as unbounded


def fit(
    kind: str,
    levels: Sequence[ArrayLike],
    configurations: ArrayLike,
    values: ArrayLike,
    errors: ArrayLike,
    *,
    seed: int = 0,
) -> Predict:
    """Return a function of configurations to their value and its 95 % interval, learned from measured ones.

    "smooth" is a Gaussian process, "forest" the published random forest, which has no intervals. `levels` are the
    severities of each axis; a row of a space in which the order of application counts also has the positions at which
    they are applied. Values are NaN if not known.
    """
    choice("quality: predictor", kind, PREDICTORS)
    rows, value, error = np.asarray(configurations, np.int64), np.asarray(values, float), np.asarray(errors, float)
    known = np.isfinite(value)
    if not known.any():
        raise InputError("values: no test has one; accepted: at least one measured test")
    # Sorted, so that the order in which tests were measured changes nothing.
    order = np.flatnonzero(known)[np.lexsort(rows[known].T[::-1])]
    rows, value, error = rows[order], value[order], np.nan_to_num(error[order])
    axes = [np.unique(np.asarray(axis, np.int64)).tolist() for axis in levels]
    with one_blas_thread():
        if _alike(value) or all(len(axis) == 1 for axis in axes):
            return _constant(value, error)
        if kind == "forest":
            return _forest(rows, value, seed)
        if rows.shape[1] == len(axes):
            return _Surface(Prior(axes, PRIOR), rows, value, error, seed).predict
        pairs = len(axes) * (len(axes) - 1) // 2
        ordered = _Surface(Prior([*axes, *[[-1, 0, 1]] * pairs], PRIOR), _precedence(rows), value, error, seed)
        return lambda rows: ordered.predict(_precedence(rows))


class _Surface:
    """Values as a smooth surface over the severities; intervals cover errors of surface, parameters and measure."""

    def __init__(self, prior: Prior, rows: NDArray[np.int64], values: Floats, errors: Floats, seed: int) -> None:
        some = np.random.default_rng(seed).permutation(len(values))[:CONDITIONED]
        self._prior, places, values, errors = prior, known_places(prior, rows)[some], values[some], errors[some]
        severity = places / np.maximum(np.array(prior.sizes) - 1, 1)
        together = (severity.sum(axis=1) - severity.sum(axis=1).mean()) @ values
        self._sign = -1.0 if together < 0 else 1.0  # whether values grow or fall with damage
        self._range, self._best = float(np.ptp(values)), float((self._sign * values).min())
        damage, error = (self._sign * values - self._best) / self._range, errors / self._range
        order = np.argsort(damage, kind="stable")
        self._damages, self._errors = damage[order], error[order]
        self._learn(places, damage, error, seed)
        on, number = np.unique(rows[some] != 0, axis=0, return_inverse=True)
        groups = [np.flatnonzero(number == one) for one in np.flatnonzero(on.sum(axis=1) > 1)]
        # Predictions are for new sets of perturbations: each measured set is left out in turn.
        self._caution = max(1.0, self._surface.surprise(groups)) if len(places) <= LEARNED else 1.0

    def _learn(self, places: Ints, damage: Floats, error: Floats, seed: int) -> None:
        from scipy.optimize import minimize_scalar

        def surface(t: float, parameters: Floats, steps: int, tests: int) -> ValueSurface:
            z, slope = bend(kappa_of(t), damage[:tests])
            variances = self._scattered * (slope * error[:tests]) ** 2
            return ValueSurface(self._prior, places[:tests], z, variances, parameters, steps=steps, seed=seed)

        def evidence(t: float, one: ValueSurface) -> float:
            slope = bend(kappa_of(t), damage[: len(one.places)])[1]
            return one.evidence + float(np.log(slope).sum()) - 0.5 * (t / BEND_SD) ** 2

        shares = []
        for self._scattered in SCATTERED if error.any() else SCATTERED[:1]:
            one = surface(0.0, self._prior.mean, ROUGH_STEPS, ROUGH_TESTS)
            shares.append((one.evidence, self._scattered))
        self._scattered = max(shares)[1]
        rough = []
        parameters = self._prior.mean
        for t in BENDS:
            one = surface(t, parameters, ROUGH_STEPS, ROUGH_TESTS)
            parameters = one.parameters
            rough.append((evidence(t, one), t, parameters))
        _, t, parameters = max(rough, key=lambda one: one[0])
        for _ in range(TURNS):
            parameters = surface(t, parameters, ROUGH_STEPS, ROUGH_TESTS).parameters

            def cost(t: float, parameters: Floats = parameters) -> float:
                return -evidence(t, surface(t, parameters, 0, ROUGH_TESTS))

            bounds = t - 1, t + 1
            t = float(minimize_scalar(cost, bounds=bounds, method="bounded", options={"maxiter": 12}).x)
        self._surface = surface(t, parameters, STEPS, CONDITIONED)
        self._kappa = kappa_of(t)
        parameters = self._surface.parameters
        curvature = (cost(t + SHIFT) - 2 * cost(t) + cost(t - SHIFT)) / SHIFT**2
        doubt = 1 / math.sqrt(max(curvature, BEND_SD**-2))
        other = t + max(doubt, SHIFT)
        self._other = kappa_of(other), surface(other, parameters, 0, CONDITIONED), min(doubt / SHIFT, 1.0)

    def predict(self, rows: NDArray[np.int64]) -> Bounded:
        with one_blas_thread():
            places = known_places(self._prior, rows)
            z, variance = self._surface.predict(places)
            kappa, surface, share = self._other
            doubt = share * (unbend(kappa, surface.mean(places)) - unbend(self._kappa, z))
        half = half_widths() * self._caution * np.sqrt(variance)
        middle, low, high = (unbend(self._kappa, one) for one in (z, z - half, z + half))
        error = np.interp(middle, self._damages, self._errors)
        error *= np.maximum(1, middle)  # beyond the worst measured test it grows as damage does
        shared = half_widths() ** 2 * ((1 - self._scattered) * error**2 + doubt**2)
        low, high = middle - np.sqrt((middle - low) ** 2 + shared), middle + np.sqrt((high - middle) ** 2 + shared)
        middle, low, high = (self._sign * (self._best + self._range * one) for one in (middle, low, high))
        return (middle, low, high) if self._sign > 0 else (middle, high, low)


def _precedence(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Severities, and for each two axes 1 or -1, which is first; unlike positions, all these are among tests of two."""
    severities, positions = np.hsplit(rows, 2)
    first, second = np.triu_indices(positions.shape[1], 1)
    both = (positions[:, first] > 0) & (positions[:, second] > 0)
    return np.hstack([severities, np.where(both, np.sign(positions[:, second] - positions[:, first]), 0)])


def kappa_of(t: float) -> float:
    return -math.expm1(-t)


def bend(kappa: float, damage: Floats) -> tuple[Floats, Floats]:
    z = damage if abs(kappa) < LINEAR else -np.log1p(-kappa * damage) / kappa
    return z, 1 / (1 - kappa * damage)


def unbend(kappa: float, z: Floats) -> Floats:
    return z if abs(kappa) < LINEAR else np.asarray(-np.expm1(np.minimum(-kappa * z, MOST)) / kappa)


def _forest(rows: NDArray[np.int64], values: Floats, seed: int) -> Predict:
    """TestifAI, section 6: a random-forest regressor on the features of the auxiliary model, with its settings."""
    from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(TREES, bootstrap=False, max_features=None, random_state=seed % 2**32)
    forest.fit(rows, values)
    return lambda rows: (forest.predict(rows), np.full(len(rows), np.nan), np.full(len(rows), np.nan))


def _alike(values: Floats) -> bool:
    return bool(np.ptp(values) <= SAME * np.abs(values).max())


def _constant(values: Floats, errors: Floats) -> Predict:
    """Predict one value everywhere, within the errors if several tests agree; one test alone gives no interval."""
    value, agreed = float(values.mean()), len(values) > 1 and _alike(values)
    half = half_widths() * float(errors.max()) if agreed else np.nan
    return lambda rows: (np.full(len(rows), value), np.full(len(rows), value - half), np.full(len(rows), value + half))
