"""Intervals for an accuracy that is looked at after each of a few sample sizes fixed beforehand.

The error probability is divided evenly over the looks, so that all intervals of a level hold at once, whichever look is
the last. Each is the set of accuracies that an exact test does not reject: Clopper and Pearson's for new inputs like
the data; for the accuracy on exactly these inputs the same with the hypergeometric distribution, and a point once all
were tried. For a dozen looks this needs a quarter fewer inputs than an interval that allows a look after every input.
"""

from __future__ import annotations

import bisect
from functools import lru_cache

FIRST_SAMPLE = 64
GROWTH = 1.5


@lru_cache(maxsize=64)
def sizes(inputs: int) -> tuple[int, ...]:
    """The sizes of a sample at which it is looked at.

    >>> sizes(200)
    (64, 96, 144, 200)
    """
    found = [min(FIRST_SAMPLE, inputs)]
    while found[-1] < inputs:
        found.append(min(inputs, int(GROWTH * found[-1])))
    return tuple(found)


@lru_cache(maxsize=65536)
def interval(passes: int, trials: int, inputs: int, population: str, error: float) -> tuple[float, float]:
    """Limits that all looks at a growing sample of `inputs` keep with probability 1 − error.

    >>> [round(limit, 3) for limit in interval(90, 96, 1000, "future", 0.05)]
    [0.838, 0.985]
    """
    if population == "data" and trials == inputs:
        return passes / trials, passes / trials
    looks = len(sizes(inputs)) - (population == "data")
    tail = error / looks / 2
    if population == "data":
        return _hypergeometric(passes, trials, inputs, tail)
    from scipy.special import betaincinv

    low = float(betaincinv(passes, trials - passes + 1, tail)) if passes else 0.0
    high = float(betaincinv(passes + 1, trials - passes, 1 - tail)) if passes < trials else 1.0
    return low, high


def _hypergeometric(passes: int, trials: int, inputs: int, tail: float) -> tuple[float, float]:
    """The least and the greatest accuracy on all inputs under which so many or so few passes are not too unlikely."""
    from scipy.stats import hypergeom

    def enough(total: int) -> bool:
        return bool(hypergeom.sf(passes - 1, inputs, total, trials) > tail)

    def few_enough(total: int) -> bool:
        return bool(hypergeom.cdf(passes, inputs, total, trials) > tail)

    least, most = passes, inputs - (trials - passes)
    low = bisect.bisect_left(range(least, most), True, key=enough) + least
    high = bisect.bisect_left(range(least + 1, most + 1), True, key=lambda total: not few_enough(total)) + least
    return low / inputs, high / inputs
