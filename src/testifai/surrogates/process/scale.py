"""The scale eta = arcsin sqrt(rate), on which a trial has variance 1/4 whatever the rate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EDGE = 0.06  # trials are linearised, and slopes taken, at values of eta this far from 0 and pi/2


def inside(eta: Floats) -> Floats:
    """Values of eta, none closer to the ends of the scale than EDGE."""
    return np.clip(eta, EDGE, np.pi / 2 - EDGE)


def rate(eta: Floats) -> Floats:
    rates: Floats = np.sin(np.clip(eta, 0, np.pi / 2)) ** 2
    return rates


def moments(eta: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of the rate for a normal eta: unlike a slope, they do not vanish at rates 0 and 1.

    >>> mean, variance = moments(np.array([0.0, np.pi / 4]), np.array([0.01, 0.01]))
    >>> mean.round(4).tolist(), variance.round(4).tolist()
    ([0.0099, 0.5], [0.0002, 0.0096])
    """
    once = np.exp(-2 * variance)
    mean = (1 - np.cos(2 * eta) * once) / 2
    spread = (1 + np.cos(4 * eta) * once**4) / 8 - (np.cos(2 * eta) * once) ** 2 / 4
    return mean, np.where(variance > 0, np.maximum(spread, 0), 0)
