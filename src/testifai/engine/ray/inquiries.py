"""What actors are asked: all trials of a task, or several jobs of somebody else's inquiry at a time."""

from __future__ import annotations

import time
from functools import cached_property
from typing import Any

import numpy as np

from testifai.engine.base import BatchOutcome, Executor
from testifai.engine.inference import in_order
from testifai.engine.local import LocalExecutor
from testifai.engine.ray.tasks import Measured, Task
from testifai.engine.subject import Subject
from testifai.engine.workers import Inquiry
from testifai.models.base import Model
from testifai.runs.outcomes import Outcomes
from testifai.support.threads import one_blas_thread


def threads_of(model: Model, cpus: float) -> int:
    """How many threads an actor with so many CPUs asks a model from."""
    return max(1, int(cpus)) if model.thread_safe else 1


class Measuring:
    """The trials of tasks, measured by an executor of the actor's own."""

    def __init__(self, subject: Subject, batch_size: int | None, cpus: float) -> None:
        self.subject, self._batch_size, self._cpus = subject, batch_size, cpus

    @property
    def model(self) -> Model:
        return self.subject.model

    @cached_property
    def _executor(self) -> Executor:
        threads = threads_of(self.model, self._cpus)
        return LocalExecutor(self.subject, batch_size=self._batch_size, workers=threads)

    def __call__(self, task: Task) -> Measured:
        begin = time.perf_counter()
        known = Outcomes(len(self.subject.order))
        if task.references is not None:
            self._executor.references.put(task.places, task.references)
            known.record(0, task.places, np.ones(len(task.places), bool))
        found: list[BatchOutcome] = []
        self._executor.run(task.work(), known, found.append)
        return Measured.of(task, found, time.perf_counter() - begin)


class Bundled:
    """Another inquiry's answers to several jobs together, which have a number, and the seconds they took."""

    def __init__(self, inquiry: Inquiry[Any, Any], threads: int) -> None:
        self.inquiry, self.threads = inquiry, threads

    @property
    def model(self) -> Model:
        return self.inquiry.model

    def __call__(self, jobs: tuple[int, list[Any]]) -> tuple[list[Any], float]:
        begin = time.perf_counter()
        # Sums of matrix products depend on the number of threads, and an answer must not depend on the node.
        with one_blas_thread():
            said = list(in_order(self.inquiry, jobs[1], self.threads))
        return said, time.perf_counter() - begin
