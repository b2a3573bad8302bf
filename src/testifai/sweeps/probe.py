"""Outcomes of a model at continuous levels of one perturbation, batch by batch, each kept and none repeated."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.engine.geometry import Movement
from testifai.engine.inference import in_order
from testifai.perturb import Perturbation
from testifai.scans.session import Session
from testifai.support.batches import Batch
from testifai.sweeps.sampled import Ask, Bits

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class SweepBatch:
    """One batch: the outcomes at a level on the inputs from place `start` of the visiting order.

    `level` is the perturbation's own; None stands for the clean inputs, which oracles that compare with the clean
    output need: `reference` is what is remembered of them, one row per input, and `passed` is empty.
    """

    level: float | None
    start: int
    passed: Bits
    reference: Array | None = None


@dataclass(frozen=True)
class _Job:
    """Inputs to run at a level, None being the clean inputs."""

    level: float | None
    start: int
    stop: int


class Probe:
    """Measures what it is asked for."""

    def __init__(
        self,
        session: Session,
        perturbation: Perturbation,
        ends: tuple[float, float],
        recorded: Iterable[SweepBatch],
        on_batch: Callable[[SweepBatch], None] | None,
    ) -> None:
        self.inputs = len(session.subject.order)
        self._subject, self._batch_size = session.subject, session.executor.batch_size
        self._workers = session.executor.workers
        self._perturbation, self._off = _open_ended(perturbation, ends)
        self._on_batch = on_batch
        self._passed, self._clean = _joined(recorded)
        self._used: dict[float, int] = {}

    @property
    def inferences(self) -> int:
        """All that was ever spent on what has been asked for, recorded runs included."""
        return sum(self._used.values()) + self._clean_known()

    def measure(self, asks: list[Ask]) -> Iterator[tuple[float, Bits]]:
        """The outcomes asked for, piece by piece: first what is known, then what has to be run."""
        if self._subject.oracle.needs_clean and asks:
            self._measure_clean(max(ask.stop for ask in asks))
        missing = []
        for ask in asks:
            known = self._passed.get(ask.level, np.zeros(0, bool))[ask.start : ask.stop]
            if len(known):
                self._use(ask.level, ask.start + len(known))
                yield ask.level, known
            missing.append(_Job(ask.level, ask.start + len(known), ask.stop))
        for job, outputs in self._run(missing):
            passed = self._judge(job, outputs)
            assert job.level is not None
            self._hand_over(SweepBatch(job.level, job.start, passed))
            before = self._passed.get(job.level, np.zeros(0, bool))
            self._passed[job.level] = np.concatenate([before, passed])
            self._use(job.level, job.stop)
            yield job.level, passed

    def _use(self, level: float, stop: int) -> None:
        self._used[level] = max(stop, self._used.get(level, 0))

    def _measure_clean(self, stop: int) -> None:
        """Remember the clean outputs of the first inputs."""
        for job, outputs in self._run([_Job(None, self._clean_known(), stop)]):
            rows = self._subject.reference(outputs)
            self._clean = rows if self._clean is None else np.concatenate([self._clean, rows])
            self._hand_over(SweepBatch(None, job.start, np.zeros(0, bool), rows))

    def _clean_known(self) -> int:
        return 0 if self._clean is None else len(self._clean)

    def _hand_over(self, measured: SweepBatch) -> None:
        if self._on_batch is not None:
            self._on_batch(measured)

    def _run(self, jobs: list[_Job]) -> Iterator[tuple[_Job, Array]]:
        """The model's outputs for all jobs, in batches, in the order of the jobs."""
        return in_order(self._outputs, self._batches(jobs), self._workers)

    def _batches(self, jobs: list[_Job]) -> Iterator[_Job]:
        for job in jobs:
            start = job.start
            while start < job.stop:
                stop = min(job.stop, start + self._batch_size.next())
                yield _Job(job.level, start, stop)
                start = stop

    def _outputs(self, job: _Job) -> tuple[_Job, Array]:
        """Perturb one batch and ask the model."""
        subject = self._subject
        places = np.arange(job.start, job.stop)
        batch = self._at(subject.batch(places), job.level, subject.order[places])
        begin = time.perf_counter()
        outputs = subject.ask(batch, "clean inputs" if job.level is None else f"level {job.level:g}")
        self._batch_size.note(len(batch), time.perf_counter() - begin)
        return job, outputs

    def _at(self, batch: Batch, level: float | None, indices: NDArray[np.intp]) -> Batch:
        if level is None or level == self._off:
            return batch
        side = self._subject.data.side
        return self._perturbation.apply_level(batch, level, seed=self._subject.seed, indices=indices, side=side)

    def _judge(self, job: _Job, outputs: Array) -> Bits:
        subject = self._subject
        places = np.arange(job.start, job.stop)
        expected = None if subject.labels is None else subject.labels[subject.order[places]]
        clean = None if self._clean is None else self._clean[places]
        if job.level is not None:
            steps = [Movement(self._perturbation, 0, subject.seed, level=job.level)]
            expected, clean = (
                None if rows is None else subject.shifted(rows, steps, places) for rows in (expected, clean)
            )
        return subject.judge(outputs, expected, clean).passed


def _open_ended(perturbation: Perturbation, ends: tuple[float, float]) -> tuple[Perturbation, float | None]:
    """The perturbation for all levels between the ends, and the level at which it is off, if there is one.

    A perturbation's own levels begin at off; those of a sweep may begin anywhere, pass through off, or belong to a
    perturbation that declares none. Off is then the parameter of severity 0, where that is a number.
    """
    if perturbation.levels is not None:
        off: Any = perturbation.levels[0]
    else:
        off = perturbation.severities[0]
    known = isinstance(off, int | float) and not isinstance(off, bool) and math.isfinite(off)
    beyond = min(ends) - abs(ends[1] - ends[0])  # no level of the sweep is taken for off by accident
    return replace(perturbation, levels=(beyond, max(ends))), float(off) if known else None


def _joined(recorded: Iterable[SweepBatch]) -> tuple[dict[float, Bits], Array | None]:
    """Batches in any order as the outcomes of each level, and what is remembered of the clean inputs, from place 0."""
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
