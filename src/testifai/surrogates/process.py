"""A Gaussian process over the severities: few inputs on every test, tied together by what neighbours have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.errors import InputError
from testifai.surrogates.base import Trials
from testifai.surrogates.process_evidence import Objective, dense_evidence, grid_evidence, maximise
from testifai.surrogates.process_inputs import Information, SameInput, fit_same_input, hermite
from testifai.surrogates.process_kernel import Floats, Ints, Prior

EDGE = 0.06  # trials are linearised, and slopes taken, at values of eta this far from 0 and pi/2
LARGEST = 2_000  # tests used in a fit
PARAMETER_TESTS = 400  # tests used for the parameters where the grid has holes
UNEVEN = 8  # largest ratio of trials for which the coefficients of a grid are taken as independent
ROUNDS = 3  # of Fisher scoring
ROWS = 2_000  # configurations predicted at a time


class Process:
    """Pass rates as a smooth surface with smaller and smaller interactions, and the covariance of its errors.

    On the scale eta = arcsin sqrt(rate) a trial has variance 1/4 everywhere. The surface is the Gaussian process of
    `process_kernel` with the parameters of highest posterior density; the trials enter by Fisher scoring. Where
    single outcomes are given, the fit knows that tests share inputs, and with `population` it predicts the rates on
    exactly the inputs at hand: a test measured on all of them is known.

    Bounds of single tests rest on smoothness. Where every test is off its neighbours by an independent sd of .05 in
    eta, simulated 95 % bounds cover .81 with 10 inputs on each of 216 tests, .93 with 100, and .95 with 100 on each of
    1,296; those of regions cover .94 or more in the same runs of 216.

    `levels` are the severities of each axis; None takes those seen in `fit`.

    >>> process = Process().fit([[0], [1], [2], [3]], passes=[96, 90, 79, 61], trials=[100] * 4)
    >>> mean, variance = process.predict([[0], [3]])
    >>> mean.round(1).tolist(), bool((variance < 0.05**2).all())
    ([1.0, 0.6], True)
    """

    name = "process"
    pools = True
    wants_trials = True
    plain_only = True

    def __init__(self, levels: Sequence[Sequence[int]] | None = None, seed: int = 0, population: bool = True) -> None:
        self.levels = levels
        self.seed = seed
        self.population = population

    # -- fitting ------------------------------------------------------------------------------------------------

    def fit(self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike, *, single: Trials | None = None) -> Self:
        rows = _severities(features)
        self.prior_ = Prior(self._levels(rows))
        self._take(rows, passes, trials, single)
        self.parameters_ = self.prior_.mean
        eta = np.full(len(self._places), self._level)
        for steps in (15, 25, 60):  # parameters need not be exact for a surface that is not
            if self.prior_.active:
                self.parameters_ = maximise(self.prior_, self._evidence(eta), self.parameters_, steps)
            eta = self._smooth(eta)
        self.same_input_ = self._same_input(eta)
        self._condition()
        return self

    def update(
        self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike, *, single: Trials | None = None
    ) -> Self:
        """Take other counts and keep the parameters of the last `fit`: several times faster."""
        self._take(_severities(features), passes, trials, single)
        eta = np.full(len(self._places), self._level)
        for _ in range(ROUNDS):
            eta = self._smooth(eta)
        if self.same_input_ is None:
            self.same_input_ = self._same_input(eta)
        self._condition()
        return self

    def _levels(self, rows: NDArray[np.int64]) -> list[list[int]]:
        if self.levels is None:
            return [np.unique(column).tolist() for column in rows.T]
        levels = [sorted(set(map(int, axis))) for axis in self.levels]
        if len(levels) != rows.shape[1]:
            raise InputError(f"features: {rows.shape[1]} severities to a row; accepted: {len(levels)}, as in levels")
        return levels

    def _take(self, rows: NDArray[np.int64], passes: ArrayLike, trials: ArrayLike, single: Trials | None) -> None:
        """Keep the tests that have trials, at most LARGEST of them."""
        won, tried = np.asarray(passes, np.float64), np.asarray(trials, np.float64)
        if not won.shape == tried.shape == (len(rows),):
            raise InputError(f"passes: {won.shape} and trials {tried.shape} for {len(rows)} configurations")
        if not (tried > 0).any():
            raise InputError("trials: no test has any; accepted: at least one")
        if (won < 0).any() or (won > tried).any():
            raise InputError("passes: some are below 0 or above the trials of their test")
        places = self._places_of(rows)
        used = np.flatnonzero(tried)
        if len(used) > LARGEST:
            used = np.sort(np.random.default_rng(self.seed).permutation(used)[:LARGEST])
        self._places, self._won, self._tried = places[used], won[used], tried[used]
        self._level = float(np.arcsin(np.sqrt((self._won.sum() + 0.5) / (self._tried.sum() + 1))))
        self._single = None if single is None else _selected(single, used, len(rows))
        inputs = single.inputs if single is not None and self.population else 0
        self._share = 0.25 / inputs if inputs else 0.0  # variance of an input's deviation, averaged over all inputs
        complete = np.flatnonzero(self._tried == inputs)
        self._complete = {self._places[i].tobytes(): self._won[i] / self._tried[i] for i in complete}

    def _pseudo_values(self, eta: Floats) -> tuple[Floats, Floats]:
        """One value per test, less the overall level, and its variance."""
        at = _inside(eta)
        values = at + (self._won / self._tried - np.sin(at) ** 2) / np.sin(2 * at)
        return values - self._level, 0.25 / self._tried

    def _evidence(self, eta: Floats) -> Objective:
        values, noise = self._pseudo_values(eta)
        prior, places = self.prior_, self._places
        if len(places) == np.prod(prior.sizes) and noise.max() <= UNEVEN * noise.min():
            order = np.lexsort(places.T[::-1])
            return grid_evidence(prior, values[order], float(noise.mean()))
        some = np.random.default_rng(self.seed).permutation(len(places))[:PARAMETER_TESTS]
        return dense_evidence(prior, places[some], values[some], noise[some])

    def _smooth(self, eta: Floats) -> Floats:
        """The surface at the tests, as if every trial had its own input."""
        from scipy.linalg import cho_factor, cho_solve

        self._kernel = self.prior_.kernel(self.parameters_, self._places, self._places)
        values, noise = self._pseudo_values(eta)
        factor = cho_factor(self._kernel + np.diag(noise), lower=True, check_finite=False)
        self._independent: Floats = cho_solve(factor, values, check_finite=False)
        smoothed: Floats = self._level + self._kernel @ self._independent
        return smoothed

    def _same_input(self, eta: Floats) -> SameInput | None:
        single = self._single
        if single is None or len(single.test) == 0:
            return None
        rates = np.sin(_inside(eta)) ** 2
        residuals = ((single.passed - rates[single.test]) / np.sqrt(rates * (1 - rates))[single.test]).astype(
            np.float64
        )
        return fit_same_input(single, residuals, self._positions(self._places), hermite(rates), self.seed)

    def _condition(self) -> None:
        """The posterior: weights of the tests' values, and a root V of (K + noise)^-1 = V V'."""
        from scipy.linalg import cholesky, solve_triangular

        tests = len(self._places)
        kernel = self._kernel
        correlation = self._correlation(self._places, self._places)
        information = None
        if self._single is None:
            noise_root = np.diag(2 * np.sqrt(self._tried))
        else:
            information = Information(self._single, tests, correlation)
            noise_root = cholesky(information.precision, lower=True, check_finite=False)
        inner = noise_root.T @ kernel @ noise_root
        inner[np.diag_indices(tests)] += 1
        factor = cholesky(inner, lower=True, overwrite_a=True, check_finite=False)
        self._root: Floats = solve_triangular(factor, noise_root.T, lower=True, check_finite=False).T
        self._cross = cross = kernel + self._share * correlation
        eta = self._level + kernel @ self._independent
        for _ in range(ROUNDS):
            at = _inside(eta)
            if information is None:
                score = self._pseudo_values(at)[0] * 4 * self._tried
            else:
                score = information.score(at) - self._level * information.precision.sum(axis=1)
            whitened = solve_triangular(noise_root, score, lower=True, check_finite=False)
            self._weights: Floats = self._root @ solve_triangular(factor, whitened, lower=True, check_finite=False)
            eta = self._level + cross @ self._weights

    # -- what is known ------------------------------------------------------------------------------------------

    def predict(self, features: ArrayLike) -> tuple[Floats, Floats]:
        """The rate of each configuration and the variance of its error."""
        eta, variance = self._values(self._places_of(_severities(features)))
        # The variance of sin^2 of a normal variable: unlike a slope, it does not vanish at rates 0 and 1.
        once = np.exp(-2 * variance)
        spread = (1 + np.cos(4 * eta) * once**4) / 8 - (np.cos(2 * eta) * once) ** 2 / 4
        return _rates(eta), np.where(variance > 0, np.maximum(spread, 0), 0)

    def bounds(self, features: ArrayLike, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper bound of each rate, made on the scale of eta."""
        eta, variance = self._values(self._places_of(_severities(features)))
        half = _quantile(confidence) * np.sqrt(variance)
        return _rates(eta - half), _rates(eta + half)

    def region(self, features: ArrayLike, confidence: float = 0.95) -> tuple[float, float, float]:
        """The mean rate over these configurations, with bounds from the covariance of all their errors."""
        places = self._places_of(_severities(features))
        eta, _ = self._values(places)
        slope = self._slope(places, eta) / len(places)
        prior, spent = 0.0, np.zeros(self._root.shape[1])
        for some in _chunks(len(places)):
            prior += float(slope[some] @ self._among(places[some], places) @ slope)
            spent += (slope[some] @ self._with_data(places[some])) @ self._root
        estimate = float(_rates(eta).mean())
        half = _quantile(confidence) * max(prior - float(spent @ spent), 0.0) ** 0.5
        return estimate, max(estimate - half, 0.0), min(estimate + half, 1.0)

    def covariance(self, features: ArrayLike) -> Floats:
        """The covariance of the errors of these configurations' rates (delta method)."""
        places = self._places_of(_severities(features))
        eta, _ = self._values(places)
        spent = self._with_data(places) @ self._root
        slope = self._slope(places, eta)
        covariance: Floats = slope[:, None] * (self._among(places, places) - spent @ spent.T) * slope
        return covariance

    def _values(self, places: Ints) -> tuple[Floats, Floats]:
        """Estimate and variance of each eta."""
        eta, variance = np.empty(len(places)), np.empty(len(places))
        for some in _chunks(len(places)):
            cross = self._with_data(places[some])
            eta[some] = self._level + cross @ self._weights
            variance[some] = self.prior_.variance(self.parameters_, places[some]) + self._share
            variance[some] -= ((cross @ self._root) ** 2).sum(axis=1)
        for i, place in enumerate(places) if self._complete else ():
            if (key := place.tobytes()) in self._complete:
                eta[i], variance[i] = np.arcsin(np.sqrt(self._complete[key])), 0.0
        return np.clip(eta, 0, np.pi / 2), np.maximum(variance, 0)

    def _slope(self, places: Ints, eta: Floats) -> Floats:
        """The derivative of each rate by its eta; none where the rate is known."""
        slope = np.sin(2 * _inside(eta))
        if self._complete:
            slope[[place.tobytes() in self._complete for place in places]] = 0
        return slope

    def _with_data(self, places: Ints) -> Floats:
        """The covariance of configurations' values with those of the tests, inputs in common included."""
        if np.array_equal(places, self._places):
            return self._cross
        return self._among(places, self._places)

    def _among(self, rows: Ints, columns: Ints) -> Floats:
        """The prior covariance of the values of configurations, for the inputs at hand where asked for."""
        kernel = self.prior_.kernel(self.parameters_, rows, columns)
        return kernel + self._share * self._correlation(rows, columns) if self._share else kernel

    def _correlation(self, rows: Ints, columns: Ints) -> Floats:
        """How outcomes of one input under two configurations are correlated."""
        if self.same_input_ is None:
            correlation = np.zeros((len(rows), len(columns)))
        else:
            left, right = self._hermite(rows), self._hermite(columns)
            correlation = self.same_input_.correlation(self._positions(rows), self._positions(columns), left, right)
        correlation[_equal(rows, columns)] = 1
        return correlation

    def _hermite(self, places: Ints) -> Floats:
        if np.array_equal(places, self._places):
            kernel = self._kernel
        else:
            kernel = self.prior_.kernel(self.parameters_, places, self._places)
        return hermite(np.sin(_inside(self._level + kernel @ self._independent)) ** 2)

    def _positions(self, places: Ints) -> Floats:
        """Severities on the learned scales of their axes, from 0 to 1."""
        prior = self.prior_
        columns = [prior.axis(self.parameters_, j).positions[places[:, j]] for j in prior.active]
        return np.array(columns).reshape(len(columns), len(places)).T

    def _places_of(self, rows: NDArray[np.int64]) -> Ints:
        levels = self.prior_.levels
        if rows.shape[1] != len(levels):
            raise InputError(f"features: {rows.shape[1]} severities to a row; accepted: {len(levels)}")
        places = self.prior_.places(rows)
        if (places < 0).any():
            i, j = np.argwhere(places < 0)[0]
            raise InputError(f"features: severity {rows[i, j]} on axis {j}; accepted: {_listing(levels[j])}")
        return places


