"""The mean of several tests' pass rates, and its interval, when the tests share inputs.

The mean over tests of their raw rates is unbiased as long as inputs were drawn at random and outcomes did not decide
how many. Tests share inputs, so the variance is clustered by input: all outcomes of one input stay together. Nothing
is assumed about how tests depend on each other, nor that rates are smooth.

Trial m ran the test `test[m]` on the input `place[m]`; both are numbered from 0 without gaps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testifai.statistics.intervals import clopper_pearson, half_widths, skewed_reaches
from testifai.support.types import Array, Floats

Places = NDArray[np.intp]

ROUNDING = 1e-12  # an influence this small is none, but for rounding


def interval(sample: ClusteredTrials, population: int | None = None, confidence: float = 0.95) -> tuple[float, float]:
    """Return limits for the mean rate on `population` inputs, or on new inputs like those seen."""
    below, above = _reaches(sample, confidence, population)
    return max(0.0, sample.estimate - below), min(1.0, sample.estimate + above)


def interval_of_few(
    sample: ClusteredTrials, tests: int, population: int | None = None, confidence: float = 0.95
) -> tuple[float, float]:
    """Return limits for the mean rate of `tests` tests, some of them possibly untried, if few inputs were used.

    The limits of Clopper and Pearson for the number of independent trials with the same variance, reduced by (z/t)²
    since that is based on few inputs, and never more than there were (Korn and Graubard, Survey Methodology 24 (1998)
    193-201). Untried tests are assumed to vary like the others. The tried part of the population is certain.
    """
    from scipy.special import stdtrit

    rate, untried = sample.estimate, 1 - sample.tests / tests
    between = float(sample.rate.var(ddof=1)) / sample.tests if sample.tests > 1 else rate * (1 - rate)
    variance = sample.variance(population) + untried * between
    tried = 0.0 if population is None else sample.trials / (population * tests)
    passed, failed = float(np.sum(tried * sample.rate)), float(np.sum(tried * (1 - sample.rate)))
    unknown = 1 - passed - failed
    if unknown <= ROUNDING:
        return rate, rate
    effective = (float(sample.trials.sum()) if variance else sample.used) / unknown
    if variance:
        effective = min(effective, rate * (1 - rate) / variance)
    t = float(stdtrit(max(1, sample.used - 1), 0.5 + confidence / 2))
    effective *= float(half_widths(confidence) / t) ** 2
    error = (1 - confidence) / 2
    low, high = clopper_pearson(rate * effective, effective, (error, error))
    return max(low, passed), min(high, 1 - failed)


@dataclass(frozen=True)
class ClusteredTrials:
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
    def of(cls, test: Places, place: Places, passed: Array) -> ClusteredTrials:
        """Of trials that passed or failed, or count by a value in 0..1."""
        trials = np.bincount(test).astype(np.float64)
        rate = np.bincount(test, passed) / trials
        tests = len(rate)
        # One trial has no spread about its own mean: its residual is about that of all tests.
        centre = np.where(trials > 1, rate, rate.mean())
        behind = np.where(trials > 1, trials, tests)  # so many trials made the centre
        loss = behind / np.maximum(behind - 1, 1)  # E(residual²) = variance / loss
        residual: Floats = passed.astype(np.float64) - centre[test]
        within = rate * (1 - rate) if passed.dtype.kind != "f" else np.bincount(test, residual**2) / trials
        spread = loss * np.where(trials > 1, within, (rate - centre) ** 2)

        weight = 1 / (trials * tests)

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
        """The mean covariance of two tests; the smaller of two ways to weigh pairs, and never above the variance."""
        if not self.overlap:
            return 0.0
        return min(self.shared / self.overlap, self.covariance, float(self.spread.mean()))


def _reaches(sample: ClusteredTrials, confidence: float, population: int | None) -> tuple[float, float]:
    """How far the interval goes below and above the estimate: h with h² = t² variance + z² h m, as Wilson's.

    m is the skew of the inputs' influences, Σx³/Σx², downwards for the lower side and upwards for the upper. A mean
    that is h too high because inputs that fail are rare, and were drawn too seldom, has h·m more variance than was
    seen. For one test m = (2r - 1)/n, and this is Wilson's interval but for its shrinkage by 1 + z²/n. Where no input
    differed from any other, the room of the largest possible influence of one is left on both sides. Student's t
    allows for a variance that rests on few inputs.
    """
    from scipy.special import stdtrit

    if population is not None and sample.trials.min() == population:
        return 0.0, 0.0
    z = half_widths(confidence)
    largest = float(np.abs(sample.moved).max())
    if largest <= ROUNDING:
        left = 1.0 if population is None else 1 - float(sample.trials.mean()) / population
        room = z**2 * float(sample.reach.max()) * left
        return room, room
    second, third, fourth = (float(((sample.moved / largest) ** power).sum()) for power in (2, 3, 4))
    # Of normal influences of any sizes, 3 (Σx²)²/Σx⁴ is the number of equal ones that would vary as much.
    freedom = float(np.clip(3 * second**2 / fourth - 1, 1, max(1, sample.used - 1)))
    t = float(stdtrit(freedom, 0.5 + confidence / 2))
    variance = sample.variance(population)
    share = min(1.0, variance / (largest**2 * second))  # what the finite population leaves of it
    return skewed_reaches(variance, share * largest * third / second, t, z)
