"""Outcomes of a model at continuous levels of one perturbation, batch by batch, each kept and none repeated."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from testifai.engine.subject import Movement, Subject
from testifai.models.base import Model
from testifai.perturb import Perturbation
from testifai.session.session import Session
from testifai.statistics import multiplicity
from testifai.support.types import Array, Bools, Floats
from testifai.sweeps import asap
from testifai.sweeps.asap import Points, local_curvature


@dataclass(frozen=True, eq=False)
class SweepBatch:
    """One batch: the outcomes at a level on the inputs starting at index `start` of the visiting order."""

    level: float | None  # the perturbation's own; None for the clean inputs, with which some oracles compare
    start: int
    passed: Bits  # empty for clean inputs
    reference: Array | None = None  # what is remembered of clean inputs, a row per input


@dataclass(frozen=True, eq=False)
class _Job:
    level: float | None
    start: int
    stop: int
    clean: Array | None = None


@dataclass(frozen=True, eq=False)
class _AtLevels:
    subject: Subject
    perturbation: Perturbation
    off: float | None  # the level at which it does nothing, if there is one

    @property
    def model(self) -> Model:
        return self.subject.model

    def __call__(self, job: _Job) -> tuple[SweepBatch, float]:
        subject, places = self.subject, np.arange(job.start, job.stop)
        batch, data = subject.batch(places), subject.data
        if job.level is not None and job.level != self.off:
            batch = self.perturbation.apply_level(
                batch, job.level, seed=subject.seed, indices=subject.order[places], side=data.side, table=data.table
            )
        begin = time.perf_counter()
        outputs = subject.ask(batch, "clean inputs" if job.level is None else f"level {job.level:g}")
        seconds = time.perf_counter() - begin
        if job.level is None:
            return SweepBatch(None, job.start, np.zeros(0, bool), subject.reference(outputs)), seconds
        expected = None if subject.labels is None else subject.labels[subject.order[places]]
        steps = [Movement(self.perturbation, 0, subject.seed, level=job.level)]
        expected, clean = (
            None if rows is None else subject.shifted(rows, steps, places) for rows in (expected, job.clean)
        )
        return SweepBatch(job.level, job.start, subject.judge(outputs, expected, clean).passed), seconds


class Probe:
    def __init__(
        self,
        session: Session,
        perturbation: Perturbation,
        ends: tuple[float, float],
        recorded: Iterable[SweepBatch],
        on_batch: Callable[[SweepBatch], None] | None,
    ) -> None:
        self.inputs = len(session.subject.order)
        self._executor, self._needs_clean = session.executor, session.subject.oracle.needs_clean
        self._job = _AtLevels(session.subject, *_open_ended(perturbation, ends))
        self._on_batch = on_batch
        self._passed, self._clean = _joined(recorded)
        self._used: dict[float, int] = {}

    @property
    def inferences(self) -> int:
        """All that was ever spent on what has been asked for, recorded runs included."""
        return sum(self._used.values()) + self._clean_known()

    def measure(self, asks: list[Ask]) -> Iterator[tuple[float, Bits]]:
        """The outcomes asked for, piece by piece: first what is known, then what has to be run."""
        if self._needs_clean and asks:
            for made in self._run([_Job(None, self._clean_known(), max(ask.stop for ask in asks))]):
                assert made.reference is not None
                self._clean = made.reference if self._clean is None else np.concatenate([self._clean, made.reference])
        missing = []
        for ask in asks:
            known = self._passed.get(ask.level, np.zeros(0, bool))[ask.start : ask.stop]
            if len(known):
                self._use(ask.level, ask.start + len(known))
                yield ask.level, known
            missing.append(_Job(ask.level, ask.start + len(known), ask.stop))
        for made in self._run(missing):
            assert made.level is not None
            before = self._passed.get(made.level, np.zeros(0, bool))
            self._passed[made.level] = np.concatenate([before, made.passed])
            self._use(made.level, made.start + len(made.passed))
            yield made.level, made.passed

    def close(self) -> None:
        self._executor.close()

    def _use(self, level: float, stop: int) -> None:
        self._used[level] = max(stop, self._used.get(level, 0))

    def _clean_known(self) -> int:
        return 0 if self._clean is None else len(self._clean)

    def _run(self, jobs: list[_Job]) -> Iterator[SweepBatch]:
        with closing(self._executor.map(self._job, self._batches(jobs))) as answers:
            for made, seconds in answers:
                rows = made.passed if made.reference is None else made.reference
                self._executor.batch_size.note(len(rows), seconds)
                if self._on_batch is not None:
                    self._on_batch(made)
                yield made

    def _batches(self, jobs: list[_Job]) -> Iterator[_Job]:
        for job in jobs:
            clean = None if job.level is None else self._clean
            start = job.start
            while start < job.stop:
                stop = min(job.stop, start + self._executor.batch_size.next())
                yield _Job(job.level, start, stop, None if clean is None else clean[start:stop])
                start = stop


def _open_ended(perturbation: Perturbation, ends: tuple[float, float]) -> tuple[Perturbation, float | None]:
    """The perturbation for all levels between the ends, and the level at which it is off, if there is one."""
    off = (perturbation.severities if perturbation.levels is None else perturbation.levels)[0]
    known = isinstance(off, int | float) and not isinstance(off, bool) and math.isfinite(off)
    beyond = min(ends) - abs(ends[1] - ends[0])  # no level of the sweep is taken for off by accident
    return replace(perturbation, levels=(beyond, max(ends))), float(off) if known else None


def _joined(recorded: Iterable[SweepBatch]) -> tuple[dict[float, Bits], Array | None]:
    batches: dict[float | None, dict[int, SweepBatch]] = {}
    for one in recorded:
        batches.setdefault(one.level, {})[one.start] = one
    passed: dict[float, Bits] = {}
    clean: Array | None = None
    for level, starts in batches.items():
        rows: list[Array] = []
        for start in sorted(starts):
            part = starts[start].passed if level is not None else starts[start].reference
            if part is None or start != sum(map(len, rows)):
                break  # a gap: what lies behind it is measured again
            rows.append(np.asarray(part))
        if rows and level is None:
            clean = np.concatenate(rows)
        elif rows and level is not None:
            passed[level] = np.concatenate(rows).astype(bool)
    return passed, clean


Bits = Bools
Counts = NDArray[np.int64]


class Ask(NamedTuple):
    """Outcomes wanted: of one level, on the inputs from place `start` to before `stop` of the visiting order."""

    level: float
    start: int
    stop: int


# Answers asks piece by piece: (level, outcomes), those of one level in the order of the places.
Measure = Callable[[list[Ask]], Iterable[tuple[float, Bits]]]


class Samples:
    def __init__(self, measure: Measure, inputs: int, confidence: float, population: str, grid: asap.LevelGrid) -> None:
        self.measure, self.inputs, self.grid = measure, inputs, grid
        self.confidence, self.population = confidence, population
        # Per level the number of passes among the first input, the first two, and so on.
        self._passes: dict[float, Counts] = {}
        self._first: frozenset[float] = frozenset()

    def open(self, levels: list[float]) -> None:
        """Take a first sample at some levels; those of the first call are the first levels."""
        self._first = self._first or frozenset(levels)
        self.grow({level: multiplicity.sizes(self.inputs)[0] for level in levels})

    def grow(self, sizes: dict[float, int]) -> None:
        asks = [Ask(level, self.trials(level), size) for level, size in sorted(sizes.items())]
        for level, passed in self.measure([ask for ask in asks if ask.stop > ask.start]):
            before = self._passes.get(level, np.zeros(0, np.int64))
            so_far = int(before[-1]) if len(before) else 0
            self._passes[level] = np.concatenate([before, so_far + np.cumsum(passed)])

    def trials(self, level: float) -> int:
        return len(self._passes.get(level, ()))

    def accuracy(self, level: float, trials: int | None = None) -> float:
        """The accuracy at a level on its sample, or on the first so many inputs."""
        size = trials or self.trials(level)
        return float(self._passes[level][size - 1]) / size

    def next_size(self, level: float) -> int:
        return next((size for size in multiplicity.sizes(self.inputs) if size > self.trials(level)), self.inputs)

    def points(self, curvature: float | str) -> Points:
        known = sorted(level for level in self._passes if self.trials(level))
        levels = np.array(known, float)
        limits = []
        for level in known:
            first = 1 / len(self._first) if level in self._first else 0.0
            error = (1 - self.confidence) * max(first, asap.error_share(level, self.grid)) / 2
            passes = int(self._passes[level][-1])
            limits.append(multiplicity.interval(passes, self.trials(level), self.inputs, self.population, error))
        lows, highs = np.array(limits, float).reshape(-1, 2).T
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

    def _common(self, levels: list[float]) -> list[float]:
        """The accuracies on common inputs: their differences are far less noisy than those on different ones."""
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
    """Measure until the bound is at most the target for every threshold, or nothing can be settled any more."""
    # The widest unsettled intervals come first, so that what stays open is near the crossings, where levels cost most.
    samples.open(samples.grid.first(curvature))
    while True:
        points = samples.points(curvature)
        grow, new = _plan(points, thresholds, target, samples)
        if grow.any():
            samples.grow({level: samples.next_size(level) for level in points.levels[grow].tolist()})
        elif new:
            samples.open(sorted(new))
        else:
            return


def _plan(points: Points, thresholds: tuple[float, ...], target: float, samples: Samples) -> tuple[Bools, set[float]]:
    """The levels whose samples should grow, and new levels, for the widest unsettled intervals that can be settled."""
    assert points.trials is not None
    widths, trials = np.diff(points.levels), points.trials
    growable = trials < samples.inputs
    wide = samples.grid.wide(points.levels)
    grow, new = np.zeros(len(trials), bool), set[float]()
    # Intervals that reach farther than their parabolas: more inputs help more than another level.
    half = np.maximum(points.accuracies - points.lows, points.highs - points.accuracies)
    noise_prevails = np.maximum(half[:-1], half[1:]) > points.curvature * widths**2 / 4
    for threshold in thresholds:
        unsettled = asap.may_cross(points.levels, points.lows, points.highs, points.curvature, threshold)
        if widths[unsettled].sum() <= target * widths.sum():
            continue
        straddles = (points.lows < threshold) & (points.highs >= threshold)
        by_estimate = asap.may_cross(points.levels, points.accuracies, points.accuracies, points.curvature, threshold)
        noisy = ~by_estimate & noise_prevails
        # The smaller sample of the two has the wider interval.
        left = growable[:-1] & (straddles[:-1] | (noisy & ((trials[:-1] <= trials[1:]) | ~growable[1:])))
        right = growable[1:] & (straddles[1:] | (noisy & ((trials[1:] <= trials[:-1]) | ~growable[:-1])))
        # Between two ends that stay open however many inputs there are, so does most of what lies there.
        divide = wide & ~(straddles[:-1] & straddles[1:])
        open_to = unsettled & (left | right | divide)
        if not open_to.any():
            continue
        chosen = open_to & (widths >= widths[open_to].max() / 2)
        grow[:-1] |= chosen & left
        grow[1:] |= chosen & right
        for pair in np.flatnonzero(chosen & divide & ~left & ~right):
            new.update(asap.within(points, int(pair), threshold, target, samples.grid))
    return grow, new
