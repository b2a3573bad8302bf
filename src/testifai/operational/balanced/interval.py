"""The interval of `balanced`: which numbers of failures would make the estimate a likely one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testifai.operational.balanced.design import CELLS
from testifai.operational.base import Flags, Floats, Indices

# Student's for 60 degrees of freedom: the variance rests on few labels that weigh much.
QUANTILE = 2.0
# The first-order correction for skewness is not trusted beyond this.
MOST_SKEW = 1.2
SHIFTS = np.linspace(-8, 8, 161)


@dataclass(frozen=True, eq=False)
class Labels:
    """Of each label its cell, its weight and whether it failed; and how far all are from weighing what they stand for.

    `imbalance` is the sum over the folds of (what the weights make of the curve's rates, less what these add up to)²:
    the variance that the estimate has because the weights do not always add up alike.
    """

    cells: Indices
    weights: Floats
    failed: Flags
    imbalance: float


def limits(
    failing: float, known: tuple[float, float], rate: Floats, members: Floats, labels: Labels
) -> tuple[float, float]:
    """Limits of the number of failures among all examples, from its estimate and from the labels.

    Failure rates of the curve's shape, shifted on the logit scale, give every total between none and all. A total
    belongs to the interval if the estimate lies between two quantiles of what such a population would give: a score
    interval, whose variance is that of the total in question, and larger where the labels scatter more around the
    curve than it says or do not weigh what they should. The quantiles are corrected for skewness (Cornish and Fisher
    1937, first order), because few failures with unequal weights are skewed. `known` is how many failures there must be
    and how many there can be.
    """
    from scipy.special import expit, logit

    cells, weights = labels.cells, labels.weights
    rate = np.clip(rate, 1e-12, 1 - 1e-12)
    rates = expit(logit(rate) + SHIFTS[:, None])
    totals, spread = rates @ members, rates * (1 - rates)
    # Moments of the weighted sum of draws about the total, for independent draws.
    second = weights * np.maximum(weights - 1, 0)
    variance = spread @ np.bincount(cells, second, CELLS) + 1e-9
    third = (spread * (1 - 2 * rates)) @ np.bincount(cells, second * (weights - 2), CELLS)
    skew = np.clip(third / variance**1.5, -MOST_SKEW, MOST_SKEW)
    here = rate[cells]
    scatter = float(second @ (labels.failed - here) ** 2) / (float(second @ (here * (1 - here))) + 1e-9)
    deviation = np.sqrt(variance * max(scatter, 1.0) + labels.imbalance)

    def limit(quantile: float) -> float:
        """The total of which the estimate is that quantile."""
        quantiles = totals + deviation * (quantile + skew * (quantile**2 - 1) / 6)
        return float(np.interp(failing, np.maximum.accumulate(quantiles), totals))

    # Failures are whole.
    low, high = np.floor(min(limit(QUANTILE), failing)), np.ceil(max(limit(-QUANTILE), failing))
    return float(max(low, known[0])), float(min(high, known[1]))
