"""Intervals and tests for the difference of two means of scores in 0..1, measured on the same inputs or apart.

As `differences` for pass rates: B − A, and `population` is the number of inputs that trials were drawn from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.statistics.differences import CONFIDENCE, LEAST_P
from testifai.statistics.means import Floats, Limits, Moments, mean_interval, mean_sequence

Solved = tuple[Floats, Floats, Floats]  # low, high, p


def solve_paired(pairs: Sequence[NDArray[Any]], population: int | None) -> Solved:
    """Of tests whose inputs both runs tried, from the difference of scores on each input: a mean of −1 to 1.

    >>> low, high, p = solve_paired([np.linspace(-0.1, 0.3, 41)], None)
    >>> bool(0 < low[0] < 0.1 < high[0]), bool(p[0] < 0.05)
    (True, True)
    """
    halved = _of_each([(1 + np.asarray(one, np.float64)) / 2 for one in pairs])

    def limits(confidence: float) -> Limits:
        low, high = mean_interval(halved, population, confidence)
        return 2 * low - 1, 2 * high - 1

    return _solved(limits, len(pairs))


def solve_apart(
    a: Sequence[NDArray[Any]], b: Sequence[NDArray[Any]], population: int | None, *, stopped: bool = False
) -> Solved:
    """Of tests that each run tried on inputs of its own: from both means' limits (Zou and Donner 2008).

    Of runs that a rule stopped, both sequences of limits at half the risk each.
    """
    one, two = _of_each(a), _of_each(b)
    mean_a, mean_b = one.total / one.trials, two.total / two.trials

    def limits(confidence: float) -> Limits:
        if stopped:
            (low_a, high_a), (low_b, high_b) = (mean_sequence(m, population, (1 + confidence) / 2) for m in (one, two))
            return low_b - high_a, high_b - low_a
        (low_a, high_a), (low_b, high_b) = (mean_interval(m, None, confidence) for m in (one, two))
        difference = mean_b - mean_a
        below, above = np.hypot(mean_b - low_b, high_a - mean_a), np.hypot(high_b - mean_b, mean_a - low_a)
        return difference - below, difference + above

    return _solved(limits, len(a))


def _of_each(samples: Sequence[NDArray[Any]]) -> Moments:
    rows = [Moments.of(one) for one in samples]
    return Moments.joined(rows)


def _solved(limits: Callable[[float], Limits], tests: int) -> Solved:
    """Limits at 95 %, and the smallest risk at which they leave out 0."""
    low, high = limits(CONFIDENCE)
    p = np.ones(tests)
    for risk in np.geomspace(1, LEAST_P, 120)[1:]:
        least, most = limits(1 - risk)
        p = np.where((least > 0) | (most < 0), risk, p)
    return np.asarray(low), np.asarray(high), p
