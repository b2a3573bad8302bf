"""The executor `ray`: work on the nodes of a cluster, outcomes handed over in the caller's thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import replace

import numpy as np

from testifai.engine.base import BatchOutcome, Executor
from testifai.engine.batch_size import default_workers
from testifai.engine.local import LocalExecutor
from testifai.engine.plan import Work
from testifai.engine.ray.cutting import Cutting, Pace
from testifai.engine.ray.inquiries import Measuring
from testifai.engine.ray.tasks import Task
from testifai.engine.ray.workers import RayWorkers
from testifai.engine.subject import Subject
from testifai.engine.workers import Inquiry, Job, Said
from testifai.runs.outcomes import Outcomes

LOOK_AROUND_EVERY = 2.0  # seconds, to say where the work is


class RayExecutor(Executor):
    """Actors of a Ray cluster, each with the subject in memory; this process cuts the work and takes the outcomes.

    Options besides those of every executor are those of `RayWorkers`.
    """

    def __init__(
        self,
        subject: Subject,
        *,
        batch_size: int | None = None,
        workers: int | None = None,
        interrupted: Callable[[], bool] = lambda: False,
        address: str | None = None,
        actors: int | None = None,
        cpus: float = 1.0,
        gpus: float = 0.0,
    ) -> None:
        self._actors = RayWorkers(
            workers=workers, interrupted=interrupted, address=address, actors=actors, cpus=cpus, gpus=gpus
        )
        self._measuring = Measuring(subject, batch_size, self._actors.wanted.cpus)
        # What an actor makes of the same subject: sizes of batches and chunks, and where references are kept.
        here = LocalExecutor(subject, batch_size=batch_size, workers=1)
        self.subject, self.batch_size, self.chunk = subject, here.batch_size, here.chunk
        self.references, self.interrupted = here.references, interrupted
        self.workers = self._actors.wanted.actors or default_workers(subject.model)  # until the cluster is asked
        self._pace = Pace()

    def run(self, work: Work, outcomes: Outcomes, hand_over: Callable[[BatchOutcome], None]) -> None:
        for part in self._in_turn(work):
            self._run(part, outcomes, hand_over)

    def map(
        self, inquiry: Inquiry[Job, Said], jobs: Iterable[Job], *, alone: bool = False
    ) -> Generator[Said, None, None]:
        return self._actors.map(inquiry, jobs, alone=alone)

    def close(self) -> None:
        """End the actors, and leave the cluster as it was found; a later run starts anew."""
        self._actors.close()
        self.where = ""

    def _in_turn(self, work: Work) -> Iterator[Work]:
        """The work or, where outcomes are judged by clean ones, the clean test and then the rest of it."""
        if not self.subject.oracle.needs_clean:
            yield work
            return
        yield Work(np.zeros(1, np.int64), work.union())
        rest = work.configurations != 0
        if isinstance(work.places, list):
            yield Work(work.configurations[rest], [work.places[row] for row in np.flatnonzero(rest)])
        else:
            yield Work(work.configurations[rest], work.places)

    def _run(self, work: Work, outcomes: Outcomes, hand_over: Callable[[BatchOutcome], None]) -> None:
        cutting = Cutting(self.subject.space, work, outcomes, most_inputs=self.chunk)
        ready = cutting.next(self._pace.trials(cutting.left(), self.workers))
        if ready is None:
            return
        first: list[Task] = [ready]

        def cut(actors: int) -> Task | None:
            task = first.pop() if first else cutting.next(self._pace.trials(cutting.left(), actors))
            return None if task is None else self._with_references(task)

        crew, looked = self._actors.crew(self._measuring), 0.0
        self.workers = crew.size
        with self._actors.ended_by_errors(), closing(crew.run(cut, self.interrupted)) as results:
            for task, measured in results:
                self._pace.note(task.trials(), measured.seconds)
                if time.monotonic() - looked > LOOK_AROUND_EVERY:
                    self.where, looked = crew.where(), time.monotonic()
                for one in measured.outcomes(task):
                    if one.reference is not None:
                        self.references.put(one.places, one.reference)
                    hand_over(one)
                if self.interrupted():
                    raise KeyboardInterrupt

    def _with_references(self, task: Task) -> Task:
        if not self.subject.oracle.needs_clean or task.configurations[0] == 0:
            return task
        return replace(task, references=self.references.get(task.places))
