"""Numbers in words: rates, their intervals, and lines of a table."""

from __future__ import annotations

import math
from collections.abc import Sequence


def rate(value: float) -> str:
    """A rate, or that there is none.

    >>> rate(0.5), rate(math.nan)
    ('0.500', '–')
    """
    return "–" if math.isnan(value) else f"{value:.3f}"


def interval(low: float, high: float) -> str:
    """Bounds, or that there are none."""
    if math.isnan(low):
        return "no interval"
    return "exact" if low == high else f"{low:.3f} … {high:.3f}"


def estimate_text(estimate: float, low: float, high: float) -> str:
    """An estimate with its interval.

    >>> estimate_text(0.8, 0.75, 0.85), estimate_text(0.8, 0.8, 0.8), estimate_text(math.nan, math.nan, math.nan)
    ('0.800 (0.750 … 0.850)', '0.800 (exact)', 'unknown')
    """
    return "unknown" if math.isnan(estimate) else f"{rate(estimate)} ({interval(low, high)})"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows of a table as lines, its columns one below the other.

    >>> print(aligned([("order", "tests"), ("0", "1"), ("1", "12")]))
    order  tests
        0      1
        1     12
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
