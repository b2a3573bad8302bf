"""Corrections for asking many questions at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def holm(p_values: ArrayLike) -> Floats:
    """p-values that may each be compared with the risk of any wrong rejection among all (Holm, 1979).

    What is NaN was not asked: it stays NaN and does not count.

    >>> holm([0.01, 0.04, 0.03, np.nan]).round(3).tolist()
    [0.03, 0.06, 0.06, nan]
    """
    values = np.asarray(p_values, np.float64)
    adjusted = np.full(values.shape, np.nan)
    known = np.flatnonzero(~np.isnan(values))
    ascending = known[np.argsort(values[known], kind="stable")]
    steps = values[ascending] * np.arange(len(known), 0, -1)
    adjusted[ascending] = np.minimum(np.maximum.accumulate(steps), 1)
    return adjusted


def confidence_each(intervals: int, error: float = 0.05) -> float:
    """The confidence of each of several intervals that together are all right but for the error (Bonferroni).

    >>> confidence_each(1), confidence_each(5)
    (0.95, 0.99)
    """
    return 1 - error / intervals
