"""The normal distribution's part in an interval."""

from __future__ import annotations

from functools import cache


@cache
def half_widths(confidence: float = 0.95) -> float:
    """How many standard deviations a two-sided interval reaches to either side: 1.96 for 95 %.

    >>> round(half_widths(), 6), round(half_widths(0.9), 6)
    (1.959964, 1.644854)
    """
    from scipy.special import ndtri

    return float(ndtri(0.5 + confidence / 2))
