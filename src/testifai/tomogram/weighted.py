"""Weighted sums of tests' rates, with bounds from the covariance of their errors where it is known."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from testifai.statistics.normal import half_widths
from testifai.tomogram.estimates import Estimates

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

MOST_JOINT = 4_000  # tests up to which the covariance of all errors is used: 128 MB


def rates_of(tomogram: Estimates, ids: Ids) -> tuple[Floats, Floats, Floats]:
    """The rate of each of some tests, and its bounds at 95 %."""
    if tomogram.space.listed:
        view = tomogram.estimate, tomogram.low, tomogram.high
        estimate, low, high = (array.reshape(-1)[ids] for array in view)
        return estimate, low, high
    return tomogram.predict(map(tomogram.space.configuration, ids.tolist()))


def weighted_sum(
    tomogram: Estimates, ids: Ids, weights: Floats, confidence: float = 0.95
) -> tuple[float, float, float]:
    """The sum of some tests' rates times weights of any sign, with bounds.

    Without a covariance the bounds are the weighted sums of the tests' own, which is right however errors hang
    together: the standard deviation of a sum is at most the sum of standard deviations. Of very many tests the
    covariance of those with the largest weights is used and the others' half-widths are added, as is that of a clean
    test that speaks for itself.
    """
    estimate, low, high = rates_of(tomogram, ids)
    wider = half_widths(confidence) / half_widths()
    below, above = (estimate - low) * wider, (high - estimate) * wider
    # A test with a weight below zero pulls the sum down where its rate is higher.
    down, up = np.where(weights < 0, above, below), np.where(weights < 0, below, above)
    size, centre = np.abs(weights), float(weights @ estimate)
    apart = (ids == 0) & tomogram.clean.alone
    by_weight = np.argsort(np.where(apart, 1.0, -size), kind="stable")
    most = min(MOST_JOINT, int(np.count_nonzero(~apart)))
    joint, rest = by_weight[:most], by_weight[most:]
    surrogate = tomogram.pooling()
    covariance = None
    if surrogate is not None and len(joint):
        covariance = surrogate.covariance(tomogram.space.matrix(ids[joint]))
    if covariance is None:
        return centre, centre - float(size @ down), centre + float(size @ up)
    half = half_widths(confidence) * math.sqrt(max(float(weights[joint] @ covariance @ weights[joint]), 0.0))
    return centre, centre - half - float(size[rest] @ down[rest]), centre + half + float(size[rest] @ up[rest])
