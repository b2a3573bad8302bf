"""The executor `ray`: work on the nodes of a cluster, outcomes handed over in the caller's thread."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

import numpy as np

from testifai.engine.base import BatchOutcome, Executor
from testifai.engine.batch_size import default_workers
from testifai.engine.local import LocalExecutor
from testifai.engine.plan import Work
from testifai.engine.ray.cluster import Cluster
from testifai.engine.ray.crew import Crew, Wanted
from testifai.engine.ray.cutting import Cutting, Pace
from testifai.engine.ray.tasks import Task
from testifai.engine.subject import Subject
from testifai.runs.outcomes import Outcomes
from testifai.support import checks

LOOK_AROUND_EVERY = 2.0  # seconds, to say where the work is


class RayExecutor(Executor):
    """Actors of a Ray cluster, each with the subject in memory; this process cuts the work and takes the outcomes.

    `address` is that of a running cluster ("auto": the one on this machine; "ray://HOST:10001": through its client
    server); without one a cluster on this machine is used and, where there is none, started for this run. `actors`
    (or `workers`) is their number, by default as many as the cluster has room for, each with so many CPUs and GPUs.
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
        told = workers if actors is None else checks.whole("executor: actors", actors, least=1)
        self._wanted = Wanted(
            told,
            checks.number("executor: cpus", cpus, above=0),
            checks.number("executor: gpus", gpus, least=0),
        )
        # What an actor makes of the same subject: sizes of batches and chunks, and where references are kept.
        here = LocalExecutor(subject, batch_size=batch_size, workers=1)
        self.subject, self.batch_size, self.chunk = subject, here.batch_size, here.chunk
        self.references, self.interrupted = here.references, interrupted
        self.workers = told or default_workers(subject.model)  # until the cluster is asked
        self._told_batch_size, self._address = batch_size, address
        self._pace = Pace()
        self._crew: Crew | None = None
        self._end: weakref.finalize[..., RayExecutor] | None = None

    def run(self, work: Work, outcomes: Outcomes, hand_over: Callable[[BatchOutcome], None]) -> None:
        for part in self._in_turn(work):
            self._run(part, outcomes, hand_over)

    def close(self) -> None:
        """End the actors, and leave the cluster as it was found; a later run starts anew."""
        if self._end is not None:
            self._end()
        self._crew, self._end, self.where = None, None, ""

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

        crew = self._crew or self._start()
        looked = 0.0
        with self._ended_by_errors(), closing(crew.run(cut, self.interrupted)) as results:
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

    @contextmanager
    def _ended_by_errors(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()  # actors may be in the middle of something
            raise

    def _with_references(self, task: Task) -> Task:
        if not self.subject.oracle.needs_clean or task.configurations[0] == 0:
            return task
        return replace(task, references=self.references.get(task.places))

    def _start(self) -> Crew:
        cluster = Cluster(self._address)
        try:
            crew = Crew(cluster, self._wanted, self.subject, self._told_batch_size)
        except BaseException:
            cluster.close()
            raise
        # Whatever becomes of this executor, nothing of it stays on the cluster.
        self._end = weakref.finalize(self, _end, crew, cluster)
        self._crew, self.workers = crew, crew.size
        return crew


def _end(crew: Crew, cluster: Cluster) -> None:
    crew.close()
    cluster.close()
