"""A Gaussian process over the severities: few inputs on every test, with a surface that neighbours share."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.errors import InputError
from testifai.runs.outcomes import Trials
from testifai.space import LISTED
from testifai.statistics.intervals import half_widths, skewed_reaches
from testifai.support.progress import note
from testifai.support.types import Bools, Floats, Record, RecordLike
from testifai.surrogates.base import PoolingSurrogate, are_numbered, drawn_from, selected
from testifai.surrogates.process.grid import GridIndex, WholeGrid, known_places, severities
from testifai.surrogates.process.input_correlation import (
    KNOTS,
    Dispersion,
    Independent,
    Information,
    SameInput,
    fit_same_input,
    hermite,
    thinned,
)
from testifai.surrogates.process.kernel import REMAINDER, Prior, inside, moments, rate
from testifai.surrogates.process.linear_algebra import Ints, cholesky, chunks, solve
from testifai.surrogates.process.low_rank import LowRankPosterior, SeenTests
from testifai.surrogates.process.marginal_likelihood import FitCache, maximise, posed
from testifai.surrogates.process.outlier_tests import STEPS as FIRST_STEPS
from testifai.surrogates.process.outlier_tests import OutlierTests, counted, find_outliers, overall, values_at
from testifai.surrogates.process.posterior import DeviatingPart, Growth, Scatter, SurfacePart
from testifai.surrogates.process.scores import EXPLAINED, ScoreFit, read_scores

LARGEST = 2_000  # tests whose covariance is computed; with more, only the prior's largest effects are kept
PILOT = 800  # tests used then for the prior's parameters and the correlation of trials of one input
STEPS = 60  # of the optimiser
ROUNDS = 3  # of Fisher scoring
# Errors of the parameters affect many tests in one direction. With 10 trials per test, squared errors of the regions of
# three recorded grids were 1.1 to 1.2 times what the covariance says, with 100 as it says.
PLUGGED = 2.0  # over the trials per test, the share to add to the covariance of several tests
# With scores, squared errors of the regions of 56 simulated runs (`benchmarks/scores.py`) were 1.1 times as large.
PLUGGED_SCORES = 0.1  # the least share to add
TYPICAL = 300  # tests whose pairs determine the correlation of trials of one input
PAIRED = 2_000  # configurations whose errors are computed pair by pair
SEQUENCED = 1_000  # the same if the order of application counts: pairs take twice as long
REMEMBERED = 4  # sets of configurations whose coefficients are cached, as they are needed several times


class Process(PoolingSurrogate):
    """Pass rates as a smooth surface with smaller and smaller interactions, and the covariance of its errors.

    On the scale eta = arcsin sqrt(rate) a trial has variance 1/4 everywhere. The surface is the Gaussian process of
    `kernel` with the parameters of highest posterior density; the trials enter by Fisher scoring. With single outcomes,
    the fit accounts for inputs that tests share, and with `population` it predicts the rates on exactly the inputs at
    hand. Bounds assume smoothness (`benchmarks/coverage.py` measures their coverage), but allow for uncertain
    parameters and for single tests off the surface.

    Single outcomes may be scores in 0..1, whose means are the rates; their dispersion is learned. Sums of scores
    without the single ones count as passes, which have the largest dispersion.

    `levels` are the severities of each axis; None: those seen in `fit`. Rows of twice as many columns also contain the
    position at which each perturbation is applied, on which the surface then depends.
    """

    name = "process"

    def __init__(self, levels: Sequence[Sequence[int]] | None = None, seed: int = 0, population: bool = True) -> None:
        self.levels, self.seed, self.population = levels, seed, population
        self._recalled: FitCache | None = None  # for the next fit
        self._parts: Sequence[SurfacePart] = ()  # the surfaces that add up to eta

    def recall(self, learned: RecordLike) -> None:
        self._recalled = FitCache(learned)

    def learned(self) -> Record:
        for part in self._parts:
            part.widening(self._places[:1], np.ones(1, bool))  # computed on first use
        return self._cache.as_dict()

    def fit(self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike, *, single: Trials | None = None) -> Self:
        rows = severities(features)
        levels = self._levels(rows)
        self.prior_ = Prior(levels, ordered=rows.shape[1] == 2 * len(levels))
        self._take(rows, passes, trials, single)
        self._cache, self._recalled = self._recalled or FitCache(), None
        self.parameters_ = self.prior_.mean
        eta = np.full(len(self._places), self._level)
        for steps in FIRST_STEPS:
            find = functools.partial(self._rough_mode, eta, steps)
            self.parameters_ = self._cache(f"rough, {steps} steps", len(self.parameters_), find)
            eta = self._smooth(eta)
        self._split(self._scores(eta))
        self.same_input_ = self._same_input(eta)
        self._condition(eta, learn=True)
        self._widen(rows, passes, trials, single)
        return self

    def update(
        self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike, *, single: Trials | None = None
    ) -> Self:
        rows = severities(features)
        parts, eta = self._parts, self._refined(rows, passes, trials, single)
        scores = self._scores(eta) if len(parts) > 1 else None
        self._split(scores)
        for new, old in zip(self._parts, parts, strict=False):
            new.widening = old.widening
            if scores:
                new.parameters, new.level = old.parameters, old.level
        self._cache = FitCache()
        if self.same_input_ is None:
            self.same_input_ = self._same_input(eta)
        self._condition(eta, learn=False)
        self._widen(rows, passes, trials, single)
        return self

    def deviate(
        self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike, *, single: Trials | None = None
    ) -> Self:
        others, seen = self._parts, self._places
        eta = self._refined(severities(features), passes, trials, single)
        self._split(self._scores(eta) if len(others) > 1 else None)
        matched = [[one] for one in others] if len(self._parts) == len(others) else [others]
        self._parts = [
            DeviatingPart(shared, seen, part.scatter, self._places)
            for shared, part in zip(matched, self._parts, strict=True)
        ]
        self._cache = FitCache()
        self._condition(eta, learn=True)
        return self

    def _refined(self, rows: NDArray[np.int64], passes: ArrayLike, trials: ArrayLike, single: Trials | None) -> Floats:
        self._take(rows, passes, trials, single)
        eta = np.full(len(self._places), self._level)
        for _ in range(ROUNDS):
            eta = self._smooth(eta)
        return eta

    def _rough_mode(self, eta: Floats, steps: int) -> Floats:
        values, noise = self._rough_values(eta)
        problem = posed(self.prior_, self._places, values, noise, self.seed)
        return maximise(self.prior_, problem, self.parameters_, steps)

    def _levels(self, rows: NDArray[np.int64]) -> list[list[int]]:
        if self.levels is None:
            return [np.unique(column).tolist() for column in rows.T]
        levels = [sorted(set(map(int, axis))) for axis in self.levels]
        ordered = rows.shape[1] == 2 * len(levels) and are_numbered(rows)
        if len(levels) != rows.shape[1] and not ordered:
            raise InputError(f"features: {rows.shape[1]} severities to a row; accepted: {len(levels)}, as in levels")
        return levels

    def _take(self, rows: NDArray[np.int64], passes: ArrayLike, trials: ArrayLike, single: Trials | None) -> None:
        """Keep the tests that have trials, or a sample of more than LARGEST."""
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
            used = np.sort(np.random.default_rng(self.seed).permutation(used)[: min(PILOT, LARGEST)])
        self._low_rank: LowRankPosterior | None = None
        self._places, self._rates, self._tried = places[used], won[used] / tried[used], tried[used]
        self._numbered = self._numbers(self._places)
        self._share = 1 / single.inputs if self.population and single is not None else 0.0
        self._complete = self._tried * self._share == 1
        self._tried = counted(self._places, self._tried)
        if single is None:
            self._single, self._won = None, self._rates * self._tried
            self._test, self._passed = np.arange(len(used)), self._rates
        else:
            self._single = thinned(selected(single, used, len(rows)), self._tried)
            self._test, self._passed = self._single.test, self._single.passed.astype(np.float64)
            self._won = np.bincount(self._test, self._passed, len(used)).astype(np.float64)
        self._level = overall(self._won, self._tried)
        graded = self._single is not None and self._single.graded
        self._dispersion = Dispersion(np.ones(len(KNOTS))) if graded else None
        self._plugged = 1 + max(PLUGGED / float(self._tried.mean()), PLUGGED_SCORES if graded else 0.0)

    def _worth(self, rates: Floats) -> Floats | float:
        """Return the number of passes and failures with as much information as a trial at these rates."""
        return 1.0 if self._dispersion is None else 1 / self._dispersion(rates)

    def _widen(self, rows: NDArray[np.int64], passes: ArrayLike, trials: ArrayLike, single: Trials | None) -> None:
        """Learn the surface from all tests if `_take` kept a sample of them."""
        won, tried = np.asarray(passes, np.float64), np.asarray(trials, np.float64)
        used = np.flatnonzero(tried)
        if len(used) <= LARGEST:
            return
        places, won, tried = self.prior_.places(rows)[used], won[used], tried[used]
        learned = counted(places, tried)
        complete, inputs = tried * self._share == 1, 1 / self._share if self._share else np.inf
        worth = self._worth(won / tried)
        seen = SeenTests(places, worth * won * learned / tried, worth * learned, worth * inputs, self._offset(single))
        self._low_rank = LowRankPosterior(self.prior_, self.parameters_, seen, self._level)
        self._numbered, self._complete, self._rates = self._low_rank.numbered, complete, won / tried
        self._outliers: OutlierTests | None = self._low_rank.outliers

    def _offset(self, single: Trials | None) -> float:
        """Return the variance of the offset of the inputs used from all inputs, on the scale of eta."""
        if single is None or self.same_input_ is None:
            return 0.0
        some = np.random.default_rng(self.seed).permutation(len(self._places))[:TYPICAL]
        correlation = self._correlation(self._parts[0], self._places[some], self._places[some])
        typical = (correlation.sum() - len(some)) / max(len(some) * (len(some) - 1), 1)
        often = np.bincount(single.place).astype(np.float64)
        different = often.sum() ** 2 / float(often @ often)
        spread = float((self._terms(self._rates[some]) ** 2).sum(axis=0).mean()) if self._dispersion else 1.0
        return float(spread * max(typical, 0.0) / 4 * max(1 / different - self._share, 0.0))

    def _rough_values(self, eta: Floats) -> tuple[Floats, Floats]:
        values, noise = values_at(eta, self._won, self._tried)
        return values - self._level, noise / self._worth(np.sin(inside(eta)) ** 2)

    def _smooth(self, eta: Floats) -> Floats:
        """Return the surface at the tests as if every trial had its own input; also learn the dispersion."""
        kernel = self.prior_.kernel(self.parameters_, self._places, self._places)
        values, noise = self._rough_values(eta)
        factor = cholesky(kernel + np.diag(noise))
        weights = solve(factor, values)
        smoothed: Floats = self._level + kernel @ weights
        self._rough, self._kernel = (self.parameters_, weights), kernel
        if self._dispersion is not None:
            inverse = solve(factor, np.eye(len(kernel)))
            left = 1 - (1 - noise * np.diag(inverse)) / self._tried  # of a trial's variance, by the surface through it
            self._dispersion = Dispersion.of(inside(smoothed)[self._test], self._passed, left[self._test])
        self._coefficients = self._terms(np.sin(inside(smoothed)) ** 2)
        return smoothed

    def _scores(self, eta: Floats) -> ScoreFit | None:
        if self._single is None:
            return None
        return read_scores(self._single, inside(eta), self._kernel, self._coefficients)

    def _split(self, scores: ScoreFit | None) -> None:
        self._read = scores
        if scores is None:
            scatter = Scatter() if self._dispersion is None else Scatter(last=1)
            self._parts = [SurfacePart(self.prior_, self.parameters_, scatter, near_clean=True)]
            return
        prior = Prior(self.prior_.levels, REMAINDER, ordered=self.prior_.ordered)
        self._parts = [
            SurfacePart(self.prior_, self.parameters_, Scatter(last=EXPLAINED, scale=scores.scale), near_clean=True),
            SurfacePart(prior, prior.mean, Scatter(first=EXPLAINED, scale=scores.rest_scale)),
        ]

    def _trials(self, eta: Floats) -> list[tuple[Floats, Floats]]:
        """Return for each part a reference for each test and the trials' deviations from it, linearised at eta."""
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
        places = self._places[:, prior.active]
        find = functools.partial(fit_same_input, single, residuals, places, rows, sizes, self.seed)
        return SameInput.of(self._cache("same input", 2 + sum(sizes) - len(sizes), find), sizes)

    def _condition(self, eta: Floats, *, learn: bool) -> None:
        size = self._numbered.size
        self._kept = np.full((2, size), np.nan) if size <= LISTED else None
        self._on_grid = self._kept is not None and not self.prior_.ordered
        grid = self.prior_.sizes if self._on_grid else ()
        self._growth = Growth(lambda places: self._values(places)[0], self._places, grid)
        self._last: tuple[Ints, Floats, Floats] | None = None
        self._whole: Floats | None = None
        self._asked: dict[bytes, Floats] = {}
        for number, (part, deviations) in enumerate(zip(self._parts, self._trials(eta), strict=True)):
            sd, _ = part.scatter(self._coefficients)
            correlation = self._correlation(part, self._places, self._places)
            information: Information | Independent
            if self._single is not None and self.same_input_ is not None and not part.scatter.first:
                information = Information(self._single, len(self._places), correlation)
            else:
                weight = self._tried if self._single is None else np.ones(len(self._test))
                information = Independent(self._test, weight, len(self._places))
            part.see(information, sd, self._test)
            if learn:
                part.tune(self._places, *part.data(*deviations), STEPS, self.seed, self._cache, f"part {number}")
            kernel, shared = part.kernel(self._places, self._places), self._share * correlation * np.outer(sd, sd)
            part.condition(kernel, shared)
        if learn and self._read is None:
            self.parameters_ = self._parts[0].parameters
        eta = self._scored(eta)
        self._outliers = self._outlier_tests()
        if self._outliers is not None and self._outliers.any_likely:  # these are hardly informative
            self._parts[0].condition(kernel, shared, self._outliers.off)
            self._scored(eta)
            self._outliers = self._outlier_tests()
        for part in self._parts:
            part.forget()
        del self._kernel

    def _scored(self, eta: Floats) -> Floats:
        centres = [part.centre(self._places) for part in self._parts]
        for _ in range(ROUNDS):
            for part, deviations, centre in zip(self._parts, self._trials(eta), centres, strict=True):
                part.learn(part.values(*deviations) - centre)
            eta = sum((part.cross @ part.weights for part in self._parts), sum(centres, np.zeros(len(eta))))
        return eta

    def _outlier_tests(self) -> OutlierTests | None:
        if len(self._parts) > 1:  # the surface of values and the remainder
            return None
        (part,) = self._parts
        predicted, spread = part.left_out()
        inputs = 1 / self._share if self._share else np.inf
        surface, worth = part.centre(self._places) + predicted, self._worth(self._won / self._tried)
        return find_outliers(surface, spread, worth * self._won, worth * self._tried, worth * inputs)

    def predict(self, features: ArrayLike) -> tuple[Floats, Floats]:
        return moments(*self._moments(self._places_of(features)))

    def bounds(self, features: ArrayLike, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Return the lower and upper bound of each rate, computed on the scale of eta."""
        places = self._places_of(features)
        eta, variance = self._values(places)
        variance = variance * self._growth(places)
        half = half_widths(confidence) * np.sqrt(variance)
        low, high = eta - half, eta + half
        at, tests = self._tests(places, complete=False)
        if self._outliers is not None and len(at):
            tail = (1 - confidence) / 2
            low[at], high[at] = (self._outliers.quantile(tests, eta[at], variance[at], q) for q in (tail, 1 - tail))
        return rate(low), rate(high)

    def region(
        self, features: ArrayLike, confidence: float = 0.95, of: int | None = None
    ) -> tuple[float, float, float]:
        """Return the mean rate over these configurations, with bounds from the covariance of all their errors.

        As in Wilson's interval, the variance at either bound is that of the rates there.
        """
        rows = severities(features)
        return self.regions(rows, np.ones((1, len(rows)), bool), [of], confidence)[0]

    def regions(
        self, features: ArrayLike, members: Bools, of: Sequence[int | None], confidence: float = 0.95
    ) -> list[tuple[float, float, float]]:
        places = self._places_of(features)
        eta, own = self._moments(places)
        off = np.maximum(own - self._values(places)[1], 0)  # the variance of tests off the surface
        rates = moments(eta, own)[0]
        # The number of pairs is quadratic, and a sample determines the error of a mean nearly as well.
        most = SEQUENCED if self.prior_.ordered else PAIRED
        many = not self._on_grid and len(places) > most
        some = np.linspace(0, len(places) - 1, most).astype(np.intp) if many else np.arange(len(places))
        means = self._means(places[some], eta[some], rates[some], off[some], members[:, some], confidence)
        found = []
        for chosen, (mean, low, high), size in zip(members, means, of, strict=True):
            estimate = float(rates[chosen].mean())
            apart = estimate - mean
            bounds = (estimate, max(low + apart, 0.0), min(high + apart, 1.0))
            found.append(drawn_from(rates[chosen], bounds, size, confidence))
        return found

    def _means(
        self, places: Ints, eta: Floats, rates: Floats, off: Floats, members: Bools, confidence: float
    ) -> Iterator[tuple[float, float, float]]:
        shares = members / np.maximum(members.sum(axis=1, keepdims=True), 1)
        slopes = (self._slope(places, eta) * shares).T
        unsure = self._unsure(places)[:, None]
        errors = unsure * (self._errors_along(places, unsure * slopes) + off[:, None] * unsure * slopes)
        for chosen, slope, along in zip(members, slopes.T, errors.T, strict=True):
            estimate, variance = float(rates[chosen].mean()), float(slope @ along)
            if variance <= 0:
                yield estimate, estimate, estimate
                continue
            # Growth of the variance with the mean: rates sin^2 eta have slopes sin 2 eta, which change by 2 cos 2 eta,
            # and an error of 1 in the mean is most probably due to errors of along / variance.
            growth = 4 * float(np.cos(2 * eta[chosen]) @ along[chosen] ** 2) / (np.count_nonzero(chosen) * variance)
            below, above = skewed_reaches(variance, growth, half_widths(confidence))
            # The bounds are relative to the surface itself: its mean over the posterior is shifted away from 0 and 1.
            centre = float(rate(eta[chosen]).mean())
            yield estimate, max(min(centre - below, estimate), 0.0), min(max(centre + above, estimate), 1.0)

    def _unsure(self, places: Ints) -> Floats:
        """Return the factor on errors of several configurations because parameters are uncertain.

        Without trials, it is that of a single configuration. In a simulated space of 15 axes, regions of mild
        severities on many axes were covered in .78 without it.
        """
        tried = self._numbered(places) >= 0
        ratios = np.where(tried, 1.0, self._parts[0].widening(places, tried))
        return np.sqrt(np.maximum(ratios, self._plugged) * self._growth(places))

    def off_surface(self, features: ArrayLike) -> Floats:
        places = self._places_of(features)
        chance = np.zeros(len(places))
        at, tests = self._tests(places, complete=False)
        if self._outliers is not None:
            chance[at] = self._outliers.chance[tests]
        return chance

    def covariance(self, features: ArrayLike) -> Floats:
        places = self._places_of(features)
        eta, own = self._moments(places)
        slope = self._unsure(places) * self._slope(places, eta)
        total: Floats = np.diag(np.maximum(own - self._values(places)[1], 0))  # of tests off the surface
        if self._low_rank is not None:
            total += self._low_rank.covariance(places)
        for part in [] if self._low_rank is not None else self._parts:
            spent = part.spent(self._among(part, places, self._places))
            total += self._among(part, places, places) - spent @ spent.T
        return np.asarray(slope[:, None] * total * slope)

    def _moments(self, places: Ints) -> tuple[Floats, Floats]:
        eta, variance = self._values(places)
        at, tests = self._tests(places, complete=False)
        if self._outliers is not None and len(at):
            eta, variance = eta.copy(), variance.copy()
            eta[at], variance[at] = self._outliers.moments(tests, eta[at], variance[at])
        return eta, variance

    def _places_of(self, features: ArrayLike) -> Ints:
        return known_places(self.prior_, severities(features))

    def _tests(self, places: Ints, *, complete: bool) -> tuple[Ints, Ints]:
        """Return which configurations were measured on all inputs, or on some, and as which tests."""
        number = self._numbered(places)
        at = np.flatnonzero((number >= 0) & (self._complete[number] == complete))
        return at, number[at]

    def _values(self, places: Ints) -> tuple[Floats, Floats]:
        if self._kept is None:
            if self._last is None or not np.array_equal(self._last[0], places):
                self._last = places, *self._new_values(places)
            return self._last[1:]
        at = self._numbered.keys(places)
        new = np.unique(at[np.isnan(self._kept[0, at])])
        if len(new):
            self._kept[::-1, new] = self._new_values(self._numbered.places(new))[::-1]
        return self._kept[0, at], self._kept[1, at]

    def _new_values(self, places: Ints) -> tuple[Floats, Floats]:
        eta, variance = np.zeros(len(places)), np.zeros(len(places))
        tried = self._numbered(places) >= 0
        if self._low_rank is not None:
            note(f"estimating {len(places):,} tests")
            eta, variance = self._low_rank.values(places)
            variance *= self._parts[0].widening(places, tried)
        for part in [] if self._low_rank is not None else self._parts:
            for some in chunks(len(places)):
                note(f"estimating {len(places):,} tests" + (f", {some.start:,} done" if some.start else ""))
                rows = places[some]
                cross = self._among(part, rows, self._places)
                eta[some] += part.centre(rows) + cross @ part.weights
                own = part.own_variance(rows)
                if self._share:
                    own = own + self._share * part.scatter(self._hermite(rows))[0] ** 2
                own = own - (part.spent(cross) ** 2).sum(axis=1)
                variance[some] += part.widening(rows, tried[some]) * own
        known, number = self._tests(places, complete=True)
        eta[known], variance[known] = np.arcsin(np.sqrt(self._rates[number])), 0.0
        return np.clip(eta, 0, np.pi / 2), np.maximum(variance, 0)

    def _slope(self, places: Ints, eta: Floats) -> Floats:
        slope = np.sin(2 * inside(eta))
        slope[self._tests(places, complete=True)[0]] = 0
        return slope

    def _errors_along(self, places: Ints, weights: Floats) -> Floats:
        """Return the posterior covariance of each eta with weighted sums of them, a column for each."""
        if self._low_rank is not None:
            return self._low_rank.along(places, weights)
        number = self._numbered(places)
        if (number >= 0).all():
            # Weights of all tests, 0 for others, are faster than a selection of the covariance.
            whole = np.zeros((len(self._places), weights.shape[1]))
            np.add.at(whole, number, weights)
            among_tests: Floats = sum((part.error_along(whole) for part in self._parts), np.zeros(whole.shape))
            return among_tests[number]
        note(f"adding up {len(places):,} tests")
        along = np.zeros(weights.shape)
        for part in self._parts:
            own, of_tests = self._along(part, places, weights, (places, self._places))
            (explained,) = self._along(part, self._places, part.root @ part.spent(of_tests.T).T, (places,))
            along += own - explained
        return along

    def _along(self, part: SurfacePart, places: Ints, weights: Floats, wanted: Sequence[Ints]) -> list[Floats]:
        """Return the prior covariances of the values of `wanted` with weighted sums of those of places."""
        # Pairs of configurations are faster if there are few, and the only way if no grid fits into memory.
        few = len(places) * sum(map(len, wanted)) < math.prod(self.prior_.sizes)
        if few or not self._on_grid or not part.on_grid:
            return [self._along_pairs(part, places, weights, rows) for rows in wanted]
        whole = np.column_stack([self._along_grid(part, places, column) for column in weights.T])
        return [whole[self._numbered.keys(rows)] for rows in wanted]

    def _along_grid(self, part: SurfacePart, places: Ints, weights: Floats) -> Floats:
        """Return the same for all configurations, by Kronecker products."""
        whole = self._scattered(places, weights)
        along = part.times(whole)
        if self._share:
            sd, rows = part.scatter(self._grid_coefficients())
            spread = sd * whole
            if self.same_input_ is not None and not part.scatter.first:
                spread = self.same_input_.times(rows, spread)
            along += self._share * sd * spread
        return along

    def _scattered(self, places: Ints, weights: Floats) -> Floats:
        return np.bincount(self._numbered.keys(places), weights, math.prod(self.prior_.sizes)).astype(np.float64)

    def _along_pairs(self, part: SurfacePart, places: Ints, weights: Floats, wanted: Ints) -> Floats:
        along = np.zeros((len(wanted), *weights.shape[1:]))
        for some in chunks(len(wanted)):
            for other in chunks(len(places)):
                along[some] += self._among(part, wanted[some], places[other]) @ weights[other]
        return along

    def _among(self, part: SurfacePart, rows: Ints, columns: Ints) -> Floats:
        """Return the prior covariance of the values of configurations, with `population` on the inputs at hand."""
        left = self._numbered(rows)
        right = np.arange(len(columns)) if columns is self._places else self._numbered(columns)
        if (left >= 0).all() and (right >= 0).all():
            whole = np.array_equal(left, np.arange(len(part.cross)))
            wide = part.cross if whole else part.cross[left]
            return wide if columns is self._places else wide[:, right]
        kernel = part.kernel(rows, columns)
        if self._share:
            sd = [part.scatter(self._hermite(places))[0] for places in (rows, columns)]
            kernel += self._share * self._correlation(part, rows, columns) * np.multiply.outer(*sd)
        return kernel

    def _correlation(self, part: SurfacePart, rows: Ints, columns: Ints) -> Floats:
        if self.same_input_ is None or part.scatter.first:
            correlation = np.zeros((len(rows), len(columns)))
        else:
            left, right = (part.scatter(self._hermite(places))[1] for places in (rows, columns))
            active = self.prior_.active
            correlation = self.same_input_.correlation(rows[:, active], columns[:, active], left, right)
        number = (self._numbered if columns is self._places else self._numbers(columns))(rows)
        same = np.flatnonzero(number >= 0)
        correlation[same, number[same]] = 1
        return correlation

    def _numbers(self, places: Ints) -> GridIndex:
        return GridIndex(places, self.prior_.sizes, ordered=self.prior_.ordered)

    def _hermite(self, places: Ints) -> Floats:
        if places is self._places:
            return self._coefficients
        number = self._numbered(places)
        if (number >= 0).all():
            return self._coefficients[:, number]
        if self._on_grid:
            return self._grid_coefficients()[:, self._numbered.keys(places)]
        if (key := places.tobytes()) not in self._asked:
            parameters, weights = self._rough
            eta = self._level + self.prior_.kernel(parameters, places, self._places) @ weights
            if len(self._asked) >= REMEMBERED:
                self._asked.clear()
            self._asked[key] = self._terms(np.sin(inside(eta)) ** 2)
        return self._asked[key]

    def _grid_coefficients(self) -> Floats:
        if self._whole is None:
            parameters, weights = self._rough
            eta = self._level + WholeGrid(self.prior_).times(parameters, self._scattered(self._places, weights))
            self._whole = self._terms(np.sin(inside(eta)) ** 2)
        return self._whole

    def _terms(self, rates: Floats) -> Floats:
        return hermite(rates) if self._dispersion is None else self._dispersion.terms(rates)
