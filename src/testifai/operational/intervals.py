"""Intervals for the number of failures among all examples, and for sums of such numbers.

All are two-sided; a part of the population gives (estimate, low, high) and parts add up with `total`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

Part = tuple[float, float, float]

CONFIDENCE = 0.95


def hypergeometric(failures: int, tests: int, population: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Exact limits for the failures in a population of which some were drawn at random without replacement.

    The numbers of failures that a one-sided test at half the error rate does not reject on either side: Clopper and
    Pearson's interval, for a finite population. Where none (or all) failed, one limit cannot be wrong, and the other
    has the whole error rate: the "rule of three", 3 / tests (Hanley and Lippman-Hand, JAMA 249, 1983).

    >>> hypergeometric(0, 100, 1000)
    (0.0, 28.0)
    >>> hypergeometric(3, 10, 10)
    (3.0, 3.0)
    """
    from scipy.special import gammaln

    least, most = failures, population - (tests - failures)
    if tests == 0:
        return 0.0, float(population)
    # A hair less, so that rounding does not decide where a test is on the border.
    low_error, high_error = (e * (1 - 1e-9) for e in _errors(failures == 0, failures == tests, confidence))

    def choose(total: int, part: np.ndarray) -> np.ndarray:
        return np.asarray(gammaln(total + 1) - gammaln(part + 1) - gammaln(total - part + 1))

    everything = float(choose(population, np.array(tests)))

    def tail(failing: int, counts: np.ndarray) -> float:
        counts = counts[(counts <= failing) & (tests - counts <= population - failing)]
        ways = choose(failing, counts) + choose(population - failing, tests - counts)
        return float(np.exp(ways - everything).sum())

    def enough(failing: int) -> bool:
        """So many failures would give as many as were seen often enough."""
        return 1 - tail(failing, np.arange(failures)) > low_error

    def few(failing: int) -> bool:
        """So many failures would give as few as were seen often enough."""
        return tail(failing, np.arange(failures + 1)) > high_error

    low = _first(enough, least, most)
    high = most - _first(lambda gap: few(most - gap), 0, most - least)
    return float(low), float(high)


def _errors(none: bool, all_failed: bool, confidence: float) -> tuple[float, float]:
    """Error rates of the low and the high limit."""
    error = 1 - confidence
    return (error if all_failed else error / 2), (error if none else error / 2)


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The first whole number from low to high for which a condition holds that then stays true."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def beta(rate: float, effective: float, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Clopper and Pearson's limits for a rate that is as uncertain as that of `effective` simple random draws.

    Korn and Graubard, "Confidence intervals for proportions with small expected number of positive counts estimated
    from survey data" (Survey Methodology 24, 1998).

    >>> low, high = beta(0.1, 100)
    >>> round(low, 3), round(high, 3)
    (0.049, 0.176)
    """
    from scipy.special import betaincinv

    low_error, high_error = _errors(rate == 0, rate == 1, confidence)
    failed, passed = rate * effective, (1 - rate) * effective
    low = betaincinv(failed, passed + 1, low_error) if failed > 0 else 0.0
    high = betaincinv(failed + 1, passed, 1 - high_error) if passed > 0 else 1.0
    return float(low), float(high)


def total(parts: Iterable[Part]) -> Part:
    """Estimate and limits of a sum of independent parts, from theirs.

    The distances from estimate to limit add up as squares, each side for itself: Zou and Donner, "Construction of
    confidence limits about effect measures: a general approach" (Statistics in Medicine 27, 2008).

    >>> total([(5.0, 2.0, 9.0), (1.0, 1.0, 4.0)])
    (6.0, 3.0, 11.0)
    """
    table = np.array(list(parts), float)
    centre = table[:, 0].sum()
    below = np.sqrt(((table[:, 0] - table[:, 1]) ** 2).sum())
    above = np.sqrt(((table[:, 2] - table[:, 0]) ** 2).sum())
    return float(centre), float(centre - below), float(centre + above)
