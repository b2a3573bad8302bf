"""The executor `ray`: actors on the nodes of a cluster."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

import numpy as np

from testifai.engine.base import Answer, BatchOutcome, Executor, Job, Task, Workers, default_workers
from testifai.engine.local import LocalExecutor
from testifai.engine.plan import Work
from testifai.engine.ray.actor_pool import ActorPool, ActorRequest
from testifai.engine.ray.cluster import Cluster
from testifai.engine.ray.jobs import AnyJob, Bundled, Measuring, TaskPace, TaskSplitter, TrialTask, threads_of
from testifai.engine.subject import Subject
from testifai.runs.outcomes import Outcomes
from testifai.support import validation

LOOK_AROUND_EVERY = 2.0  # seconds between updates of `where`


class RayWorkers(Workers):
    """Actors of a Ray cluster, each with the current job in memory.

    `address` is that of a running cluster ("auto": the one on this machine; "ray://HOST:10001": through its client
    server); by default a cluster on this machine is used or, if there is none, started until this is closed.
    `actors` (or `workers`) is their number, by default as many as fit; `cpus` and `gpus` are those of each.
    """

    def __init__(
        self,
        *,
        workers: int | None = None,
        interrupted: Callable[[], bool] = lambda: False,
        address: str | None = None,
        actors: int | None = None,
        cpus: float = 1.0,
        gpus: float = 0.0,
    ) -> None:
        told = workers if actors is None else validation.whole("executor: actors", actors, least=1)
        self.wanted = ActorRequest(
            told, validation.number("executor: cpus", cpus, above=0), validation.number("executor: gpus", gpus, least=0)
        )
        self.interrupted, self._address = interrupted, address
        self._pool: ActorPool | None = None
        self._loaded: AnyJob | None = None
        self._end: weakref.finalize[..., RayWorkers] | None = None

    def pool(self, job: AnyJob) -> ActorPool:
        pool = self._pool or self._start()
        if job is not self._loaded:
            with self.ended_by_errors():
                pool.load(job)
            self._loaded = job
        return pool

    def map(
        self, job: Job[Task, Answer], tasks: Iterable[Task], *, alone: bool = False
    ) -> Generator[Answer, None, None]:
        waiting = list(tasks)
        if not waiting:
            return
        pace, cut, handed_on = TaskPace(first=1, shortest=0.05), 0, 0
        arrived: dict[int, list[Answer]] = {}

        def bundle(actors: int) -> tuple[int, list[Task]] | None:
            nonlocal cut
            begin = cut
            cut = min(len(waiting), begin + pace.trials(len(waiting) - begin, actors))
            return (begin, waiting[begin:cut]) if cut > begin else None

        pool = self.pool(self._bundled(job, alone))
        with self.ended_by_errors(), closing(pool.run(bundle, self.interrupted)) as results:
            for (begin, asked), (answers, seconds) in results:
                pace.note(len(asked), seconds)
                arrived[begin] = answers
                while handed_on in arrived:
                    ready = arrived.pop(handed_on)
                    handed_on += len(ready)
                    yield from ready

    def close(self) -> None:
        if self._end is not None:
            self._end()
        self._pool, self._loaded, self._end = None, None, None

    @contextmanager
    def ended_by_errors(self) -> Iterator[None]:
        """End the actors after an error: they may be in the middle of a task."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _bundled(self, job: AnyJob, alone: bool) -> Bundled:
        threads = 1 if alone else threads_of(job.model, self.wanted.cpus)
        loaded = self._loaded
        if isinstance(loaded, Bundled) and loaded.job is job and loaded.threads == threads:
            return loaded
        return Bundled(job, threads)

    def _start(self) -> ActorPool:
        cluster = Cluster(self._address)
        try:
            pool = ActorPool(cluster, self.wanted)
        except BaseException:
            cluster.close()
            raise
        # Nothing stays on the cluster after these workers.
        self._end = weakref.finalize(self, _end, pool, cluster)
        self._pool = pool
        return pool


class RayExecutor(RayWorkers, Executor):
    """Actors of a Ray cluster, each with the subject in memory; other options are those of `RayWorkers`."""

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
        super().__init__(workers=workers, interrupted=interrupted, address=address, actors=actors, cpus=cpus, gpus=gpus)
        self._measuring = Measuring(subject, batch_size, self.wanted.cpus)
        # Sizes of batches and chunks as in an actor, and a store for references.
        here = LocalExecutor(subject, batch_size=batch_size, workers=1)
        self.subject, self.batch_size, self.chunk = subject, here.batch_size, here.chunk
        self.references = here.references
        self.workers = self.wanted.actors or default_workers(subject.model)  # until the cluster is asked
        self._pace = TaskPace()

    def run(self, work: Work, outcomes: Outcomes, hand_over: Callable[[BatchOutcome], None]) -> None:
        if not self.subject.oracle.needs_clean:
            self._run(work, outcomes, hand_over)
            return
        self._run(Work(np.zeros(1, np.int64), work.union()), outcomes, hand_over)
        rest, places = work.configurations != 0, work.places
        if isinstance(places, list):
            places = [places[row] for row in np.flatnonzero(rest)]
        self._run(Work(work.configurations[rest], places), outcomes, hand_over)

    def close(self) -> None:
        super().close()
        self.where = ""

    def _run(self, work: Work, outcomes: Outcomes, hand_over: Callable[[BatchOutcome], None]) -> None:
        splitter = TaskSplitter(self.subject.space, work, outcomes, most_inputs=self.chunk)
        ready = splitter.next(self._pace.trials(splitter.left(), self.workers))
        if ready is None:
            return
        first: list[TrialTask] = [ready]
        needs_clean = self.subject.oracle.needs_clean

        def cut(actors: int) -> TrialTask | None:
            task = first.pop() if first else splitter.next(self._pace.trials(splitter.left(), actors))
            if task is None or not needs_clean or task.configurations[0] == 0:
                return task
            return replace(task, references=self.references.get(task.places))

        pool, looked = self.pool(self._measuring), 0.0
        self.workers = pool.size
        with self.ended_by_errors(), closing(pool.run(cut, self.interrupted)) as results:
            for task, measured in results:
                self._pace.note(task.trials(), measured.seconds)
                if time.monotonic() - looked > LOOK_AROUND_EVERY:
                    self.where, looked = pool.where(), time.monotonic()
                for one in measured.outcomes(task):
                    if one.reference is not None:
                        self.references.put(one.places, one.reference)
                    hand_over(one)
                if self.interrupted():
                    raise KeyboardInterrupt


def _end(pool: ActorPool, cluster: Cluster) -> None:
    pool.close()
    cluster.close()
