"""ASAP on accuracies that are measured on growing samples of inputs.

Each level has an interval that stays valid whenever one stops (`looks`). Its sample grows while the interval contains
a threshold, or while noise rather than the distance of the levels lets the parabolas through the ends of the intervals
reach it; otherwise intervals of levels are divided. The parabolas through the ends of the intervals decide what counts
as settled, so Theorem 1's bound covers the noise of sampling too.

All intervals hold at once with the stated confidence, whatever levels the measurements lead to: those levels come from
a set that is fixed beforehand, and the error probability is divided over all of it, half over the first levels, half
over those that may follow (`places`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from testifai.statistics import looks
from testifai.sweeps import asap, places
from testifai.sweeps.build import Points
from testifai.sweeps.curvature import local_curvature

Floats = NDArray[np.float64]
Bits = NDArray[np.bool_]
Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Ask(NamedTuple):
    """Outcomes wanted: of one level, on the inputs from place `start` to before `stop` of the visiting order."""

    level: float
    start: int
    stop: int


# Answers asks piece by piece: (level, outcomes), those of one level in the order of the places.
Measure = Callable[[list[Ask]], Iterable[tuple[float, Bits]]]


class Samples:
    """The outcomes of each level on the first inputs of the visiting order, and what they say about its accuracy."""

    def __init__(self, measure: Measure, inputs: int, confidence: float, population: str, grid: asap.LevelGrid) -> None:
        self.measure, self.inputs, self.grid = measure, inputs, grid
        self.confidence, self.population = confidence, population
        # Per level the number of passes among the first input, the first two, and so on.
        self._passes: dict[float, Counts] = {}
        self._first: frozenset[float] = frozenset()

    def open(self, levels: list[float]) -> None:
        """Take a first sample at some levels; those of the first call are the first levels."""
        self._first = self._first or frozenset(levels)
        self.grow({level: looks.sizes(self.inputs)[0] for level in levels})

    def grow(self, sizes: dict[float, int]) -> None:
        """Let the samples at these levels have so many inputs."""
        asks = [Ask(level, self.trials(level), size) for level, size in sorted(sizes.items())]
        for level, passed in self.measure([ask for ask in asks if ask.stop > ask.start]):
            before = self._passes.get(level, np.zeros(0, np.int64))
            so_far = int(before[-1]) if len(before) else 0
            self._passes[level] = np.concatenate([before, so_far + np.cumsum(passed)])

    def trials(self, level: float) -> int:
        """The size of the sample at a level."""
        return len(self._passes.get(level, ()))

    def accuracy(self, level: float, trials: int | None = None) -> float:
        """The accuracy at a level on its sample, or on the first so many inputs."""
        size = trials or self.trials(level)
        return float(self._passes[level][size - 1]) / size

    def next_size(self, level: float) -> int:
        """The size at which the sample at a level is looked at next."""
        return next((size for size in looks.sizes(self.inputs) if size > self.trials(level)), self.inputs)

    def points(self, curvature: float | str) -> Points:
        """Estimates and intervals at all levels measured so far."""
        known = sorted(level for level in self._passes if self.trials(level))
        levels = np.array(known, float)
        lows, highs = np.array([self._limits(level) for level in known], float).reshape(-1, 2).T
        accuracies = np.array([self.accuracy(level) for level in known], float)
        trials = np.array([self.trials(level) for level in known], np.int64)
        bend: Floats | float = np.nan if isinstance(curvature, str) else curvature
        if isinstance(curvature, str) and len(known) > 1:
            bend = local_curvature(
                levels,
                lambda three: self._common([known[place] for place in three]),
                lambda three: self._noise([known[place] for place in three]),
            )
        return Points(levels, accuracies, lows, highs, bend, trials, int(trials.sum()))

    def _limits(self, level: float) -> tuple[float, float]:
        first = 1 / len(self._first) if level in self._first else 0.0
        error = (1 - self.confidence) * max(first, places.share(level, self.grid)) / 2
        passes = int(self._passes[level][-1])
        return looks.interval(passes, self.trials(level), self.inputs, self.population, error)

    def _common(self, levels: list[float]) -> list[float]:
        """The accuracies of some levels on the inputs that all of them have in common.

        An input is changed in the same way at every level, so that most outcomes of neighbouring levels are the same
        and differences of these accuracies are far less noisy than the accuracies.
        """
        common = min(map(self.trials, levels))
        return [self.accuracy(level, common) for level in levels]

    def _noise(self, levels: list[float]) -> float:
        """The variance of the change of slope over three levels that comes from the choice of their common inputs."""
        common = min(map(self.trials, levels))
        first, second, third = (np.diff(self._passes[level][:common], prepend=0) for level in levels)
        change = (third - second) / (levels[2] - levels[1]) - (second - first) / (levels[1] - levels[0])
        left = 1 - common / self.inputs if self.population == "data" else 1.0
        return float(change.var() / common * left)


def explore(samples: Samples, thresholds: tuple[float, ...], curvature: float | str, target: float) -> None:
    """Measure until the bound is at most the target for every threshold, or nothing can be settled any more.

    The widest unsettled intervals come first, so that what the target allows to stay open is near the crossings, where
    it would cost most.
    """
    samples.open(samples.grid.first(curvature))
    while True:
        points = samples.points(curvature)
        plan = _plan(points, thresholds, target, samples)
        if plan.grow.any():
            levels = points.levels[plan.grow].tolist()
            samples.grow({level: samples.next_size(level) for level in levels})
        elif plan.divide:
            samples.open(sorted(plan.divide))
        else:
            return


class _Plan(NamedTuple):
    """The levels whose samples should grow, and new levels."""

    grow: Mask
    divide: set[float]


def _plan(points: Points, thresholds: tuple[float, ...], target: float, samples: Samples) -> _Plan:
    """What to do next about the widest intervals that are not settled and can be."""
    assert points.trials is not None
    widths, trials = np.diff(points.levels), points.trials
    growable = trials < samples.inputs
    wide = samples.grid.wide(points.levels)
    plan = _Plan(np.zeros(len(trials), bool), set())
    for threshold in thresholds:
        unsettled = asap.may_cross(points.levels, points.lows, points.highs, points.curvature, threshold)
        if widths[unsettled].sum() <= target * widths.sum():
            continue
        straddles = (points.lows < threshold) & (points.highs >= threshold)
        by_estimate = asap.may_cross(points.levels, points.accuracies, points.accuracies, points.curvature, threshold)
        noisy = ~by_estimate & _noise_prevails(points)
        # The smaller sample of the two has the wider interval.
        left = growable[:-1] & (straddles[:-1] | (noisy & ((trials[:-1] <= trials[1:]) | ~growable[1:])))
        right = growable[1:] & (straddles[1:] | (noisy & ((trials[1:] <= trials[:-1]) | ~growable[:-1])))
        # Between two ends that stay open however many inputs there are, so does most of what lies there.
        divide = wide & ~(straddles[:-1] & straddles[1:])
        open_to = unsettled & (left | right | divide)
        if not open_to.any():
            continue
        chosen = open_to & (widths >= widths[open_to].max() / 2)
        plan.grow[:-1] |= chosen & left
        plan.grow[1:] |= chosen & right
        for pair in np.flatnonzero(chosen & divide & ~left & ~right):
            plan.divide.update(places.within(points, int(pair), threshold, target, samples.grid))
    return plan


def _noise_prevails(points: Points) -> Mask:
    """The pairs whose intervals reach farther than their parabolas: more inputs help more than another level."""
    width = np.maximum(points.accuracies - points.lows, points.highs - points.accuracies)
    return np.asarray(np.maximum(width[:-1], width[1:]) > points.curvature * np.diff(points.levels) ** 2 / 4)
