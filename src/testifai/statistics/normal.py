"""The normal distribution's part in an interval."""

from __future__ import annotations

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
