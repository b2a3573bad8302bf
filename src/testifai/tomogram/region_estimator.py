"""The mean over the tests of a region, with its bounds, from the estimates of all its tests or of a sample."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from testifai.runs.outcomes import Ids, Outcomes
from testifai.space import Selection
from testifai.statistics.clustered import ClusteredTrials, interval, interval_of_few
from testifai.statistics.intervals import disagree, half_widths
from testifai.strategies.base import region_of
from testifai.support.bits import Bits, count_set
from testifai.support.types import Bools, Floats
from testifai.support.validation import number
from testifai.surrogates.base import drawn_from, sampling_variance
from testifai.tomogram.answers import Answer, PlainRecord, RateTable, Worst
from testifai.tomogram.estimator import Estimator

DRAWN = 2_000  # first sample size, and the largest, of a region with more tests than are listed
MOST_DRAWN = 6_000
IN_A_TABLE = 6_000  # tests sampled for all rows of a table together, and for each row at most
DRAWN_EACH = 400
FEWEST_SHARED = 100  # tests of the sample of the whole space that suffice for a region
WORST = 5
SMALL = 1 / 3  # largest part of the rest of an interval that sampling may add to it
CANDIDATES = 200  # tests with the lowest pass rates that may be the worst of a sampled region
FEW = 30  # inputs up to which a variance alone is uncertain
NEEDED = 30  # different inputs, and tests if it has so many, from which a region's own trials count as evidence
MOST_TESTS = 300  # tests drawn of a region for such evidence


@dataclass(frozen=True)
class RawMean(PlainRecord):
    estimate: float
    low: float
    high: float
    tests: int  # tests with trials, which the estimate is for
    left_out: int  # tests without trials
    inputs: int  # different inputs used


def raw_mean(
    outcomes: Outcomes,
    ids: Iterable[int],
    among: Bits | None = None,
    confidence: float = 0.95,
    finite: bool = True,
    of: int = 0,
) -> RawMean:
    """Return the mean raw pass rate of these configurations, on all inputs or those whose bit is set in `among`.

    If they are a random draw of `of` tests, the interval is for the mean over all of these. It assumes nothing about
    the surface or the dependence of tests. With `finite` it is for the inputs at hand, otherwise for new ones.
    """
    number("confidence", confidence, above=0, below=1)
    asked = np.unique(np.fromiter(ids, np.int64))
    tried = asked[outcomes.counts(asked, among)[1] > 0] if len(asked) else asked
    if not len(tried):
        return RawMean(float("nan"), float("nan"), float("nan"), 0, len(asked), 0)
    single = outcomes.single(tried, among)
    used = np.zeros(single.inputs, bool)
    used[single.place] = True
    sample = ClusteredTrials.of(single.test, (np.cumsum(used) - 1)[single.place], single.passed)
    population = single.inputs if finite else None
    if sample.used <= FEW:
        low, high = interval_of_few(sample, len(asked), population, confidence)
    else:
        low, high = interval(sample, population, confidence)
    if of > sample.tests > 1:
        # The spread of the rates, without what the few trials of each test add to it.
        between = max(0.0, float(sample.rate.var(ddof=1) - (sample.spread / sample.trials).mean()))
        drawn = half_widths(confidence) * math.sqrt(between / sample.tests * (1 - sample.tests / of))
        rate = sample.estimate
        low, high = max(rate - math.hypot(rate - low, drawn), 0.0), min(rate + math.hypot(high - rate, drawn), 1.0)
    return RawMean(sample.estimate, low, high, sample.tests, len(asked) - sample.tests, sample.used)


@dataclass(frozen=True)
class TestSample:
    __test__ = False  # pytest: not a test class

    ids: Ids = field(repr=False)
    tests: int
    drawn_from: Selection | None = None  # None: the ids are all tests
    seed: int = 0

    @classmethod
    def all_of(cls, ids: Ids) -> TestSample:
        return cls(ids, len(ids))

    @classmethod
    def some_of(cls, selection: Selection, most: int, seed: int) -> TestSample:
        ids = selection.sample(most, np.random.default_rng([seed, 2]))
        return cls(ids, selection.count, selection if len(ids) < selection.count else None, seed)

    @property
    def beyond_clean(self) -> bool:
        return self.tests > 1 or not self.contains(np.zeros(1, np.int64)).any()

    def drawn(self, seed: int) -> Ids:
        generator = np.random.default_rng([seed, 4])
        ids = self.ids if self.drawn_from is None else self.drawn_from.sample(DRAWN, generator)
        return generator.permutation(ids)[:MOST_TESTS]

    def contains(self, ids: Ids) -> Bools:
        return np.isin(ids, self.ids) if self.drawn_from is None else self.drawn_from.contains(ids)


@dataclass(frozen=True, eq=False)
class RegionEstimator:
    estimator: Estimator

    def answer(
        self, sample: TestSample, among: Bits | None = None, confidence: float = 0.95, *, anytime: bool = False
    ) -> Answer:
        """Return the mean over the tests of a region; with `anytime` its bounds stay valid however often one looks."""
        estimator = self.estimator
        level = estimator.anytime_confidence(confidence) if anytime else confidence
        if not estimator.space.listed and not (len(sample.ids) and estimator.predicts(among)):
            tried = estimator.measured_ids[sample.contains(estimator.measured_ids)]
            worst = self._worst(tried, estimator.rates(tried, among, level))
            return replace(self.raw_answer(tried, among, level), tests=sample.tests, worst=worst)
        view, clean = self._rates(sample, among, confidence, anytime=anytime)
        low, high = self._bounds(sample, view, clean, among, level)
        if sample.drawn_from is None:
            measured, others = int(np.count_nonzero(view.alone)), None
        else:
            wanted = _wanted(sample, view.estimate, low, high, level)
            if wanted > len(sample.ids):
                larger = TestSample.some_of(sample.drawn_from, wanted, sample.seed)
                return self.answer(larger, among, confidence, anytime=anytime)
            tried, measured = self._tried(sample, among)
            others = tried, estimator.rates(tried, among, confidence, anytime=anytime)
        base = estimator.clean.estimate if among is None else float(clean.estimate[0])
        return self._assembled(sample, view, (low, high), base, measured, others)

    def answers_by_sample(self, parts: Sequence[Selection]) -> list[Answer]:
        """Return the means over regions, from the sample of the whole space or, if it has too few, from their own."""
        estimator = self.estimator
        ids, seen = estimator.sample
        rows, seed = estimator.space.matrix(ids), estimator.settings.seed
        members = {number: part.holds(rows) for number, part in enumerate(parts)}
        enough = [number for number, of in members.items() if np.count_nonzero(of) >= FEWEST_SHARED]
        shared = {n: TestSample(ids[members[n]], parts[n].count, parts[n], seed) for n in enough}
        bounds = self._sampled_bounds(rows, seen, [members[n] for n in enough], [parts[n].count for n in enough])
        tried = {n: self._tried(sample, None) for n, sample in shared.items()}
        lowest = np.unique(np.concatenate([np.zeros(0, np.int64), *(candidates for candidates, _ in tried.values())]))
        known, base = estimator.rates(lowest), estimator.clean.estimate
        answers = {}
        for n, bound in zip(enough, bounds, strict=True):
            candidates, measured = tried[n]
            others = candidates, known.at(np.searchsorted(lowest, candidates))
            answers[n] = self._assembled(shared[n], seen.at(members[n]), bound, base, measured, others)
        for n in members.keys() - answers.keys():
            answers[n] = self.answer(TestSample.some_of(parts[n], DRAWN_EACH, seed))
        return [answers[n] for n in members]

    def raw_answer(self, ids: Ids, among: Bits | None, confidence: float = 0.95) -> Answer:
        free = self._raw_mean(ids, among, confidence)
        drop = free.estimate - self._raw_mean(self.estimator.measured_ids[:1], among).estimate
        return Answer(free.estimate, free.low, free.high, drop, free.tests, free.tests, 0, ())

    def checked(self, sample: TestSample, among: Bits | None, confidence: float, *, anytime: bool = False) -> Answer:
        """Return the mean over a region, checked against its own trials: of all its tests, or of a random draw of them.

        If these contradict the surrogate, the answer is that of the trials, which assumes nothing about the surface.
        """
        estimator = self.estimator
        answer = self.answer(sample, among, confidence, anytime=anytime)
        if answer.inferred == 0:
            return answer
        own, level = self.own_tests(sample, among), estimator.anytime_confidence(confidence) if anytime else confidence
        complete = len(own) == sample.tests
        if not len(own) or (complete and estimator.pooling(among) is None):
            return answer
        free = self._raw_mean(own, among, level, of=sample.tests)
        if not complete and free.inputs < NEEDED:
            return answer
        found, modelled = (free.estimate, free.low, free.high), (answer.robustness, answer.low, answer.high)
        if not disagree(modelled, found):
            return replace(answer, model_free=found)
        drop = answer.drop + free.estimate - answer.robustness
        trusted = replace(answer, robustness=free.estimate, low=free.low, high=free.high, drop=drop)
        return replace(trusted, model_free=found, disagrees=True, modelled=modelled)

    def own_tests(self, sample: TestSample, among: Bits | None) -> Ids:
        """Return tests that represent a region and have trials: all, or the first of a random draw; none if too few."""
        estimator = self.estimator
        known = sample.drawn_from is None and np.isin(sample.ids, estimator.measured_ids).all()
        if known and estimator.outcomes.counts(sample.ids, among)[1].all():
            return sample.ids
        drawn = sample.drawn(estimator.settings.seed)
        own = drawn[: int(np.argmin([*np.isin(drawn, estimator.measured_ids), False]))]
        if len(own):
            own = own[: int(np.argmin([*(estimator.outcomes.counts(own, among)[1] > 0), False]))]
        return own if len(own) >= min(NEEDED, sample.tests) else own[:0]

    def own_inputs(self, sample: TestSample, among: Bits | None) -> int:
        own = self.own_tests(sample, among)
        return self._raw_mean(own, among).inputs if len(own) else 0

    def _assembled(
        self,
        sample: TestSample,
        view: RateTable,
        bounds: tuple[float, float],
        base: float,
        measured: int,
        others: tuple[Ids, RateTable] | None = None,
    ) -> Answer:
        robustness, ids = float(view.estimate.mean()), sample.ids
        if others is not None:
            ids, view = np.concatenate([ids, others[0]]), view.and_(others[1])
        worst, inferred = self._worst(ids, view), sample.tests - measured
        return Answer(robustness, *bounds, robustness - base, sample.tests, measured, inferred, worst)

    def _raw_mean(self, ids: Ids, among: Bits | None, confidence: float = 0.95, of: int = 0) -> RawMean:
        finite = self.estimator.settings.finite
        return raw_mean(self.estimator.outcomes, ids, among, confidence, finite=finite, of=of)

    def _tried(self, sample: TestSample, among: Bits | None) -> tuple[Ids, int]:
        """Tests outside a sample that may be the worst of its region, and how many of the region are measured."""
        estimator = self.estimator
        ids = estimator.measured_ids[sample.contains(estimator.measured_ids)]
        passes, trials = estimator.outcomes.counts(ids, among)
        inputs = estimator.outcomes.inputs if among is None else int(count_set(among))
        rates = np.divide(passes, trials, out=np.ones(len(ids)), where=trials > 0)
        lowest = ids[np.argsort(rates, kind="stable")[:CANDIDATES]]
        return np.setdiff1d(lowest, sample.ids), int(np.count_nonzero(estimator.alone(ids, trials, inputs)))

    def _rates(
        self, sample: TestSample, among: Bits | None, confidence: float, *, anytime: bool
    ) -> tuple[RateTable, RateTable]:
        estimator, ids = self.estimator, np.concatenate([[0], sample.ids])
        usual = estimator.space.listed and among is None and confidence == 0.95 and not anytime
        # A pooling surrogate keeps what it predicts: of a large space, only what is needed is predicted.
        if usual and (estimator.pooling(among) is None or estimator.estimated):
            found = estimator.whole.at(ids)
        else:
            found = estimator.rates(ids, among, confidence, anytime=anytime)
        return found.at(slice(1, None)), found.at(slice(1))

    def _bounds(
        self, sample: TestSample, view: RateTable, clean: RateTable, among: Bits | None, confidence: float
    ) -> tuple[float, float]:
        """Bounds of a mean: from the covariance of the tests' errors if it is known, else the mean of their bounds."""
        known = (float(clean.low[0]), float(clean.high[0])) if clean.alone[0] else None
        surrogate = None if known is not None and not sample.ids.any() else self.estimator.pooling(among)
        if surrogate is not None:
            return region_of(surrogate, self.estimator.space, sample.ids, known, confidence, sample.tests)
        return _mean_bounds(view, sample.tests, confidence)

    def _sampled_bounds(
        self, rows: NDArray[np.int64], seen: RateTable, members: Sequence[Bools], tests: Sequence[int]
    ) -> list[tuple[float, float]]:
        surrogate = self.estimator.pooling()
        if surrogate is None:
            return [_mean_bounds(seen.at(of), size, 0.95) for of, size in zip(members, tests, strict=True)]
        return [found[1:] for found in surrogate.regions(rows, np.array(members), tests)]

    def _worst(self, ids: Ids, view: RateTable) -> tuple[Worst, ...]:
        lowest, space = view.lowest(WORST), self.estimator.space
        return tuple(
            (space.configuration(int(ids[i])), float(view.estimate[i]), float(view.low[i]), float(view.high[i]))
            for i in lowest
        )


def _mean_bounds(view: RateTable, tests: int, confidence: float) -> tuple[float, float]:
    """The mean of the tests' bounds, valid however their errors are correlated."""
    mean, low, high = (float(one.mean()) for one in (view.estimate, view.low, view.high))
    return drawn_from(view.estimate, (mean, low, high), tests, confidence)[1:]


def _wanted(sample: TestSample, rates: Floats, low: float, high: float, confidence: float) -> int:
    """Size of a larger sample if sampling adds too much to the interval; 0 if none is needed or possible."""
    if not DRAWN <= len(rates) < MOST_DRAWN or math.isnan(low):
        return 0
    drawn = float(half_widths(confidence)) * math.sqrt(sampling_variance(rates, sample.tests))
    rest = math.sqrt(max(((high - low) / 2) ** 2 - drawn**2, 0.0))
    if drawn <= SMALL * rest:
        return 0
    return MOST_DRAWN if not rest else min(MOST_DRAWN, math.ceil(len(rates) * (drawn / (SMALL * rest)) ** 2))
