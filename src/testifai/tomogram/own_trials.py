"""The mean pass rate of a region from its raw trials alone: wider than a surrogate's interval, right whatever it says.

The mean over tests of their raw rates is unbiased as long as inputs were drawn at random and outcomes did not decide
how many. Tests share inputs, so the variance is clustered by input: all outcomes of one input stay together. Nothing
is assumed about how tests depend on each other, nor that rates are smooth.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.runs.outcomes import Ids, Outcomes
from testifai.runs.trials import Trials
from testifai.support.bits import Bits

Floats = NDArray[np.float64]

ROWS = 4_096  # configurations whose bits are taken apart at a time
ROUNDING = 1e-12  # two estimates this close are the same number, computed in two ways


@dataclass(frozen=True)
class Region:
    """The mean rate over the tests of a region that were tried; NaN where none was."""

    estimate: float
    low: float
    high: float
    tests: int  # tests with trials: the estimate is of these
    left_out: int  # tests without any
    inputs: int  # different inputs used

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, None for what does not exist."""
        return {key: None if value != value else value for key, value in vars(self).items()}


def region(
    outcomes: Outcomes, ids: Iterable[int], among: Bits | None = None, confidence: float = 0.95, finite: bool = True
) -> Region:
    """The mean of the raw pass rates of these configurations, on all inputs or on those whose bit is set in `among`.

    With `finite` the interval is for the rate on the inputs at hand and closes once every test was tried on all of
    them; otherwise it is for new inputs like them.

    >>> outcomes = Outcomes(100)
    >>> for test in range(20):
    ...     outcomes.record(test, np.arange(40), np.arange(40) >= test)
    >>> found = region(outcomes, range(20))
    >>> round(found.estimate, 4), round(found.low, 3), round(found.high, 3), found.tests, found.inputs
    (0.7625, 0.674, 0.833, 20, 40)
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence: must lie between 0 and 1, not {confidence}")
    asked = np.unique(np.fromiter(ids, np.int64))
    single = _single(outcomes, asked, among)
    if not len(single.test):
        return Region(float("nan"), float("nan"), float("nan"), 0, len(asked), 0)
    sample = _Sample.of(single)
    below, above = _reaches(sample, confidence, single.inputs if finite else None)
    estimate = sample.estimate
    low, high = max(0.0, estimate - below), min(1.0, estimate + above)
    return Region(estimate, low, high, sample.tests, len(asked) - sample.tests, sample.used)


def disagree(model: tuple[float, float, float], free: Region) -> bool:
    """Whether a surrogate's (estimate, low, high) and the model-free interval cannot both be right.

    They cannot where the estimates are further apart than 1.96 √(se² + se²), the standard errors read off the sides of
    the intervals that face each other: high - estimate of the lower one, estimate - low of the upper one, each 1.96
    standard errors (Zou and Donner, Statistics in Medicine 27 (2008) 1693-1702). Both rest on the same trials and so
    err alike; two intervals that are right therefore disagree less often than one time in twenty. Both must have the
    same confidence. What is NaN disagrees with nothing.

    >>> free = Region(estimate=0.70, low=0.67, high=0.73, tests=648, left_out=0, inputs=2160)
    >>> disagree((0.73, 0.71, 0.75), free), disagree((0.75, 0.73, 0.77), free)
    (False, True)
    """
    (lower, _, top), (upper, bottom, _) = sorted([model, (free.estimate, free.low, free.high)])
    return bool(upper - lower > np.hypot(top - lower, upper - bottom) + ROUNDING)


# -- the trials ---------------------------------------------------------------------------------------------------


def _single(outcomes: Outcomes, ids: Ids, among: Bits | None) -> Trials:
    """Every outcome of those configurations that have any, which alone are numbered, and so are the inputs used.

    Many rows of bits are taken apart at a time: one by one, a thousand tests would take a tenth of a second.
    """
    found = [_trials(outcomes, ids[start : start + ROWS], among) for start in range(0, len(ids), ROWS)]
    counts = np.concatenate([count for count, _, _ in found])
    place, passed = (np.concatenate([one[part] for one in found]) for part in (1, 2))
    seen = np.zeros(outcomes.inputs, bool)
    seen[place] = True
    inputs = outcomes.inputs if among is None else int(np.bitwise_count(among).sum())
    tried = counts[counts > 0]
    return Trials(np.repeat(np.arange(len(tried)), tried), (np.cumsum(seen) - 1)[place], passed, inputs)


def _trials(outcomes: Outcomes, ids: Ids, among: Bits | None) -> tuple[Ids, NDArray[np.intp], NDArray[np.bool_]]:
    """How many trials each configuration has, and of all of them in turn the places and outcomes."""
    none = (np.zeros((outcomes.inputs + 7) // 8, np.uint8),) * 2
    rows = np.array([outcomes.bits(i) if i in outcomes else none for i in ids.tolist()])
    attempted, passed = rows[:, 0], rows[:, 1]
    if among is not None:
        attempted = attempted & among
    test, byte = np.nonzero(attempted)
    within = np.unpackbits(attempted[test, byte]).view(bool)
    bit = np.flatnonzero(within)
    outcome = np.unpackbits(passed[test, byte]).view(bool)[bit]
    counts = np.bitwise_count(attempted).sum(axis=1, dtype=np.int64)
    return counts, byte[bit >> 3] * 8 + (bit & 7), outcome


# -- the variance -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sample:
    """The trials of a region's tests, and what they say about the spread of outcomes over inputs."""

    rate: Floats  # of each test
    trials: Floats
    spread: Floats  # of each test: the variance of its outcomes over inputs
    moved: Floats  # of each input used: how far it moves the mean
    reach: Floats  # of each input used: how far it could
    used: int  # different inputs
    pairs: float  # of trials of two tests on one input
    overlap: float  # Σ over pairs of tests of c / (n n' T²), c the inputs they share
    shared: float  # the same sum with each pair's covariance as a factor
    covariance: float  # the mean one of pairs of trials

    @classmethod
    def of(cls, single: Trials) -> _Sample:
        trials = np.bincount(single.test).astype(np.float64)
        rate = np.bincount(single.test, single.passed) / trials
        tests = len(rate)
        # One trial has no spread about its own mean: its residual is about the region's.
        centre = np.where(trials > 1, rate, rate.mean())
        behind = np.where(trials > 1, trials, tests)  # so many trials made the centre
        loss = behind / np.maximum(behind - 1, 1)  # E(residual²) = variance / loss
        spread = loss * np.where(trials > 1, rate * (1 - rate), (rate - centre) ** 2)

        test, place, weight = single.test, single.place, 1 / (trials * tests)
        residual: Floats = single.passed.astype(np.float64) - centre[test]

        def by_input(per_trial: Floats) -> Floats:
            return np.asarray(np.bincount(place, per_trial), np.float64)

        def products(per_trial: Floats) -> float:
            """Over two trials of one input, whichever tests they belong to, but never of one trial with itself."""
            return float((by_input(per_trial) ** 2).sum() - (per_trial**2).sum())

        # A residual about the mean of the *other* trials of its test keeps products of two tests unbiased when they
        # share one input, and errs on the wide side, by n/(n - 1), when they share all.
        apart = loss[test] * residual
        count = products(np.ones(len(test)))
        return cls(
            rate=rate,
            trials=trials,
            spread=spread,
            moved=by_input((weight * np.sqrt(loss))[test] * residual),
            reach=by_input(weight[test]),
            used=int(place.max()) + 1,
            pairs=count / 2,
            overlap=products(weight[test]),
            shared=max(0.0, products(weight[test] * apart)),
            covariance=max(0.0, products(apart) / count) if count else 0.0,
        )

    @property
    def tests(self) -> int:
        return len(self.rate)

    @property
    def estimate(self) -> float:
        return float(self.rate.mean())

    def variance(self, population: int | None) -> float:
        """Of the mean rate: Σ over pairs of tests, each with itself too, of their covariance times c/(n n') - 1/N.

        c of the n and n' inputs are the same ones. This is the covariance of two means of inputs drawn without
        replacement; for c = n = n' it is the textbook's (1 - n/N)/n (Cochran, Sampling Techniques, 3rd ed. 1977,
        theorem 2.2 and section 9A), and without a population 1/N is 0. Tests that share inputs err together
        (c/(n n') above 1/N); tests that share fewer than chance would give them err in opposite directions.

        Pairs that share no input say nothing about their covariance and are given that of pairs that do.
        """
        own = self.spread / self.tests**2
        if population is None:
            return float((own / self.trials).sum()) + self.shared
        within = float((own * (1 / self.trials - 1 / population)).sum())
        chance = (1 - 1 / self.tests) / population
        common = self._common
        # What is taken off on the word of few pairs is taken off with caution, by one standard error.
        cautious = max(0.0, common - float(self.spread.mean() / np.sqrt(max(1.0, self.pairs))))
        off = min(chance, self.overlap) * common + max(0.0, chance - self.overlap) * cautious
        return max(0.0, within + self.shared - off)

    @property
    def _common(self) -> float:
        """The mean covariance of two tests; the smaller of two ways to weigh pairs, and never above the variance.

        Both ways agree where inputs are shared at random. Where tests with many trials differ from those with few,
        the smaller one takes less off.
        """
        if not self.overlap:
            return 0.0
        return min(self.shared / self.overlap, self.covariance, float(self.spread.mean()))


