"""The normal distribution's part in an interval."""

from __future__ import annotations

import math
from functools import cache

from testifai.support.checks import number


@cache
def half_widths(confidence: float = 0.95) -> float:
    """How many standard deviations a two-sided interval reaches to either side: 1.96 for 95 %.

    >>> round(half_widths(), 6), round(half_widths(0.9), 6)
    (1.959964, 1.644854)
    """
    return quantile(0.5 + number("confidence", confidence, above=0, below=1) / 2)


def quantile(share: float) -> float:
    """Below so many standard deviations lies this share of a normal distribution.

    >>> round(quantile(0.8), 6)
    0.841621
    """
    from scipy.special import ndtri

    return float(ndtri(share))


def skewed_reaches(
    variance: float, growth: float, wide: float, wide_by_skew: float | None = None
) -> tuple[float, float]:
    """How far an interval goes below and above an estimate whose variance grows with what it estimates, as Wilson's.

    Above it is h with h² = w² (variance + growth h), below with growth the other way. Of one test, variance r(1 - r)/n
    grows by (1 - 2r)/n, and this is Wilson's interval but for its shrinkage by 1 + w²/n. `wide` is the number w of
    standard deviations; the growth may have its own.

    >>> [round(reach, 4) for reach in skewed_reaches(0.9 * 0.1 / 100, (1 - 2 * 0.9) / 100, 1.96)]
    [0.0761, 0.0454]
    """
    skew = (wide if wide_by_skew is None else wide_by_skew) ** 2 * growth

    def solve(skew: float) -> float:
        return (skew + math.sqrt(skew**2 + 4 * wide**2 * variance)) / 2

    return solve(-skew), solve(skew)
