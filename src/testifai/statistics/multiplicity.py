"""Corrections for many tests, and intervals for an accuracy at a few sample sizes fixed beforehand.

The error probability is divided evenly over the looks, so that all intervals of a level are valid together, whichever
look is the last. Each is the set of accuracies that an exact test does not reject: Clopper and Pearson's for new inputs
like the data; for the accuracy on exactly these inputs the same with the hypergeometric distribution, and a point once
all were tried.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from testifai.statistics.intervals import clopper_pearson, hypergeometric
from testifai.support.types import Floats


def holm(p_values: ArrayLike) -> Floats:
    """Return p-values adjusted for the risk of any wrong rejection among all (Holm, 1979).

    NaN marks a test that was not made: it stays NaN and does not count.
    """
    values = np.asarray(p_values, np.float64)
    adjusted = np.full(values.shape, np.nan)
    known = np.flatnonzero(~np.isnan(values))
    ascending = known[np.argsort(values[known], kind="stable")]
    steps = values[ascending] * np.arange(len(known), 0, -1)
    adjusted[ascending] = np.minimum(np.maximum.accumulate(steps), 1)
    return adjusted


def confidence_each(intervals: int) -> float:
    """Return the confidence of each of several intervals that are valid together at 95 % (Bonferroni)."""
    return 1 - 0.05 / intervals


FIRST_SAMPLE = 64
GROWTH = 1.5


@lru_cache(maxsize=64)
def sizes(inputs: int) -> tuple[int, ...]:
    found = [min(FIRST_SAMPLE, inputs)]
    while found[-1] < inputs:
        found.append(min(inputs, int(GROWTH * found[-1])))
    return tuple(found)


@lru_cache(maxsize=65536)
def interval(passes: int, trials: int, inputs: int, population: str, error: float) -> tuple[float, float]:
    """Return limits that are valid at all looks at a growing sample of `inputs` with probability 1 − error."""
    if population == "data" and trials == inputs:
        return passes / trials, passes / trials
    looks = len(sizes(inputs)) - (population == "data")
    tail = error / looks / 2
    if population == "data":
        low, high = hypergeometric(passes, trials, inputs, (tail, tail))
        return low / inputs, high / inputs
    return clopper_pearson(passes, trials, (tail, tail))
