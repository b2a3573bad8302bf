"""A Gaussian process over the severities: few inputs on every test, tied together by what neighbours have in common."""

from __future__ import annotations

import functools
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
from testifai.surrogates.base import are_numbered, drawn_from
from testifai.surrogates.process.count_fit import STEPS as FIRST_STEPS
from testifai.surrogates.process.count_fit import OddTests, counted, odd_tests, overall, values_at
from testifai.surrogates.process.deviation import DeviatingPart
from testifai.surrogates.process.fit_cache import Notes
from testifai.surrogates.process.grid import known_places, severities
from testifai.surrogates.process.input_correlation import (
    Dispersion,
    Independent,
    Information,
    SameInput,
    fit_same_input,
    selected,
    thinned,
)
from testifai.surrogates.process.kernel import REMAINDER, Ints, Prior, inside, moments, rate
from testifai.surrogates.process.low_rank import Seen, Wide
from testifai.surrogates.process.marginal_likelihood import maximise, posed
from testifai.surrogates.process.posterior import Covariances, Scatter, SurfacePart, chunks
from testifai.surrogates.process.scores import EXPLAINED, ScoreFit, read_scores

LARGEST = 2_000  # tests up to which the covariance of all of them is held; of more, the prior's largest effects are
PILOT = 800  # of more tests than that, so many tell the prior's parameters and how trials of one input hang together
STEPS = 60  # of the optimiser
ROUNDS = 3  # of Fisher scoring
# For several tests at once parameters count as known; what they are off by errs on many of them in one direction. With
# 10 trials per test, squared errors of the regions of three recorded grids were 1.1 to 1.2 times what the covariance
# says, with 100 as it says.
PLUGGED = 2.0  # over the trials per test, the share to add to the covariance of several tests
# Of scores, squared errors of the regions of 56 simulated runs (`benchmarks/scores.py`) were 1.1 times what it says.
PLUGGED_SCORES = 0.1  # the least share to add
TYPICAL = 300  # tests whose pairs say how trials of one input hang together
PAIRED = 2_000  # configurations whose errors are looked at pair by pair
SEQUENCED = 1_000  # of them where the order of application counts: pairs take twice as long


