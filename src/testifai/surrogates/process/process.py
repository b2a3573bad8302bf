"""A Gaussian process over the severities: few inputs on every test, tied together by what neighbours have in common."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.errors import InputError
from testifai.runs.trials import Trials
from testifai.statistics.normal import half_widths
from testifai.support.progress import note
from testifai.surrogates.base import Surrogate
from testifai.surrogates.process.evidence import maximise, posed
from testifai.surrogates.process.grid import WholeGrid
from testifai.surrogates.process.inputs import Independent, Information, SameInput, fit_same_input, hermite, selected
from testifai.surrogates.process.integration import Widening
from testifai.surrogates.process.kernel import REMAINDER, Floats, Ints, Prior
from testifai.surrogates.process.part import Scatter, SurfacePart
from testifai.surrogates.process.places import Numbers, known_places, severities
from testifai.surrogates.process.scale import inside, moments, rate
from testifai.surrogates.process.scores import EXPLAINED, ScoreFit, read_scores

LARGEST = 2_000  # tests used in a fit
FIRST_STEPS = (15, 25)  # of the optimiser: parameters need not be exact for a surface that is not
STEPS = 60
ROUNDS = 3  # of Fisher scoring
# Parameters count as known; what they are off by errs on many tests in one direction. With 10 trials per test, squared
# errors of the regions of three recorded grids were 1.1 to 1.2 times what the covariance says, with 100 as it says.
PLUGGED = 2.0  # over the trials per test, the share to add to the covariance of several tests
ROWS = 2_000  # configurations predicted at a time
MOST_CELLS = 5_000_000  # of a grid that sums are taken over


class Process(Surrogate):
    """Pass rates as a smooth surface with smaller and smaller interactions, and the covariance of its errors.

    On the scale eta = arcsin sqrt(rate) a trial has variance 1/4 everywhere. The surface is the Gaussian process of
    `process_kernel` with the parameters of highest posterior density; the trials enter by Fisher scoring. Where
    single outcomes are given, the fit knows that tests share inputs, and with `population` it predicts the rates on
    exactly the inputs at hand: a test measured on all of them is known.

    Bounds of single tests rest on smoothness. Where every test is off its neighbours by an independent sd of .05 in
    eta, simulated 95 % bounds cover .79 with 10 inputs on each of 216 tests, .94 with 100, and .95 with 100 on each of
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
    takes_scores = True
    plain_only = True
    relearns = False

    def __init__(self, levels: Sequence[Sequence[int]] | None = None, seed: int = 0, population: bool = True) -> None:
        self.levels = levels
        self.seed = seed
        self.population = population

    # -- fitting ------------------------------------------------------------------------------------------------

    def fit(self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike, *, single: Trials | None = None) -> Self:
        rows = severities(features)
        self.prior_ = Prior(self._levels(rows))
        self._take(rows, passes, trials, single)
        self.parameters_ = self.prior_.mean
        eta = np.full(len(self._places), self._level)
        for steps in FIRST_STEPS:
            values, noise = self._rough_values(eta)
            problem = posed(self.prior_, self._places, values, noise, self.seed)
            self.parameters_ = maximise(self.prior_, problem, self.parameters_, steps)
            eta = self._smooth(eta)
        self._split(self._scores(eta))
        self.same_input_ = self._same_input(eta)
        self._condition(eta, learn=True)
        return self

    def update(
        self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike, *, single: Trials | None = None
    ) -> Self:
        """Take other counts and keep the parameters of the last `fit`: several times faster."""
        self._take(severities(features), passes, trials, single)
        eta = np.full(len(self._places), self._level)
        for _ in range(ROUNDS):
            eta = self._smooth(eta)
        parts, scores = self._parts, self._scores(eta) if len(self._parts) > 1 else None
        self._split(scores)
        for new, old in zip(self._parts, parts, strict=False):
            new.widening = old.widening
            if scores:
                new.parameters, new.level = old.parameters, old.level
        if self.same_input_ is None:
            self.same_input_ = self._same_input(eta)
        self._condition(eta, learn=False)
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
        places = known_places(self.prior_, rows)
        used = np.flatnonzero(tried)
        if len(used) > LARGEST:
            used = np.sort(np.random.default_rng(self.seed).permutation(used)[:LARGEST])
        self._places, self._won, self._tried = places[used], won[used], tried[used]
        self._numbered = Numbers(self._places, self.prior_.sizes)
        self._level = float(np.arcsin(np.sqrt((self._won.sum() + 0.5) / (self._tried.sum() + 1))))
        if single is None:
            self._single, self._share = None, 0.0
            self._test, self._passed = np.arange(len(used)), self._won / self._tried
        else:
            self._single = selected(single, used, len(rows))
            self._share = 1 / single.inputs if self.population else 0.0
            self._test, self._passed = self._single.test, self._single.passed.astype(np.float64)
        self._complete = self._tried * self._share == 1
        self._plugged = 1 + PLUGGED / float(self._tried.mean())

    def _rough_values(self, eta: Floats) -> tuple[Floats, Floats]:
        """One pseudo-value per test, less the overall level, and its variance, as if no inputs were shared."""
        at = inside(eta)
        values = at + (self._won / self._tried - np.sin(at) ** 2) / np.sin(2 * at)
        return values - self._level, 0.25 / self._tried

    def _smooth(self, eta: Floats) -> Floats:
        """The surface at the tests, as if every trial had its own input; kept to tell how outcomes are distributed."""
        from scipy.linalg import cho_factor, cho_solve

        kernel = self.prior_.kernel(self.parameters_, self._places, self._places)
        values, noise = self._rough_values(eta)
        factor = cho_factor(kernel + np.diag(noise), lower=True, check_finite=False)
        weights: Floats = cho_solve(factor, values, check_finite=False)
        smoothed: Floats = self._level + kernel @ weights
        self._rough, self._kernel = (self.parameters_, weights), kernel
        self._coefficients = hermite(np.sin(inside(smoothed)) ** 2)
        return smoothed

    def _scores(self, eta: Floats) -> ScoreFit | None:
        """What the oracle's values explain, where there are any."""
        if self._single is None:
            return None
        return read_scores(self._single, inside(eta), self._kernel, self._coefficients)

    def _split(self, scores: ScoreFit | None) -> None:
        """One surface, or that which values explain and the remainder."""
        self._read = scores
        self._parts = [SurfacePart(self.prior_, self.parameters_, Scatter())]
        if scores is not None:
            prior = Prior([axis.tolist() for axis in self.prior_.levels], REMAINDER)
            rest = SurfacePart(prior, prior.mean, Scatter(first=EXPLAINED, scale=scores.rest_scale))
            self._parts = [
                SurfacePart(self.prior_, self.parameters_, Scatter(last=EXPLAINED, scale=scores.scale)),
                rest,
            ]

    def _trials(self, eta: Floats) -> list[tuple[Floats, Floats]]:
        """For each part the trials as deviations from a reference for each test, linearised at eta."""
        at, test = inside(eta), self._test
        deviations = (self._passed - (np.sin(at) ** 2)[test]) / np.sin(2 * at)[test]
        if (scores := self._read) is None:
            return [(at, deviations)]
        rest = at - scores.reference, deviations - scores.deviations
        return [(scores.reference, scores.deviations), rest]

    def _same_input(self, eta: Floats) -> SameInput | None:
        single, prior = self._single, self.prior_
        if single is None or len(single.test) == 0 or not prior.active:
            return None
        sd, rows = self._parts[0].scatter(self._coefficients)
        residuals = self._trials(eta)[0][1] / sd[single.test]
        sizes = [prior.sizes[j] for j in prior.active]
        return fit_same_input(single, residuals, self._places[:, prior.active], rows, sizes, self.seed)

    def _condition(self, eta: Floats, *, learn: bool) -> None:
        """The posterior of every part."""
        size = math.prod(self.prior_.sizes)
        self._kept = np.full((2, size), np.nan) if size <= MOST_CELLS else None
        self._last: tuple[Ints, Floats, Floats] | None = None
        self._whole: Floats | None = None
        for part, deviations in zip(self._parts, self._trials(eta), strict=True):
            sd, _ = part.scatter(self._coefficients)
            correlation = self._correlation(part, self._places, self._places)
            part.see(self._information(part, correlation), sd, self._test)
            if learn:
                values, noise = part.data(*deviations)
                part.level = float(values.mean())
                problem = posed(part.prior, self._places, values - part.level, noise, self.seed)
                part.parameters = maximise(part.prior, problem, part.parameters, STEPS)
                part.widening = Widening(problem, part.parameters, self.seed)
            kernel = part.prior.kernel(part.parameters, self._places, self._places)
            part.condition(kernel, self._share * correlation * np.multiply.outer(sd, sd))
        if learn and self._read is None:
            self.parameters_ = self._parts[0].parameters
        for _ in range(ROUNDS):
            for part, deviations in zip(self._parts, self._trials(eta), strict=True):
                part.learn(part.values(*deviations))
            eta = sum((part.level + part.cross @ part.weights for part in self._parts), np.zeros(len(eta)))
        for part in self._parts:
            part.forget()
        del self._kernel

    def _information(self, part: SurfacePart, correlation: Floats) -> Information | Independent:
        tests = len(self._places)
        if self._single is None:
            return Independent(self._test, self._tried, tests)
        if self.same_input_ is None or part.scatter.first:
            return Independent(self._test, np.ones(len(self._test)), tests)
        return Information(self._single, tests, correlation)

    # -- what is known ------------------------------------------------------------------------------------------

    def predict(self, features: ArrayLike) -> tuple[Floats, Floats]:
        """The rate of each configuration and the variance of its error."""
        return moments(*self._values(known_places(self.prior_, severities(features))))

    def bounds(self, features: ArrayLike, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper bound of each rate, made on the scale of eta."""
        eta, variance = self._values(known_places(self.prior_, severities(features)))
        half = half_widths(confidence) * np.sqrt(variance)
        return rate(eta - half), rate(eta + half)

    def region(self, features: ArrayLike, confidence: float = 0.95) -> tuple[float, float, float]:
        """The mean rate over these configurations, with bounds from the covariance of all their errors."""
        places = known_places(self.prior_, severities(features))
        eta, own = self._values(places)
        slope = self._slope(places, eta) / len(places)
        number = self._numbered(places)
        if (number >= 0).all():
            # Weights of all tests, 0 elsewhere: to pick rows and columns of the covariance takes longer.
            weights = np.zeros(len(self._places))
            np.add.at(weights, number, slope)
            variance = sum(part.variance(weights) for part in self._parts)
        else:
            variance = self._variance_of_sum(places, slope)
        estimate = float(moments(eta, own)[0].mean())
        half = half_widths(confidence) * (self._plugged * max(variance, 0.0)) ** 0.5
        return estimate, max(estimate - half, 0.0), min(estimate + half, 1.0)

    def _variance_of_sum(self, places: Ints, weights: Floats) -> float:
        """The posterior variance of a weighted sum of eta, of any configurations."""
        # Pairs of configurations are quicker where there are few of them, and all there is where no grid can be held.
        few = len(places) ** 2 < math.prod(self.prior_.sizes)
        along = self._along_pairs if few or self._kept is None else self._along_grid
        note(f"adding up {len(places):,} tests")
        variance = 0.0
        for part in self._parts:
            before, shared = along(part, places, weights)
            spent = part.spent(shared)
            variance += before - float(spent @ spent)
        return variance

    def _along_grid(self, part: SurfacePart, places: Ints, weights: Floats) -> tuple[float, Floats]:
        """The prior variance of a weighted sum of values, and its prior covariance with the tests' values."""
        at, tests = self._numbered.keys(places), self._numbered.keys(self._places)
        whole = self._scattered(at, weights)
        along = part.grid.times(part.parameters, whole)
        if self._share:
            sd, rows = part.scatter(self._grid_coefficients())
            spread = sd * whole
            if self.same_input_ is not None and not part.scatter.first:
                spread = self.same_input_.times(rows, spread)
            along += self._share * sd * spread
        return float(along[at] @ weights), along[tests]

    def _scattered(self, at: NDArray[np.generic], weights: Floats) -> Floats:
        """Weights of some configurations as those of all."""
        return np.bincount(at, weights, math.prod(self.prior_.sizes)).astype(np.float64, copy=False)

    def _along_pairs(self, part: SurfacePart, places: Ints, weights: Floats) -> tuple[float, Floats]:
        """What `_along_grid` gives, from the covariance of each pair of configurations."""
        variance, shared = 0.0, np.zeros(len(self._places))
        for some in _chunks(len(places)):
            # Pairs of chunks: all pairs of a large region do not fit into memory. Each stands for its mirror too.
            for other in _chunks(some.start + 1):
                within = self._among(part, places[some], places[other])
                variance += (1 + (other != some)) * float(weights[some] @ within @ weights[other])
            shared += weights[some] @ self._among(part, places[some], self._places)
        return variance, shared

    def covariance(self, features: ArrayLike) -> Floats:
        """The covariance of the errors of these configurations' rates (delta method)."""
        places = known_places(self.prior_, severities(features))
        slope = self._slope(places, self._values(places)[0])
        total = np.zeros((len(places), len(places)))
        for part in self._parts:
            spent = part.spent(self._among(part, places, self._places))
            total += self._among(part, places, places) - spent @ spent.T
        return self._plugged * slope[:, None] * total * slope

    def _values(self, places: Ints) -> tuple[Floats, Floats]:
        """Estimate and variance of each eta; they are kept, on a grid too large for it the last: bounds come next."""
        if self._kept is None:
            if self._last is None or not np.array_equal(self._last[0], places):
                self._last = places, *self._new_values(places)
            return self._last[1:]
        at = self._numbered.keys(places)
        new = np.unique(at[np.isnan(self._kept[0, at])])
        if len(new):
            self._kept[::-1, new] = self._new_values(np.array(np.unravel_index(new, self.prior_.sizes)).T)[::-1]
        return self._kept[0, at], self._kept[1, at]

    def _new_values(self, places: Ints) -> tuple[Floats, Floats]:
        eta, variance = np.zeros(len(places)), np.zeros(len(places))
        tried = self._numbered(places) >= 0
        for part in self._parts:
            for some in _chunks(len(places)):
                note(f"estimating {len(places):,} tests" + (f", {some.start:,} done" if some.start else ""))
                cross = self._among(part, places[some], self._places)
                eta[some] += part.level + cross @ part.weights
                own = part.prior.variance(part.parameters, places[some])
                if self._share:
                    own += self._share * part.scatter(self._hermite(places[some]))[0] ** 2
                own -= (part.spent(cross) ** 2).sum(axis=1)
                variance[some] += part.widening(places[some], tried[some]) * own
        known, number = self._known(places)
        eta[known], variance[known] = np.arcsin(np.sqrt(self._won[number] / self._tried[number])), 0.0
        return np.clip(eta, 0, np.pi / 2), np.maximum(variance, 0)

    def _slope(self, places: Ints, eta: Floats) -> Floats:
        """The derivative of each rate by its eta; none where the rate is known."""
        slope = np.sin(2 * inside(eta))
        slope[self._known(places)[0]] = 0
        return slope

    def _known(self, places: Ints) -> tuple[Ints, Ints]:
        """Which of the configurations were measured on all inputs, and as which tests."""
        if not self._complete.any():
            return np.empty(0, np.intp), np.empty(0, np.intp)
        number = self._numbered(places)
        known = np.flatnonzero((number >= 0) & self._complete[number])
        return known, number[known]

    def _among(self, part: SurfacePart, rows: Ints, columns: Ints) -> Floats:
        """The prior covariance of the values of configurations, for the inputs at hand where asked for."""
        left = self._numbered(rows)
        right = np.arange(len(columns)) if columns is self._places else self._numbered(columns)
        if (left >= 0).all() and (right >= 0).all():
            whole = np.array_equal(left, np.arange(len(part.cross)))
            wide = part.cross if whole else part.cross[left]
            return wide if columns is self._places else wide[:, right]
        kernel = part.prior.kernel(part.parameters, rows, columns)
        if self._share:
            sd = [part.scatter(self._hermite(places))[0] for places in (rows, columns)]
            kernel += self._share * self._correlation(part, rows, columns) * np.multiply.outer(*sd)
        return kernel

    def _correlation(self, part: SurfacePart, rows: Ints, columns: Ints) -> Floats:
        """How trials of one input under two configurations are correlated."""
        if self.same_input_ is None or part.scatter.first:
            correlation = np.zeros((len(rows), len(columns)))
        else:
            left, right = (part.scatter(self._hermite(places))[1] for places in (rows, columns))
            active = self.prior_.active
            correlation = self.same_input_.correlation(rows[:, active], columns[:, active], left, right)
        number = (self._numbered if columns is self._places else Numbers(columns, self.prior_.sizes))(rows)
        same = np.flatnonzero(number >= 0)
        correlation[same, number[same]] = 1
        return correlation

    def _hermite(self, places: Ints) -> Floats:
        if places is self._places:
            return self._coefficients
        number = self._numbered(places)
        if (number >= 0).all():
            return self._coefficients[:, number]
        if self._kept is not None:
            return self._grid_coefficients()[:, self._numbered.keys(places)]
        parameters, weights = self._rough
        eta = self._level + self.prior_.kernel(parameters, places, self._places) @ weights
        return hermite(np.sin(inside(eta)) ** 2)

    def _grid_coefficients(self) -> Floats:
        """The Hermite coefficients of all configurations."""
        if self._whole is None:
            parameters, weights = self._rough
            whole = self._scattered(self._numbered.keys(self._places), weights)
            eta = self._level + WholeGrid(self.prior_).times(parameters, whole)
            self._whole = hermite(np.sin(inside(eta)) ** 2)
        return self._whole


def _chunks(rows: int) -> Iterator[slice]:
    return (slice(start, start + ROWS) for start in range(0, rows, ROWS))