# -- from the variance to an interval -----------------------------------------------------------------------------


def _reaches(sample: _Sample, confidence: float, population: int | None) -> tuple[float, float]:
    """How far the interval goes below and above the estimate: h with h² = t² variance + z² h m, as Wilson's.

    m is the skew of the inputs' influences, Σx³/Σx², downwards for the lower side and upwards for the upper. A mean
    that is h too high because inputs that fail are rare, and were drawn too seldom, has h·m more variance than was
    seen. For one test m = (2r - 1)/n, and this is Wilson's interval but for its shrinkage by 1 + z²/n. Where no input
    differed from any other, the room of the largest possible influence of one is left on both sides. Student's t
    allows for a variance that rests on few inputs.
    """
    from scipy.special import ndtri, stdtrit

    if population is not None and sample.trials.min() == population:
        return 0.0, 0.0
    level = 0.5 + confidence / 2
    z2 = float(ndtri(level)) ** 2
    largest = float(np.abs(sample.moved).max())
    if largest <= ROUNDING:
        left = 1.0 if population is None else 1 - float(sample.trials.mean()) / population
        room = z2 * float(sample.reach.max()) * left
        return room, room
    second, third, fourth = (float(((sample.moved / largest) ** power).sum()) for power in (2, 3, 4))
    # Of normal influences of any sizes, 3 (Σx²)²/Σx⁴ is the number of equal ones that would vary as much.
    freedom = float(np.clip(3 * second**2 / fourth - 1, 1, max(1, sample.used - 1)))
    t2 = float(stdtrit(freedom, level)) ** 2
    variance = sample.variance(population)
    share = min(1.0, variance / (largest**2 * second))  # what the finite population leaves of it
    up = z2 * share * largest * third / second

    def solve(skew: float) -> float:
        return (skew + float(np.sqrt(skew**2 + 4 * t2 * variance))) / 2

    return solve(-up), solve(up)
