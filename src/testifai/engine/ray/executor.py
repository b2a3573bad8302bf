"""The executor `ray`: work on the nodes of a cluster, outcomes handed over in the caller's thread."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from testifai.engine.base import BatchOutcome, Executor
from testifai.engine.batch_size import default_workers
from testifai.engine.local import LocalExecutor
from testifai.engine.plan import Work
from testifai.engine.ray.actor_pool import Crew, Wanted
from testifai.engine.ray.cluster import Cluster
from testifai.engine.ray.jobs import Bundled, Measuring, Task, threads_of
from testifai.engine.ray.task_splitting import Cutting, Pace
from testifai.engine.subject import Subject
from testifai.engine.worker_pool import Inquiry, Job, Said, Workers
from testifai.runs.outcomes import Outcomes
from testifai.support import validation

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


class RayWorkers(Workers):
    """Actors of a Ray cluster, each with the inquiry of the moment in memory.

    `address` is that of a running cluster ("auto": the one on this machine; "ray://HOST:10001": through its client
    server); without one a cluster on this machine is used and, where there is none, started until this is closed.
    `actors` (or `workers`) is their number, by default as many as the cluster has room for, each with so many CPUs and
    GPUs.
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
        self.wanted = Wanted(
            told,
            validation.number("executor: cpus", cpus, above=0),
            validation.number("executor: gpus", gpus, least=0),
        )
        self.interrupted, self._address = interrupted, address
        self._crew: Crew | None = None
        self._loaded: Inquiry[Any, Any] | None = None
        self._end: weakref.finalize[..., RayWorkers] | None = None

    def crew(self, inquiry: Inquiry[Any, Any]) -> Crew:
        """Actors that have the inquiry, or will have it before they are asked."""
        crew = self._crew or self._start()
        if inquiry is not self._loaded:
            with self.ended_by_errors():
                crew.load(inquiry)
            self._loaded = inquiry
        return crew

    def map(
        self, inquiry: Inquiry[Job, Said], jobs: Iterable[Job], *, alone: bool = False
    ) -> Generator[Said, None, None]:
        waiting = list(jobs)
        if not waiting:
            return
        pace, cut, handed_on = Pace(first=1, shortest=0.05), 0, 0
        arrived: dict[int, list[Said]] = {}

        def bundle(actors: int) -> tuple[int, list[Job]] | None:
            nonlocal cut
            begin = cut
            cut = min(len(waiting), begin + pace.trials(len(waiting) - begin, actors))
            return (begin, waiting[begin:cut]) if cut > begin else None

        crew = self.crew(self._bundled(inquiry, alone))
        with self.ended_by_errors(), closing(crew.run(bundle, self.interrupted)) as answers:
            for (begin, asked), (said, seconds) in answers:
                pace.note(len(asked), seconds)
                arrived[begin] = said
                while handed_on in arrived:
                    ready = arrived.pop(handed_on)
                    handed_on += len(ready)
                    yield from ready

    def close(self) -> None:
        """End the actors, and leave the cluster as it was found; a later call starts anew."""
        if self._end is not None:
            self._end()
        self._crew, self._loaded, self._end = None, None, None

    @contextmanager
    def ended_by_errors(self) -> Iterator[None]:
        """Whatever goes wrong in here ends the actors: they may be in the middle of something."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _bundled(self, inquiry: Inquiry[Any, Any], alone: bool) -> Bundled:
        threads = 1 if alone else threads_of(inquiry.model, self.wanted.cpus)
        loaded = self._loaded
        if isinstance(loaded, Bundled) and loaded.inquiry is inquiry and loaded.threads == threads:
            return loaded
        return Bundled(inquiry, threads)

    def _start(self) -> Crew:
        cluster = Cluster(self._address)
        try:
            crew = Crew(cluster, self.wanted)
        except BaseException:
            cluster.close()
            raise
        # Whatever becomes of these workers, nothing of them stays on the cluster.
        self._end = weakref.finalize(self, _end, crew, cluster)
        self._crew = crew
        return crew


def _end(crew: Crew, cluster: Cluster) -> None:
    crew.close()
    cluster.close()