class Process(Covariances):
    """Pass rates as a smooth surface with smaller and smaller interactions, and the covariance of its errors.

    On the scale eta = arcsin sqrt(rate) a trial has variance 1/4 everywhere. The surface is the Gaussian process of
    `kernel` with the parameters of highest posterior density; the trials enter by Fisher scoring. Where
    single outcomes are given, the fit knows that tests share inputs, and with `population` it predicts the rates on
    exactly the inputs at hand: a test measured on all of them is known.

    Bounds of single tests rest on smoothness (`benchmarks/coverage.py` says how far), but allow for parameters that are
    not known (`integration`) and for single tests off the surface, as far as their own trials show it (`odd`).

    Single outcomes may be scores in 0..1: rates are their means then, and how far trials scatter is learned
    (`dispersion`). Sums of scores without the single ones count as passes, which scatter most.

    `levels` are the severities of each axis; None takes those seen in `fit`. Rows of twice as many columns as levels
    say after the severities at which place each is applied: then the order of application has its part in the surface.

    >>> process = Process().fit([[0], [1], [2], [3]], passes=[96, 90, 79, 61], trials=[100] * 4)
    >>> mean, variance = process.predict([[0], [3]])
    >>> mean.round(1).tolist(), bool((variance < 0.05**2).all())
    ([1.0, 0.6], True)
    """

    name = "process"
    _parts: list[SurfacePart]

    def __init__(self, levels: Sequence[Sequence[int]] | None = None, seed: int = 0, population: bool = True) -> None:
        self.levels = levels
        self.seed = seed
        self.population = population
        self._recalled: Notes | None = None  # what the next fit need not look for

    def recall(self, learned: RecordLike) -> None:
        self._recalled = Notes(learned)

    def learned(self) -> Record:
        """The parameters of all that was fitted, and what bounds are widened by for not knowing them."""
        for part in self._parts:
            part.widening(self._places[:1], np.ones(1, bool))  # found out when first asked for
        return self._notes.as_dict()

    # -- fitting ------------------------------------------------------------------------------------------------

    def fit(self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike, *, single: Trials | None = None) -> Self:
        rows = severities(features)
        levels = self._levels(rows)
        self.prior_ = Prior(levels, ordered=rows.shape[1] == 2 * len(levels))
        self._take(rows, passes, trials, single)
        self._notes, self._recalled = self._recalled or Notes(), None
        self.parameters_ = self.prior_.mean
        eta = np.full(len(self._places), self._level)
        for steps in FIRST_STEPS:
            self.parameters_ = self._notes(
                f"rough, {steps} steps", len(self.parameters_), functools.partial(self._rough_mode, eta, steps)
            )
            eta = self._smooth(eta)
        self._split(self._scores(eta))
        self.same_input_ = self._same_input(eta)
        self._condition(eta, learn=True)
        self._widen(rows, passes, trials, single)
        return self

    def update(
        self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike, *, single: Trials | None = None
    ) -> Self:
        """Take other counts and keep the parameters of the last `fit`: several times faster."""
        rows = severities(features)
        self._take(rows, passes, trials, single)
        eta = np.full(len(self._places), self._level)
        for _ in range(ROUNDS):
            eta = self._smooth(eta)
        parts, scores = self._parts, self._scores(eta) if len(self._parts) > 1 else None
        self._split(scores)
        for new, old in zip(self._parts, parts, strict=False):
            new.widening = old.widening
            if scores:
                new.parameters, new.level = old.parameters, old.level
        self._notes = Notes()
        if self.same_input_ is None:
            self.same_input_ = self._same_input(eta)
        self._condition(eta, learn=False)
        self._widen(rows, passes, trials, single)
        return self

    def deviate(
        self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike, *, single: Trials | None = None
    ) -> Self:
        """Take the counts of other inputs, whose surface is this one plus a deviation: its size is learned."""
        others, seen = self._parts, self._places
        self._take(severities(features), passes, trials, single)
        eta = np.full(len(self._places), self._level)
        for _ in range(ROUNDS):
            eta = self._smooth(eta)
        self._split(self._scores(eta) if len(others) > 1 else None)
        matched = [[one] for one in others] if len(self._parts) == len(others) else [others]
        self._parts = [
            DeviatingPart(shared, seen, part.scatter, self._places)
            for shared, part in zip(matched, self._parts, strict=True)
        ]
        self._notes = Notes()
        self._condition(eta, learn=True)
        return self

    def _rough_mode(self, eta: Floats, steps: int) -> Floats:
        """Parameters that explain the tests' values about this surface, after so many steps from those at hand."""
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
        """Keep the tests that have trials, of more than LARGEST some."""
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
        self._wide = None
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
        self._dispersion = Dispersion.most() if graded else None
        self._plugged = 1 + max(PLUGGED / float(self._tried.mean()), PLUGGED_SCORES if graded else 0.0)

    def _worth(self, rates: Floats) -> Floats | float:
        """How many passes and failures a trial at these rates is worth."""
        return 1.0 if self._dispersion is None else 1 / self._dispersion(rates)

    def _widen(self, rows: NDArray[np.int64], passes: ArrayLike, trials: ArrayLike, single: Trials | None) -> None:
        """Where there are more tests than were looked at so far, learn the surface from all of them."""
        won, tried = np.asarray(passes, np.float64), np.asarray(trials, np.float64)
        used = np.flatnonzero(tried)
        if len(used) <= LARGEST:
            return
        places, won, tried = self.prior_.places(rows)[used], won[used], tried[used]
        learned = counted(places, tried)
        complete, inputs = tried * self._share == 1, 1 / self._share if self._share else np.inf
        worth = self._worth(won / tried)
        seen = Seen(places, worth * won * learned / tried, worth * learned, worth * inputs, self._offset(single))
        self._wide = Wide(self.prior_, self.parameters_, seen, self._level)
        self._numbered, self._complete, self._rates = self._wide.numbered, complete, won / tried
        self._odd: OddTests | None = self._wide.odd

    def _offset(self, single: Trials | None) -> float:
        """How far the inputs used may be off all of them together: a variance on the scale of eta."""
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
        """One pseudo-value per test, less the overall level, and its variance, as if no inputs were shared."""
        values, noise = values_at(eta, self._won, self._tried)
        return values - self._level, noise / self._worth(np.sin(inside(eta)) ** 2)

    def _smooth(self, eta: Floats) -> Floats:
        """The surface at the tests, as if every trial had its own input; kept to tell how outcomes are distributed."""
        from scipy.linalg import cho_factor, cho_solve

        kernel = self.prior_.kernel(self.parameters_, self._places, self._places)
        values, noise = self._rough_values(eta)
        factor = cho_factor(kernel + np.diag(noise), lower=True, check_finite=False)
        weights: Floats = cho_solve(factor, values, check_finite=False)
        smoothed: Floats = self._level + kernel @ weights
        self._rough, self._kernel = (self.parameters_, weights), kernel
        if self._dispersion is not None:
            inverse: Floats = cho_solve(factor, np.eye(len(kernel)), check_finite=False)
            left = 1 - (1 - noise * np.diag(inverse)) / self._tried  # of a trial's variance, by the surface through it
            self._dispersion = Dispersion.of(inside(smoothed)[self._test], self._passed, left[self._test])
        self._coefficients = self._terms(np.sin(inside(smoothed)) ** 2)
        return smoothed

    def _scores(self, eta: Floats) -> ScoreFit | None:
        """What the oracle's values explain, where there are any."""
        if self._single is None:
            return None
        return read_scores(self._single, inside(eta), self._kernel, self._coefficients)

    def _split(self, scores: ScoreFit | None) -> None:
        """One surface, or that which values explain and the remainder."""
        self._read = scores
        scatter = Scatter() if self._dispersion is None else Scatter(last=1)
        self._parts = [SurfacePart(self.prior_, self.parameters_, scatter)]
        if scores is not None:
            prior = self.prior_.with_medians(REMAINDER)
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
        places = self._places[:, prior.active]
        found = self._notes(
            "same input",
            2 + sum(size - 1 for size in sizes),
            lambda: fit_same_input(single, residuals, places, rows, sizes, self.seed),
        )
        return SameInput.of(found, sizes)

    def _condition(self, eta: Floats, *, learn: bool) -> None:
        """The posterior of every part."""
        size = self._numbered.size
        self._kept = np.full((2, size), np.nan) if size <= LISTED else None
        self._on_grid = self._kept is not None and not self.prior_.ordered
        self._last: tuple[Ints, Floats, Floats] | None = None
        self._whole = None
        self._asked = {}
        for number, (part, deviations) in enumerate(zip(self._parts, self._trials(eta), strict=True)):
            sd, _ = part.scatter(self._coefficients)
            correlation = self._correlation(part, self._places, self._places)
            part.see(self._information(part, correlation), sd, self._test)
            if learn:
                part.tune(self._places, *part.data(*deviations), STEPS, self.seed, self._notes, f"part {number}")
            kernel = part.kernel(self._places, self._places)
            shared = self._share * correlation * np.multiply.outer(sd, sd)
            part.condition(kernel, shared)
        if learn and self._read is None:
            self.parameters_ = self._parts[0].parameters
        eta = self._scored(eta)
        self._odd = self._odd_tests()
        if self._odd is not None and self._odd.any_likely:  # these say little about the surface
            self._parts[0].condition(kernel, shared, self._odd.off)
            self._scored(eta)
            self._odd = self._odd_tests()
        for part in self._parts:
            part.forget()
        del self._kernel

    def _scored(self, eta: Floats) -> Floats:
        """The surface after some rounds of Fisher scoring."""
        centres = [part.centre(self._places) for part in self._parts]
        for _ in range(ROUNDS):
            for part, deviations, centre in zip(self._parts, self._trials(eta), centres, strict=True):
                part.learn(part.values(*deviations) - centre)
            eta = sum((part.cross @ part.weights for part in self._parts), sum(centres, np.zeros(len(eta))))
        return eta

    def _odd_tests(self) -> OddTests | None:
        """Tests off the surface; with values beside the outcomes there are two surfaces, and none is looked for."""
        if len(self._parts) > 1:
            return None
        (part,) = self._parts
        foretold, spread = part.left_out()
        inputs = 1 / self._share if self._share else np.inf
        surface, worth = part.centre(self._places) + foretold, self._worth(self._won / self._tried)
        return odd_tests(surface, spread, worth * self._won, worth * self._tried, worth * inputs)

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
        return moments(*self._moments(known_places(self.prior_, severities(features))))

    def bounds(self, features: ArrayLike, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper bound of each rate, made on the scale of eta."""
        places = known_places(self.prior_, severities(features))
        eta, variance = self._values(places)
        half = half_widths(confidence) * np.sqrt(variance)
        low, high = eta - half, eta + half
        at, tests = self._open(places)
        if self._odd is not None and len(at):
            tail = (1 - confidence) / 2
            low[at], high[at] = (self._odd.quantile(tests, eta[at], variance[at], q) for q in (tail, 1 - tail))
        return rate(low), rate(high)

    def region(
        self, features: ArrayLike, confidence: float = 0.95, of: int | None = None
    ) -> tuple[float, float, float]:
        """The mean rate over these configurations, with bounds from the covariance of all their errors.

        A mean that is too high because inputs that fail were drawn too seldom has more variance than it seems: as in
        Wilson's interval, the variance at either bound is that of the rates there.
        """
        rows = severities(features)
        return self.regions(rows, np.ones((1, len(rows)), bool), [of], confidence)[0]

    def regions(
        self, features: ArrayLike, members: Bools, of: Sequence[int | None], confidence: float = 0.95
    ) -> list[tuple[float, float, float]]:
        """The means over several sets of these configurations, the covariance of whose errors is made only once."""
        places = known_places(self.prior_, severities(features))
        eta, own = self._moments(places)
        off = np.maximum(own - self._values(places)[1], 0)  # the variance of tests off the surface
        rates = moments(eta, own)[0]
        # Pairs are the square of their number, and some configurations tell the error of a mean nearly as well as all.
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
        """The mean rates over sets of configurations, and their bounds."""
        shares = members / np.maximum(members.sum(axis=1, keepdims=True), 1)
        slopes = (self._slope(places, eta) * shares).T
        unsure = self._unsure(places)[:, None]
        errors = unsure * (self._errors_along(places, unsure * slopes) + off[:, None] * unsure * slopes)
        for chosen, slope, along in zip(members, slopes.T, errors.T, strict=True):
            estimate, variance = float(rates[chosen].mean()), float(slope @ along)
            if variance <= 0:
                yield estimate, estimate, estimate
                continue
            # By how much the variance grows with the mean: rates sin^2 eta have slopes sin 2 eta, which change by 2
            # cos 2 eta, and a mean that is off by 1 is so most probably by along / variance.
            growth = 4 * float(np.cos(2 * eta[chosen]) @ along[chosen] ** 2) / (np.count_nonzero(chosen) * variance)
            below, above = skewed_reaches(variance, growth, half_widths(confidence))
            # They reach from the surface itself: the mean over what it may be is drawn away from 0 and 1.
            centre = float(rate(eta[chosen]).mean())
            yield estimate, max(min(centre - below, estimate), 0.0), min(max(centre + above, estimate), 1.0)

    def _unsure(self, places: Ints) -> Floats:
        """By how much errors of several configurations are larger than with known parameters.

        Where there are no trials nothing holds the parameters' error down: it is what it is for one configuration. In
        a simulated space of 15 axes, regions of mild severities on many axes were covered in .78 without it.
        """
        tried = self._numbered(places) >= 0
        ratios = np.where(tried, 1.0, self._parts[0].widening(places, tried))
        return np.sqrt(np.maximum(ratios, self._plugged))

    def off_surface(self, features: ArrayLike) -> Floats:
        """How likely each configuration is off the surface that all others make."""
        places = known_places(self.prior_, severities(features))
        chance = np.zeros(len(places))
        at, tests = self._open(places)
        if self._odd is not None:
            chance[at] = self._odd.chance[tests]
        return chance

    def covariance(self, features: ArrayLike) -> Floats:
        """The covariance of the errors of these configurations' rates (delta method)."""
        places = known_places(self.prior_, severities(features))
        eta, own = self._moments(places)
        slope = self._unsure(places) * self._slope(places, eta)
        total: Floats = np.diag(np.maximum(own - self._values(places)[1], 0))  # of tests off the surface
        if self._wide is not None:
            total += self._wide.covariance(places)
        for part in [] if self._wide is not None else self._parts:
            spent = part.spent(self._among(part, places, self._places))
            total += self._among(part, places, places) - spent @ spent.T
        return np.asarray(slope[:, None] * total * slope)

    def _moments(self, places: Ints) -> tuple[Floats, Floats]:
        """Mean and variance of each eta, with the chance that a test is off its surface."""
        eta, variance = self._values(places)
        at, tests = self._open(places)
        if self._odd is not None and len(at):
            eta, variance = eta.copy(), variance.copy()
            eta[at], variance[at] = self._odd.moments(tests, eta[at], variance[at])
        return eta, variance

    def _open(self, places: Ints) -> tuple[Ints, Ints]:
        """Which of the configurations have trials, but not on all inputs, and as which tests."""
        number = self._numbered(places)
        at = np.flatnonzero((number >= 0) & ~self._complete[number])
        return at, number[at]

    def _values(self, places: Ints) -> tuple[Floats, Floats]:
        """Estimate and variance of each eta by the surface.

        They are kept, on a grid too large for it the last: bounds are asked next.
        """
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
        if self._wide is not None:
            note(f"estimating {len(places):,} tests")
            eta, variance = self._wide.values(places)
            variance *= self._parts[0].widening(places, tried)
        for part in [] if self._wide is not None else self._parts:
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
        known, number = self._known(places)
        eta[known], variance[known] = np.arcsin(np.sqrt(self._rates[number])), 0.0
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
