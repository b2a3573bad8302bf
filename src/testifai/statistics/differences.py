"""Intervals and tests for the difference of two pass rates, measured on the same or on separate inputs.

Counts are a row per test: trials and passes of A, of B, and the common inputs that only A and that only B passed.
`population` is the number of inputs the trials were sampled from without replacement, or None for new inputs like them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.statistics.intervals import bisect, confidence_sequence, half_widths, wilson
from testifai.statistics.means import Limits, Moments, mean_interval, mean_sequence
from testifai.support.types import Array, Bools, Floats

Counts = NDArray[np.int64]
Solved = tuple[Floats, Floats, Floats]  # low, high, p

CONFIDENCE = 0.95
LEAST_P = 1e-12  # lowest p-value of stopped runs: far below any share of 5 % in Holm's procedure


def solve_paired(counts: Counts, population: int | None) -> Solved:
    low, high = paired_interval(counts[:, 5], counts[:, 4], counts[:, 0], population)
    return low, high, _paired_p(counts[:, 5], counts[:, 4], counts[:, 0], population)


def solve_apart(counts: Counts, population: int | None) -> Solved:
    n_a, s_a, n_b, s_b = counts[:, :4].T
    low, high = independent_interval(s_a, n_a, s_b, n_b)
    return low, high, _independent_p(n_a, s_a, n_b, s_b)


def solve_stopped(counts: Counts, population: int | None) -> Solved:
    return *_stopped_interval(counts, population, CONFIDENCE), _stopped_p(counts, population)


def paired_interval(
    gained: ArrayLike, lost: ArrayLike, pairs: ArrayLike, population: int | None = None, confidence: float = CONFIDENCE
) -> tuple[Floats, Floats]:
    """The score interval for a difference of paired rates: T. Tango, Statistics in Medicine 17 (1998) 891-908.

    Of `pairs` inputs tried by both models, `gained` passed with the second alone and `lost` with the first alone. The
    rates that could be the truth are those whose score |d - delta| / sqrt(variance under delta) is at most z. A
    finite population enters, as in Wilson's interval, through the effective number of pairs n(N-1)/(N-n).
    """
    c, b, n = np.broadcast_arrays(*(np.asarray(count, np.float64) for count in (gained, lost, pairs)))
    z2 = half_widths(confidence) ** 2
    estimate = (c - b) / n
    complete = np.zeros(n.shape, bool) if population is None else n == population
    effective = n if population is None else np.where(complete, 1, n * (population - 1) / np.maximum(population - n, 1))

    def inside(delta: Floats) -> Bools:
        variance = _restricted_variance(b / n, c / n, delta) / effective
        return np.asarray((estimate - delta) ** 2 <= z2 * variance)

    ends = np.stack([np.full_like(estimate, -1), np.ones_like(estimate)])
    borders = bisect(inside, ends, np.stack([estimate, estimate]), steps=32)  # to 10⁻⁹
    low, high = np.where(complete, estimate, borders)
    return low, high


def _restricted_variance(lost: Floats, gained: Floats, delta: Floats) -> Floats:
    """The variance of one pair's difference at the most likely rates that differ by delta.

    With x the rate of losses, the likelihood is largest where 2x² + (delta(2 + lost − gained) − lost − gained)x
    − lost·delta(1 − delta) = 0 (Tango's equation for q̃21); the variance is 2x + delta(1 − delta).
    """
    linear = delta * (2 + lost - gained) - lost - gained
    root = np.sqrt(np.maximum(linear**2 + 8 * lost * delta * (1 - delta), 0))
    x = np.maximum((root - linear) / 4, np.maximum(0, -delta))
    return np.asarray(np.maximum(2 * x + delta * (1 - delta), 0))


def independent_interval(
    passes_a: ArrayLike, trials_a: ArrayLike, passes_b: ArrayLike, trials_b: ArrayLike, confidence: float = CONFIDENCE
) -> tuple[Floats, Floats]:
    """The interval for rates measured apart: R. G. Newcombe, Statistics in Medicine 17 (1998) 873-890, method 10.

    No correction for a finite population: two samples of it without a common input err in opposite directions, and
    models that fail on the same inputs then need all of the width.
    """
    low_a, high_a = wilson(passes_a, trials_a, None, confidence)
    low_b, high_b = wilson(passes_b, trials_b, None, confidence)
    rate_a, rate_b = np.divide(passes_a, trials_a), np.divide(passes_b, trials_b)
    return difference_limits(rate_a, (low_a, high_a), rate_b, (low_b, high_b))


def difference_limits(a: Floats, limits_a: Limits, b: Floats, limits_b: Limits) -> Limits:
    """Limits of b − a from the limits of both (Newcombe's method 10; Zou and Donner 2008)."""
    (low_a, high_a), (low_b, high_b) = limits_a, limits_b
    difference = b - a
    low, high = difference - np.hypot(b - low_b, high_a - a), difference + np.hypot(high_b - b, a - low_a)
    return np.asarray(low), np.asarray(high)


def _stopped_interval(counts: Counts, population: int | None, confidence: Any) -> tuple[Floats, Floats]:
    """Both runs' confidence sequences, each at half the risk: valid however the trials were stopped or shared."""
    n_a, s_a, n_b, s_b = counts[:, :4].T
    each = (1 + confidence) / 2
    low_a, high_a = confidence_sequence(s_a, n_a, population, each)
    low_b, high_b = confidence_sequence(s_b, n_b, population, each)
    return low_b - high_a, high_b - low_a


def _stopped_p(counts: Counts, population: int | None) -> Floats:
    least, most = np.full(len(counts), np.log(LEAST_P)), np.zeros(len(counts))
    for _ in range(30):
        middle = (least + most) / 2
        low, high = _stopped_interval(counts, population, -np.expm1(middle))
        differs = (low > 0) | (high < 0)
        least, most = np.where(differs, least, middle), np.where(differs, middle, most)
    return np.exp(most)


def _paired_p(gained: ArrayLike, lost: ArrayLike, pairs: ArrayLike, population: int | None) -> Floats:
    """McNemar's exact test of equal rates, two-sided: on an input where the models differ, each way is as likely.

    In a finite population with D gains and D losses, that is a draw without replacement from 2D. The largest D that
    the untried inputs leave room for spreads most; if even that has no room for what was seen, the rates differ.
    """
    from scipy.stats import binom, hypergeom

    differing, fewer, more = np.add(gained, lost), np.minimum(gained, lost), np.maximum(gained, lost)
    if population is None:
        return np.asarray(np.minimum(1.0, 2 * binom.cdf(fewer, differing, 0.5)))
    half = (population - np.asarray(pairs) + differing) // 2
    # Of nothing there is no distribution; what has no room (NaN) is not looked at.
    tail = hypergeom.cdf(fewer, 2 * np.maximum(half, 1), np.maximum(half, 1), differing)
    return np.where(half < more, 0.0, np.minimum(1.0, 2 * tail))


def _independent_p(trials_a: Counts, passes_a: Counts, trials_b: Counts, passes_b: Counts) -> Floats:
    """Fisher's exact test of equal rates, two-sided by doubling the smaller tail."""
    from scipy.stats import hypergeom

    total, passes = trials_a + trials_b, passes_a + passes_b
    fewer_b = hypergeom.cdf(passes_b, total, passes, trials_b)
    fewer_a = hypergeom.cdf(passes_a, total, passes, trials_a)
    return np.asarray(np.minimum(1.0, 2 * np.minimum(fewer_a, fewer_b)))


def solve_paired_means(pairs: Sequence[Array], population: int | None) -> Solved:
    halved = _of_each([(1 + np.asarray(one, np.float64)) / 2 for one in pairs])

    def limits(confidence: float) -> Limits:
        low, high = mean_interval(halved, population, confidence)
        return 2 * low - 1, 2 * high - 1

    return _solved(limits, len(pairs))


def solve_separate_means(
    a: Sequence[Array], b: Sequence[Array], population: int | None, *, stopped: bool = False
) -> Solved:
    """Limits and p-values on separate inputs; of stopped runs, from sequences of limits at half the risk each."""
    one, two = _of_each(a), _of_each(b)

    def limits(confidence: float) -> Limits:
        if stopped:
            (low_a, high_a), (low_b, high_b) = (mean_sequence(m, population, (1 + confidence) / 2) for m in (one, two))
            return low_b - high_a, high_b - low_a
        limits_a, limits_b = (mean_interval(m, None, confidence) for m in (one, two))
        return difference_limits(one.total / one.trials, limits_a, two.total / two.trials, limits_b)

    return _solved(limits, len(a))


def _of_each(samples: Sequence[Array]) -> Moments:
    return Moments.joined([Moments.of(one) for one in samples])


def _solved(limits: Callable[[float], Limits], tests: int) -> Solved:
    low, high = limits(CONFIDENCE)
    p = np.ones(tests)
    for risk in np.geomspace(1, LEAST_P, 120)[1:]:
        least, most = limits(1 - risk)
        p = np.where((least > 0) | (most < 0), risk, p)
    return np.asarray(low), np.asarray(high), p
