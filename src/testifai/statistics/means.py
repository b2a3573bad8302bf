"""Intervals for the mean of values in 0..1, such as F1 or IoU; all vectorised over tests.

The bound of Gaffke (2005, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
variable"; Learned-Miller and Thomas 2019, arXiv 1905.06208): the worst possible value, 0 for the lower limit and 1 for
the upper, is added to the values, and weights are uniform among all that add up to 1. The quantile of the weighted mean
is the limit. For passes and failures it is exactly the interval of Clopper and Pearson. Weighted means have nearly the
distribution of a beta variable between the ends of the values, with their mean and variance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from testifai.statistics.intervals import LEFT, confidence_sequence, exact, fixed_width, wilson
from testifai.support.types import Array, Floats

Limits = tuple[Floats, Floats]

LEAST = 1e-3  # concentration of a distribution that is all at its ends
TINY = 1e-9  # values up to which all are 0


@dataclass(frozen=True)
class Moments:
    """Statistics of the values of each test that its interval depends on."""

    trials: Floats
    total: Floats
    squares: Floats
    least: Floats
    most: Floats

    @classmethod
    def of(cls, values: Array) -> Moments:
        known = np.asarray(values, np.float64)
        trials = np.full(known.shape[:-1], float(known.shape[-1]))
        if not known.shape[-1]:
            return cls(trials, trials, trials, trials, trials)
        return cls(trials, known.sum(-1), (known**2).sum(-1), known.min(-1), known.max(-1))

    @classmethod
    def joined(cls, rows: Sequence[Moments]) -> Moments:
        return cls(*(np.array([getattr(row, one.name) for row in rows], np.float64) for one in fields(cls)))

    @property
    def dispersion(self) -> float:
        """Variance of values about the mean of their test, relative to that of passes and failures, over all tests."""
        n = np.maximum(self.trials, 1)
        own = np.maximum(self.squares - self.total**2 / n, 0)[self.trials > 1]
        bits = (self.total - self.total**2 / n)[self.trials > 1]
        return float(own.sum() / bits.sum()) if bits.sum() > 0 else 1.0

    @property
    def mirrored(self) -> Moments:
        n = self.trials
        return Moments(n, n - self.total, n - 2 * self.total + self.squares, 1 - self.most, 1 - self.least)


def mean_interval(moments: Moments, population: int | None = None, confidence: float = 0.95) -> Limits:
    """Return limits of the mean for a number of trials fixed beforehand; exact once the whole population was tried."""
    error = (1 - confidence) / 2
    return _known(moments, _low(moments, population, error), 1 - _low(moments.mirrored, population, error))


def mean_of_width(moments: Moments, population: int | None = None, confidence: float = 0.95) -> Limits:
    return mean_interval(moments, population, 1 - LEFT * (1 - confidence))


def mean_sequence(moments: Moments, population: int | None = None, confidence: float = 0.95) -> Limits:
    """Return limits that stay valid however often one looks: those of the same number of passes and trials.

    With v a pass only in part, the ratio (q/p)^v ((1-q)/(1-p))^(1-v) of `intervals.confidence_sequence` is convex in v,
    so that its mean under p is at most 1: wide where values spread little, and never too narrow.
    """
    low, high = confidence_sequence(moments.total, moments.trials, None, confidence)
    if population is not None:
        # What was tried of the population is certain.
        low = np.maximum(low, moments.total / population)
        high = np.minimum(high, 1 - (moments.trials - moments.total) / population)
    return _known(moments, low, high)


# For each interval of a pass rate the one that does the same for a mean.
OF_MEANS: dict[Callable[..., Limits], Callable[[Moments, int | None, float], Limits]] = {
    wilson: mean_interval,
    exact: mean_interval,
    fixed_width: mean_of_width,
    confidence_sequence: mean_sequence,
}


def _low(seen: Moments, population: int | None, error: float) -> Floats:
    """The quantile of the weighted mean of the values and a 0; with a population, including the untried inputs.

    Their values are drawn from a Pólya urn of the values and the 0, which adds variance to the weights. Their sum
    moves in steps if values are at the ends of their range, so half a step is subtracted.
    """
    from scipy.special import betaincinv

    weight = seen.trials + 1
    mean, second = seen.total / weight, seen.squares / weight
    untried = np.inf if population is None else np.maximum(population - seen.trials, 1)
    spread = np.maximum(second - mean**2, 0)
    variance = spread / (weight + 1) * (1 + weight / untried)
    with np.errstate(divide="ignore", invalid="ignore"):
        part = mean / seen.most
        concentration = np.maximum(part * (1 - part) * seen.most**2 / variance - 1, LEAST)
        quantile = seen.most * betaincinv(part * concentration, (1 - part) * concentration, error)
    limit = np.where(seen.most > TINY, quantile, 0.0)
    if population is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(seen.most > TINY, spread / (mean * (1 - part)), 0.0)
        limit = (seen.total + np.maximum((population - seen.trials) * limit - step / 2, 0)) / population
    return np.asarray(limit)


def _known(moments: Moments, low: Floats, high: Floats) -> Limits:
    """NaN without trials; otherwise limits that contain the mean despite rounding."""
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(moments.trials > 0, moments.total / moments.trials, np.nan)
    return np.clip(np.minimum(low, mean), 0, 1), np.clip(np.maximum(high, mean), 0, 1)
