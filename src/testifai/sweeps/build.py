"""From what was measured to results: robustness, bound and crossings for every threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testifai.sweeps import asap
from testifai.sweeps.comparators import Compared
from testifai.sweeps.result import Sweep

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scale:
    """The user's levels from ends[0] to ends[1], which may run downwards, worked with as work[0] up to work[1]."""

    ends: tuple[float, float]
    work: tuple[float, float]

    def shown(self, level: float) -> float:
        """A level of the work as the user's; the ends exactly."""
        if self.ends == self.work or level in self.work:
            return self.ends[self.work.index(level)] if level in self.work else level
        share = (level - self.work[0]) / (self.work[1] - self.work[0])
        return self.ends[0] + share * (self.ends[1] - self.ends[0])


@dataclass(frozen=True)
class SweepSetting:
    """What was asked for; `curvature` as told, `bend` in the units the levels are worked with."""

    scale: Scale
    thresholds: tuple[float, ...]
    method: str
    curvature: float | str
    bend: float | str
    points: int
    confidence: float | None = None
    population: str | None = None
    target: float = 0.0
    name: str = ""


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
        """Accuracies without any uncertainty."""
        levels, accuracies = asap.arrays(known)
        bend = asap.curvatures(levels, accuracies, curvature) if len(levels) > 1 else math.nan
        return cls(levels, accuracies, accuracies, accuracies, bend)


def results(setting: SweepSetting, points: Points, compared: Compared | None = None) -> tuple[Sweep, ...]:
    """One result per threshold."""
    return tuple(_result(setting, points, place, compared) for place in range(len(setting.thresholds)))


def _result(setting: SweepSetting, points: Points, place: int, compared: Compared | None) -> Sweep:
    threshold = setting.thresholds[place]
    levels, accuracies = points.levels, points.accuracies
    # As printed for the method as published; else as near as the measurements allow.
    share = asap.interpolated if isinstance(setting.bend, str) else asap.robustness
    robustness, spread, timeout = share(levels, accuracies, threshold), math.nan, False
    bound, low, high = math.nan, math.nan, math.nan
    uncertain: tuple[tuple[float, float], ...] = ()
    if compared is not None:
        robustness, spread = compared.robustness[place], compared.spread[place]
        timeout = compared.timeout[place]
    elif setting.method == "asap":
        bound, low, high, uncertain = _certainty(points, threshold, setting)
    return Sweep(
        span=setting.scale.ends,
        threshold=threshold,
        robustness=robustness,
        bound=bound,
        low=low,
        high=high,
        levels=np.array([setting.scale.shown(level) for level in levels], float),
        accuracies=accuracies,
        lows=points.lows,
        highs=points.highs,
        trials=points.trials,
        evaluations=len(levels),
        inferences=points.inferences,
        crossings=tuple(setting.scale.shown(level) for level in asap.crossings(levels, accuracies, threshold)),
        uncertain=tuple((setting.scale.shown(start), setting.scale.shown(end)) for start, end in uncertain),
        method=setting.method,
        curvature=setting.curvature,
        points=setting.points,
        confidence=setting.confidence,
        population=setting.population,
        timeout=timeout,
        spread=spread,
        name=setting.name,
    )


def _certainty(
    points: Points, threshold: float, setting: SweepSetting
) -> tuple[float, float, float, tuple[tuple[float, float], ...]]:
    """Theorem 1: the share of the uncertain pairs; the least and most that the robustness can be; the stretches."""
    levels = points.levels
    if len(levels) < 2:
        return 1.0, 0.0, 1.0, (setting.scale.work,)
    pairs = asap.may_cross(levels, points.lows, points.highs, points.curvature, threshold)
    widths = np.diff(levels) / (levels[-1] - levels[0])
    bound = float(widths[pairs].sum())
    sure = float(widths[~pairs & (points.lows[1:] >= threshold)].sum())
    return bound, sure, min(1.0, sure + bound), _stretches(levels, pairs)


def _stretches(levels: Floats, pairs: NDArray[np.bool_]) -> tuple[tuple[float, float], ...]:
    """Neighbouring marked pairs as one stretch each."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], pairs, [False]]).astype(int)))
    return tuple((float(levels[start]), float(levels[end])) for start, end in edges.reshape(-1, 2))
