"""ASAP, adaptive sampling by parabolic estimation (Arcaini, Bombarda, Bonfanti & Gargantini, AITest 2022).

Algorithm 1 halves an interval of levels while it is wide enough and the curve may cross the threshold in it: the two
ends lie on opposite sides, or one of the two parabolas through them with leading coefficient ±â has its vertex inside
and beyond the threshold. Theorem 1 bounds the error by the total width of the intervals still in that state. An
accuracy has a lower and an upper limit here, equal if it is known; the parabolas run through the limits nearer to the
threshold.

With curvature="auto" every pair of neighbours has its own â (docs/explanations/bounds.md), the largest of three: the
change of the slope around the pair over its width; the roughness of similar pairs near it, with room for three standard
deviations of a random walk of root mean square second difference d (halfway it is σ √w / 2 = 0.35 d from the chord with
d = σ √(2 w), so three times that is about d); and a least curvature, for a wave as short as the distance of the first
levels looks smooth. These are unevenly spaced, or a regular wave could look flat.

With "auto", the levels after the first ones are multiples of span / 2ᵈ: the wider the interval to be divided, the
smaller the depth d. Each depth gets the same share of the error probability and divides it evenly, so that the few
levels of a coarse depth have narrow intervals. An interval with a crossing is divided near it: levels there need large
samples, and two, one on either side, leave little unsettled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testifai.support.types import Bools, Floats

Look = Callable[[tuple[int, int, int]], list[float]]
Noise = Callable[[tuple[int, int, int]], float]

NARROWEST = 0.05  # with levels rescaled to 0..1
FIRST = 13  # evenly spaced, so many levels are coarse
MARGIN = 4.0
COARSE = 8.0  # the margin is gone where levels are closer than an eighth of that
LEAST = 48.0  # with levels rescaled to 0..1
LIKELY = 4.0  # how much larger than likely the curvature is with which intervals are settled
NEAR = 8.0  # so many of its widths to either side of a pair: 16 pairs, whose root mean square is good to a fifth
_UNEVEN = 0.6
_GOLDEN = (math.sqrt(5) - 1) / 2
# Modulo 1, the next multiple of the golden ratio is _GOLDEN higher or 1 − _GOLDEN lower.
_WIDEST = 1 + _UNEVEN * _GOLDEN


def first_levels(most: int, narrowest: float = NARROWEST) -> Floats:
    """Both ends and unevenly spaced levels of 0..1, none farther apart than `narrowest` unless `most` are too few."""
    count = max(2, min(1 + math.ceil(_WIDEST / narrowest), most))
    places = np.arange(1, count - 1)
    # The multiples of the golden ratio modulo 1 are spread evenly and never repeat.
    moved = places + _UNEVEN * ((places * _GOLDEN) % 1 - 0.5)
    return np.concatenate([[0.0], moved / (count - 1), [1.0]])


def local_curvature(levels: Floats, accuracies: Floats | Look, noise: Noise | None = None) -> Floats:
    """The curvature to assume between each pair of neighbouring levels, in the units of the levels.

    `accuracies` are those of the levels, or a function from the indices of three levels to theirs. `noise` is the
    variance of the change of slope over three levels that is due to sampling.
    """
    widths, span = np.diff(levels), float(levels[-1] - levels[0])
    look = accuracies if callable(accuracies) else lambda three: accuracies[list(three)].tolist()
    before, after = _scale_neighbours(levels, widths)
    own, squares = np.zeros(len(widths)), np.zeros(len(widths))
    for i, (first, last) in enumerate(zip(before, after, strict=True)):
        triples = [(first, i, i + 1)] if first >= 0 else []
        triples += [(i, i + 1, last)] if last < len(levels) else []
        slopes = [np.diff(look(three)) / np.diff(levels[list(three)]) for three in triples]
        found = [abs(float(right - left)) for left, right in slopes]
        chance = [noise(three) for three in triples] if noise else [0.0]
        own[i] = sum(found) / max(1, len(found))
        squares[i] = (sum(one**2 for one in found) - sum(chance)) / max(1, len(found))
    coarse = widths * (FIRST - 1) / span
    margin = np.clip(COARSE * coarse, 1.0, MARGIN)
    # A parabola leaves its chord by a quarter of curvature times width².
    by_others = 4 * _around(levels, widths, squares) / widths**2
    least = LEAST / span**2 * np.minimum(1.0, coarse)
    return np.asarray(np.maximum.reduce([2 * margin * own / widths, by_others, least]))


def _around(levels: Floats, widths: Floats, squares: Floats) -> Floats:
    """For each pair the root mean square second difference of the pairs near it and about as wide."""
    middles = (levels[1:] + levels[:-1]) / 2
    near = np.abs(middles[:, None] - middles) <= NEAR * widths[:, None]
    near &= (widths <= 2 * widths[:, None]) & (2 * widths >= widths[:, None])
    # A second difference is the change of slope times the width. Less its noise, a square may be below zero.
    mean = (near * (squares * widths**2)).sum(axis=1) / near.sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(0.0, mean)))


def _scale_neighbours(levels: Floats, widths: Floats) -> tuple[list[int], list[int]]:
    """For each pair the index of the nearest level before and after it that is at least half its width away."""
    before = np.searchsorted(levels, levels[:-1] - widths / 2, side="right") - 1
    after = np.searchsorted(levels, levels[1:] + widths / 2, side="left")
    pairs, last = np.arange(len(widths)), len(levels) - 1
    before = np.where(pairs > 0, np.maximum(before, 0), -1)
    after = np.where(pairs + 1 < last, np.minimum(after, last), last + 1)
    return before.tolist(), after.tolist()


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

    def wide(self, levels: Floats) -> Bools:
        """The pairs of neighbouring levels that are wide enough to be halved."""
        widths = np.diff(levels)
        # A width of exactly one step is halved, whatever rounding made of it.
        wide = widths >= (self.high - self.low) / self.points * (1 - 1e-9)
        return np.asarray(wide & (widths >= 2) if self.integer else wide)

    def middles(self, levels: Floats, pairs: Bools) -> list[float]:
        chosen = pairs & self.wide(levels)
        middles = (levels[:-1][chosen] + levels[1:][chosen]) / 2
        return [float(level) for level in (np.floor(middles) if self.integer else middles)]


def may_cross(levels: Floats, lows: Floats, highs: Floats, curvature: Floats | float, threshold: float) -> Bools:
    """Per pair of neighbours: may a curve cross the threshold (`parabIntsct` of Algorithm 1, both parabolas)?"""
    # An accuracy of exactly the threshold counts as above (Definition 2).
    above, below = lows >= threshold, highs < threshold
    both_above, both_below = above[:-1] & above[1:], below[:-1] & below[1:]
    reach = curvature * np.diff(levels) ** 2
    dips = _vertex(lows[:-1] - threshold, lows[1:] - threshold, reach) < 0
    peaks = _vertex(threshold - highs[:-1], threshold - highs[1:], reach) < 0
    return np.asarray(~(both_above | both_below) | (both_above & dips) | (both_below & peaks))


def _vertex(left: Floats, right: Floats, reach: Floats) -> Floats:
    """Height of the upward parabola's vertex through two heights, with reach a·w²; infinite if not between them."""
    difference = right - left
    inside = (np.abs(difference) <= reach) & (reach > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        height = (left + right) / 2 - reach / 4 - difference**2 / (4 * reach)
    return np.where(inside, height, np.inf)


def robustness(levels: Floats, accuracies: Floats, threshold: float) -> float:
    """The share of the levels at or above the threshold, each with the distance from the one before (section III)."""
    if len(levels) < 2:
        return math.nan
    return float(np.sum(np.diff(levels)[accuracies[1:] >= threshold]) / (levels[-1] - levels[0]))


def interpolated(levels: Floats, accuracies: Floats, threshold: float) -> float:
    """The share of levels where the straight lines between accuracies reach the threshold; within the bound, too."""
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


@dataclass(frozen=True)
class Points:
    """Levels in ascending order with what is known of the accuracy at each."""

    levels: Floats
    accuracies: Floats
    lows: Floats
    highs: Floats
    curvature: Floats | float
    trials: NDArray[np.int64] | None = None
    inferences: int = 0

    @classmethod
    def exact(cls, known: dict[float, float], curvature: float | str) -> Points:
        levels = np.array(sorted(known), float)
        accuracies = np.array([known[level] for level in sorted(known)], float)
        bend: Floats | float = math.nan
        if len(levels) > 1:
            bend = local_curvature(levels, accuracies) if isinstance(curvature, str) else float(curvature)
        return cls(levels, accuracies, accuracies, accuracies, bend)


def depths(grid: LevelGrid) -> int:
    return math.ceil(math.log2(8 * grid.points))


def error_share(level: float, grid: LevelGrid) -> float:
    """The share of the error probability of a level that is not among the first; the shares add up to at most 1."""
    if grid.integer:
        return 1 / (grid.high - grid.low + 1)
    most = depths(grid)
    place = round((level - grid.low) / (grid.high - grid.low) * 2**most)
    depth = most - ((place & -place).bit_length() - 1) if place else 1
    return float(1 / most / 2 ** max(0, depth - 1))


def within(points: Points, pair: int, threshold: float, target: float, grid: LevelGrid) -> list[float]:
    """One or two new levels between the two of a pair: on both sides of a crossing, else in the middle.

    Their distance from where the line crosses is what the curve is likely to deviate, at least the target's share.
    """
    i, j = pair, pair + 1
    a, b = float(points.levels[i]), float(points.levels[j])
    wanted, distance = [(a + b) / 2], (b - a) / 2
    decided = points.highs[i] < threshold <= points.lows[j] or points.highs[j] < threshold <= points.lows[i]
    rise = points.accuracies[j] - points.accuracies[i]
    span = grid.high - grid.low
    if decided and rise != 0:
        crossing = a + (threshold - points.accuracies[i]) / rise * (b - a)
        bend = float(np.broadcast_to(points.curvature, len(points.levels) - 1)[pair]) / LIKELY
        deviation = bend * (b - a) ** 3 / 4 / abs(rise)
        above = points.accuracies >= threshold
        crossings = int(np.sum(above[:-1] != above[1:]))
        near = max(deviation, 0.4 * target * span / crossings, 0.45 * span / grid.points)
        if 4 * near <= b - a:
            sides = (crossing - near, crossing + near)
            wanted, distance = [one for one in sides if a + near / 2 < one < b - near / 2], near
    if grid.integer:
        found = {float(round(level)) for level in wanted}
    else:
        # Levels of the set that is coarse enough for the distance
        steps = 2 ** min(depths(grid), max(1, math.ceil(math.log2(2 * span / distance))))
        found = {float(grid.low + round((level - grid.low) / span * steps) / steps * span) for level in wanted}
    return sorted(level for level in found if a < level < b)


def explore(
    evaluate: Callable[[float], float],
    known: dict[float, float],
    grid: LevelGrid,
    thresholds: tuple[float, ...],
    curvature: float | str,
) -> None:
    """Fill `known` with the accuracies ASAP asks for; several thresholds share them.

    Halving all intervals of a round together finds the same levels as Algorithm 1's recursion, since whether an
    interval is halved depends on its ends alone (with "auto" on its neighbours too).
    """
    wanted = set(grid.first(curvature))
    while wanted:
        for level in sorted(wanted - known.keys()):
            known[level] = evaluate(level)
        points = Points.exact(known, curvature)
        wanted = set()
        for threshold in thresholds:
            pairs = may_cross(points.levels, points.lows, points.highs, points.curvature, threshold)
            if not isinstance(curvature, str):
                wanted.update(grid.middles(points.levels, pairs))
                continue
            for pair in np.flatnonzero(pairs & grid.wide(points.levels)):
                wanted.update(within(points, int(pair), threshold, 0.0, grid))
