"""Intervals for the number of failures among all examples, and for sums of such numbers.

All are two-sided; a part of the population gives (estimate, low, high) and parts add up with `total`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from testifai.statistics import intervals as statistics

Part = tuple[float, float, float]

CONFIDENCE = 0.95


# Repeated experiments need the same few limits again and again.
@lru_cache(maxsize=4096)
def hypergeometric(failures: int, tests: int, population: int) -> tuple[float, float]:
    """Exact limits for the failures in a population of which some were drawn at random without replacement.

    Each side has half the error rate; if none (or all) failed, one side has the whole: the "rule of three", 3 / tests
    (Hanley and Lippman-Hand, JAMA 249, 1983).
    """
    if tests == 0:
        return 0.0, float(population)
    errors = _errors(failures == 0, failures == tests, CONFIDENCE)
    low, high = statistics.hypergeometric(failures, tests, population, errors)
    return float(low), float(high)


@lru_cache(maxsize=4096)
def share(passes: int, draws: int, population: int | None) -> tuple[float, float]:
    """Exact limits for the share that passes: Clopper and Pearson (Biometrika 26, 1934), or hypergeometric."""
    low, high = statistics.exact(passes, draws, population, CONFIDENCE)
    return float(low), float(high)


def _errors(none: bool, all_failed: bool, confidence: float) -> tuple[float, float]:
    error = 1 - confidence
    return (error if all_failed else error / 2), (error if none else error / 2)


def beta(rate: float, effective: float, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Clopper and Pearson's limits for a rate as uncertain as that of `effective` draws (Korn and Graubard 1998)."""
    return statistics.clopper_pearson(rate * effective, effective, _errors(rate == 0, rate == 1, confidence))


def total(parts: Iterable[Part]) -> Part:
    """Estimate and limits of a sum of independent parts: distances add up in squares (Zou and Donner 2008)."""
    table = np.array(list(parts), float)
    centre = table[:, 0].sum()
    below = np.sqrt(((table[:, 0] - table[:, 1]) ** 2).sum())
    above = np.sqrt(((table[:, 2] - table[:, 0]) ** 2).sum())
    return float(centre), float(centre - below), float(centre + above)
