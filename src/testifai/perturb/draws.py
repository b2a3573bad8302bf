"""Distributions as tables over the 65,536 words of a random field: a look into a table is a draw."""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtri

WORDS = 2**16
# The middle of each word's share of 0..1.
QUANTILES = (np.arange(WORDS) + 0.5) / WORDS


@lru_cache(maxsize=128)
def normal(mean: float = 0.0, deviation: float = 1.0) -> NDArray[np.float32]:
    """Normal numbers.

    >>> normal(100.0, 15.0).mean().item(), round(float(normal(100.0, 15.0).std()), 2)
    (100.0, 15.0)
    """
    table: NDArray[np.float32] = (mean + deviation * _standard()).astype(np.float32)
    return table


@cache
def _standard() -> NDArray[np.float64]:
    quantiles: NDArray[np.float64] = ndtri(QUANTILES)
    return quantiles


@lru_cache(maxsize=64)
def chosen(share: float) -> NDArray[np.float32]:
    """1 for a share of the words, 0 for the others.

    >>> chosen(0.25).mean().item()
    0.25
    """
    return (share > QUANTILES).astype(np.float32)


# 16 MB each: enough for the severities of one suite.
@lru_cache(maxsize=5)
def photon_levels(photons: float) -> NDArray[np.uint8]:
    """For each of the 256 grey levels, (256, 65536), its level after counting photons where white expects so many.

    >>> abs(photon_levels(60)[128].mean().item() - 128) < 1
    True
    """
    counts = np.arange(int(np.ceil(photons)) + 1)
    rates = np.maximum(np.arange(256)[:, None] / 255 * photons, 1e-300)
    chances = np.exp(counts * np.log(rates) - rates - gammaln(counts + 1))
    steps = np.rint(np.cumsum(chances, axis=1) * WORDS).astype(np.int64)
    # Whoever counts as many as white expects, or more, is white.
    steps[:, -1] = WORDS
    levels = np.floor(np.minimum(counts / photons, 1) * 255 + 0.5).astype(np.uint8)
    return np.repeat(np.tile(levels, 256), np.diff(steps, axis=1, prepend=0).ravel()).reshape(256, WORDS)
