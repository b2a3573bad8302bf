"""Where a sweep that chooses its own curvature measures next, from a set of levels that is known beforehand.

The levels after the first ones are whole multiples of span / 2ᵈ: the wider the interval to be divided, the smaller d.
Depth d has 2ᵈ⁻¹ levels that no smaller depth has. Each depth gets the same share of the error probability and divides
it evenly, so that the few levels of a coarse look have narrow intervals.

An interval whose ends lie on opposite sides of the threshold is divided near the crossing, not in the middle: levels
there need large samples, and two, one on either side, leave little open between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from testifai.sweeps import asap
from testifai.sweeps.asap import LevelGrid
from testifai.sweeps.result import Points

# How much larger than likely the curvature is with which intervals are settled.
LIKELY = 4.0


def depths(grid: LevelGrid) -> int:
    """How many depths there are: dividing an interval of the finest step needs eighths of it."""
    return math.ceil(math.log2(8 * grid.points))


def share(level: float, grid: LevelGrid) -> float:
    """The share of the error probability of a level that is not among the first; the shares add up to at most 1."""
    if grid.integer:
        return 1 / (grid.high - grid.low + 1)
    most = depths(grid)
    place = round((level - grid.low) / (grid.high - grid.low) * 2**most)
    depth = most - ((place & -place).bit_length() - 1) if place else 1
    return float(1 / most / 2 ** max(0, depth - 1))


def within(points: Points, pair: int, threshold: float, target: float, grid: LevelGrid) -> list[float]:
    """One or two new levels between the two of a pair."""
    a, b = float(points.levels[pair]), float(points.levels[pair + 1])
    near = _around_crossing(points, pair, threshold, target, grid)
    wanted = [(level, near[1]) for level in near[0]] if near else [((a + b) / 2, (b - a) / 2)]
    found = {_allowed(level, room, grid) for level, room in wanted}
    return sorted(level for level in found if a < level < b)


def _around_crossing(
    points: Points, pair: int, threshold: float, target: float, grid: LevelGrid
) -> tuple[list[float], float] | None:
    """Levels on both sides of where the straight line crosses, and their distance from it; None: no such crossing.

    The distance is what the curve is likely to deviate from the line, and no less than the target leaves to each
    crossing. Missing the crossing costs a level, never the bound.
    """
    i, j = pair, pair + 1
    decided = points.highs[i] < threshold <= points.lows[j] or points.highs[j] < threshold <= points.lows[i]
    rise = points.accuracies[j] - points.accuracies[i]
    if not decided or rise == 0:
        return None
    a, b = float(points.levels[i]), float(points.levels[j])
    crossing = a + (threshold - points.accuracies[i]) / rise * (b - a)
    bend = float(np.broadcast_to(points.curvature, len(points.levels) - 1)[pair]) / LIKELY
    deviation = bend * (b - a) ** 3 / 4 / abs(rise)
    above = points.accuracies >= threshold
    crossings = int(np.sum(above[:-1] != above[1:]))
    span = grid.high - grid.low
    distance = max(deviation, 0.4 * target * span / crossings, 0.45 * span / grid.points)
    if 4 * distance > b - a:
        return None
    return [
        place for place in (crossing - distance, crossing + distance) if a + distance / 2 < place < b - distance / 2
    ], distance


def _allowed(level: float, room: float, grid: LevelGrid) -> float:
    """The nearest level of the set that is coarse enough for the room on either side."""
    if grid.integer:
        return float(round(level))
    span = grid.high - grid.low
    depth = min(depths(grid), max(1, math.ceil(math.log2(2 * span / room))))
    return float(grid.low + round((level - grid.low) / span * 2**depth) / 2**depth * span)


def explore(
    evaluate: Callable[[float], float],
    known: dict[float, float],
    grid: asap.LevelGrid,
    thresholds: tuple[float, ...],
    curvature: float | str,
) -> None:
    """Fill `known` with the accuracies ASAP asks for; several thresholds share them.

    Halving all intervals of a round before looking again finds the same levels as Algorithm 1's recursion, since
    whether an interval is halved depends on its ends alone. With "auto" it depends on its neighbours too, and an
    interval with a crossing is divided near the crossing.
    """
    wanted = set(grid.first(curvature))
    while wanted:
        for level in sorted(wanted - known.keys()):
            known[level] = evaluate(level)
        points = Points.exact(known, curvature)
        wanted = set()
        for threshold in thresholds:
            pairs = asap.may_cross(points.levels, points.lows, points.highs, points.curvature, threshold)
            if not isinstance(curvature, str):
                wanted.update(grid.middles(points.levels, pairs))
                continue
            for pair in np.flatnonzero(pairs & grid.wide(points.levels)):
                wanted.update(within(points, int(pair), threshold, 0.0, grid))
