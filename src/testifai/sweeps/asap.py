"""ASAP, adaptive sampling by parabolic estimation (Arcaini, Bombarda, Bonfanti & Gargantini, AITest 2022).

Algorithm 1 halves an interval of levels while it is wide enough and the curve may cross the threshold in it: the two
ends lie on opposite sides, or one of the two parabolas through them with leading coefficient ±â has its vertex inside
and beyond the threshold. Theorem 1 bounds the error by the total width of the intervals still in that state.

An accuracy is given by a lower and an upper limit here, which are equal where it is known: the parabolas run through
the limits nearer to the threshold, so that what is settled is settled for every curve within the limits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from testifai.support.types import Bools, Floats
from testifai.sweeps.curvature import NARROWEST, first_levels, local_curvature

Mask = Bools


@dataclass(frozen=True)
class LevelGrid:
    """Which levels may be measured, and how close together."""

    low: float
    high: float
    points: int
    integer: bool = False
    narrowest: float = NARROWEST

    def first(self, curvature: float | str) -> list[float]:
        """Where to begin: at both ends, as Algorithm 1 does; with "auto", all over the span."""
        if not isinstance(curvature, str):
            return [self.low, self.high]
        places = self.low + (self.high - self.low) * first_levels(self.points, self.narrowest)
        places[-1] = self.high  # not a rounding error beside it
        return [float(level) for level in (np.unique(np.rint(places)) if self.integer else places)]

    def wide(self, levels: Floats) -> Mask:
        """The pairs of neighbouring levels that are wide enough to be halved."""
        widths = np.diff(levels)
        # A width of exactly one step is halved, whatever rounding made of it.
        wide = widths >= (self.high - self.low) / self.points * (1 - 1e-9)
        return np.asarray(wide & (widths >= 2) if self.integer else wide)

    def middles(self, levels: Floats, pairs: Mask) -> list[float]:
        """The middles of those of the marked pairs that are wide enough."""
        chosen = pairs & self.wide(levels)
        middles = (levels[:-1][chosen] + levels[1:][chosen]) / 2
        return [float(level) for level in (np.floor(middles) if self.integer else middles)]


def curvatures(levels: Floats, accuracies: Floats, curvature: float | str) -> Floats | float:
    """The leading coefficient of the parabolas over each pair of neighbouring levels."""
    return local_curvature(levels, accuracies) if isinstance(curvature, str) else float(curvature)


def may_cross(levels: Floats, lows: Floats, highs: Floats, curvature: Floats | float, threshold: float) -> Mask:
    """Per pair of neighbouring levels: may a curve within the limits and the parabolas cross the threshold?

    `parabIntsct` of Algorithm 1 for both parabolas. An accuracy of exactly the threshold counts as above, as in
    Definition 2: as printed, such an end would settle its interval whatever the parabolas do.

    >>> may_cross(np.array([0.0, 0.5, 1.0]), *[np.array([0.9, 0.9, 0.7])] * 2, 1.0, 0.8)
    array([False,  True])
    """
    above, below = lows >= threshold, highs < threshold
    both_above, both_below = above[:-1] & above[1:], below[:-1] & below[1:]
    reach = curvature * np.diff(levels) ** 2
    dips = _vertex(lows[:-1] - threshold, lows[1:] - threshold, reach) < 0
    peaks = _vertex(threshold - highs[:-1], threshold - highs[1:], reach) < 0
    return np.asarray(~(both_above | both_below) | (both_above & dips) | (both_below & peaks))


def _vertex(left: Floats, right: Floats, reach: Floats) -> Floats:
    """Height of the vertex of the upward parabola through two heights, infinite where it is not between them.

    With a the leading coefficient and w the distance, reach = a·w²: the vertex lies between the two ends where they
    differ by no more than that.
    """
    difference = right - left
    inside = (np.abs(difference) <= reach) & (reach > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        height = (left + right) / 2 - reach / 4 - difference**2 / (4 * reach)
    return np.where(inside, height, np.inf)


def robustness(levels: Floats, accuracies: Floats, threshold: float) -> float:
    """The share of the levels at or above the threshold, each standing for the way from the one before (section III).

    >>> robustness(np.array([0.0, 0.25, 1.0]), np.array([0.9, 0.8, 0.1]), 0.8)
    0.25
    """
    if len(levels) < 2:
        return math.nan
    return float(np.sum(np.diff(levels)[accuracies[1:] >= threshold]) / (levels[-1] - levels[0]))


def interpolated(levels: Floats, accuracies: Floats, threshold: float) -> float:
    """The share of the levels over which the straight lines between the accuracies are at or above the threshold.

    It is no farther from the truth than the bound either, and nearer where crossings lie in wide intervals.

    >>> round(interpolated(np.array([0.0, 0.25, 1.0]), np.array([0.9, 0.8, 0.5]), 0.7), 3)
    0.5
    """
    if len(levels) < 2:
        return math.nan
    above = (accuracies >= threshold).astype(float)
    rise, start = np.diff(accuracies), above[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = (threshold - accuracies[:-1]) / rise
    share = np.where(start == above[1:], start, np.where(start > 0, crossing, 1 - crossing))
    return float(np.sum(np.diff(levels) * share) / (levels[-1] - levels[0]))


def crossings(levels: Floats, accuracies: Floats, threshold: float) -> tuple[float, ...]:
    """Where the straight lines between neighbouring levels cross the threshold."""
    above = accuracies >= threshold
    found = []
    for i in np.flatnonzero(above[:-1] != above[1:]):
        share = (threshold - accuracies[i]) / (accuracies[i + 1] - accuracies[i])
        found.append(float(levels[i] + share * (levels[i + 1] - levels[i])))
    return tuple(found)


def arrays(known: dict[float, float]) -> tuple[Floats, Floats]:
    """Levels in ascending order and their accuracies."""
    levels = sorted(known)
    return np.array(levels, float), np.array([known[level] for level in levels], float)