def _severities(features: ArrayLike) -> NDArray[np.int64]:
    rows = np.asarray(features)
    if rows.ndim != 2 or rows.shape[1] == 0 or rows.dtype.kind not in "iu":
        raise InputError(f"features: {rows.dtype} of shape {rows.shape}; accepted: a row of severities each")
    return rows.astype(np.int64)


def _selected(single: Trials, used: Ints, rows: int) -> Trials:
    """The trials of some of the tests, which are renumbered."""
    number = np.full(rows, -1, np.intp)
    number[used] = np.arange(len(used))
    test = number[single.test]
    kept = test >= 0
    value = None if single.value is None else single.value[kept]
    return Trials(test[kept], np.asarray(single.place)[kept], np.asarray(single.passed)[kept], single.inputs, value)


def _equal(rows: Ints, columns: Ints) -> tuple[Ints, Ints]:
    """Where the same configuration is in both."""
    at = {column.tobytes(): i for i, column in enumerate(columns)}
    pairs = [(i, at[key]) for i, row in enumerate(rows) if (key := row.tobytes()) in at]
    found = np.array(pairs, np.intp).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _inside(eta: Floats) -> Floats:
    return np.clip(eta, EDGE, np.pi / 2 - EDGE)


def _rates(eta: Floats) -> Floats:
    rates: Floats = np.sin(np.clip(eta, 0, np.pi / 2)) ** 2
    return rates


def _quantile(confidence: float) -> float:
    from scipy.special import ndtri

    if not 0 < confidence < 1:
        raise InputError(f"confidence: {confidence!r}; accepted: above 0, below 1")
    return float(ndtri(0.5 + confidence / 2))


def _chunks(rows: int) -> Iterator[slice]:
    return (slice(start, start + ROWS) for start in range(0, rows, ROWS))


def _listing(values: NDArray[Any]) -> str:
    return ", ".join(map(str, values.tolist()))
