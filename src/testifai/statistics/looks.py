"""Intervals for an accuracy that is looked at after each of a few sample sizes fixed beforehand.

The error probability is divided evenly over the looks, so that all intervals of a level hold at once, whichever look is
the last. Each is the set of accuracies that an exact test does not reject: Clopper and Pearson's for new inputs like
the data; for the accuracy on exactly these inputs the same with the hypergeometric distribution, and a point once all
were tried. For a dozen looks this needs a quarter fewer inputs than an interval that allows a look after every input.
"""

from __future__ import annotations

from functools import lru_cache

from testifai.statistics.intervals import clopper_pearson, hypergeometric

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
        low, high = hypergeometric(passes, trials, inputs, (tail, tail))
        return low / inputs, high / inputs
    return clopper_pearson(passes, trials, (tail, tail))
