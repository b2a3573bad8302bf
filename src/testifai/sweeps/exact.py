"""ASAP on accuracies that are known once a level has been evaluated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from testifai.sweeps import asap, places
from testifai.sweeps.build import Points


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
                wanted.update(places.within(points, int(pair), threshold, 0.0, grid))
