"""Actors on a cluster's nodes: started, supplied with tasks, and replaced if they are lost."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from testifai.engine.inference import one_line
from testifai.engine.ray.cluster import Cluster
from testifai.engine.ray.jobs import Actor, AnyJob
from testifai.errors import InputError
from testifai.support.progress import note
from testifai.support.version import VERSION

AHEAD = 2  # tasks of an actor at a time: the next one is there when it ends the first
LOOK_EVERY = 0.2  # seconds between checks for an interrupt
STARTED_WITHIN = 120.0  # seconds
INSTALLED = frozenset({"site-packages", "dist-packages"})
MOST_LOSSES = 3  # actors that end with the same task before the task is blamed

Task = TypeVar("Task")
Handle: TypeAlias = Any  # of an actor
Reference: TypeAlias = Any  # to a future value in the object store
Answer: TypeAlias = Any  # of a job to a task


@dataclass(frozen=True)
class ActorRequest:
    actors: int | None  # None: as many as fit
    cpus: float = 1.0
    gpus: float = 0.0

    def fitting(self, resources: dict[str, float]) -> int:
        needs = {name: each for name, each in (("CPU", self.cpus), ("GPU", self.gpus)) if each}
        fit = min(int(resources.get(name, 0) / each + 1e-9) for name, each in needs.items())
        if fit < (self.actors or 1):
            has = " and ".join(f"{resources.get(name, 0):g} {name}" for name in needs)
            asks = " and ".join(f"{each:g} {name}" for name, each in needs.items())
            count = "an actor" if self.actors is None else f"{self.actors} actors, each"
            raise InputError(f"workers: the Ray cluster has {has}, too little for {count} with {asks}; ask for less")
        return self.actors or fit


@dataclass(eq=False)
class _Seat:
    handle: Handle
    about: Reference  # its version and host
    loaded: Reference  # done once it has the job
    ready: bool = False
    tasks: dict[Reference, Any] = field(default_factory=dict)  # in hand, by their future answers


class ActorPool:
    """Runs tasks of a job; those of a lost actor are run again, and every task's answer arrives once."""

    def __init__(self, cluster: Cluster, wanted: ActorRequest) -> None:
        self._cluster, self._ray, self._wanted = cluster, cluster.ray, wanted
        self.size = wanted.fitting(cluster.resources())
        self._kind = self._ray.remote(Actor)
        self._job: Reference = None  # in the object store
        self._seats: list[_Seat] = []
        self._losses: dict[int, int] = {}  # number of lost actors by task

    def load(self, job: AnyJob) -> None:
        """Give all actors a job instead of the one before; the first starts them."""
        try:
            self._job = self._ray.put(job)
        except Exception as error:  # user code may raise anything when it is pickled
            raise InputError(f"workers: the model or the data cannot be sent to another process: {one_line(error)}; "
                             "an ONNX file, a torch module and functions of a module can") from None  # fmt: skip
        if not self._seats:
            note(f"starting {self.size} actors on {self._cluster.nodes()} nodes")
            self._seats = [self._hire() for _ in range(self.size)]
            return
        for seat in self._seats:
            seat.loaded, seat.ready = seat.handle.load.remote(self._job, self._wanted.gpus), False

    def where(self) -> str:
        ready, nodes = sum(seat.ready for seat in self._seats), self._cluster.nodes()
        return f"{nodes} {'node' if nodes == 1 else 'nodes'}, {ready} {'actor' if ready == 1 else 'actors'}"

    def run(
        self, cut: Callable[[int], Task | None], interrupted: Callable[[], bool]
    ) -> Generator[tuple[Task, Answer], None, None]:
        """Return all tasks with their answers, as they arrive; `cut` makes the next one, given the number of actors."""
        again: deque[Task] = deque()
        failure: BaseException | None = None
        idle_since = time.monotonic()
        while True:
            waiting = self._hand_out(again, cut) if failure is None else True
            answers = self._answers()
            busy = any(seat.tasks for seat in self._seats)
            if not busy and (failure is not None or not waiting):
                break
            idle_since = time.monotonic() if any(seat.ready for seat in self._seats) else idle_since
            if time.monotonic() - idle_since > STARTED_WITHIN:
                raise InputError(
                    f"workers: no actor could start on the Ray cluster within {STARTED_WITHIN:.0f} s; are its "
                    "resources taken by others? (ray status)"
                )
            arrived, _ = self._ray.wait(list(answers), timeout=LOOK_EVERY) if answers else ([], [])
            if interrupted():
                raise KeyboardInterrupt
            for answer in arrived:
                try:
                    found = self._take(answers[answer], answer, again)
                except self._ray.exceptions.RayTaskError as error:
                    del answers[answer].tasks[answer]
                    failure = failure or _cause(error)
                    continue
                if found is not None:
                    yield found
        if failure is not None:
            raise failure

    def close(self) -> None:
        for seat in self._seats:
            self._dismiss(seat)
        self._seats = []

    def _hire(self) -> _Seat:
        handle = self._kind.options(
            num_cpus=self._wanted.cpus, num_gpus=self._wanted.gpus, scheduling_strategy="SPREAD"
        ).remote(os.getcwd(), _import_path())
        return _Seat(handle, handle.about.remote(), handle.load.remote(self._job, self._wanted.gpus))

    def _dismiss(self, seat: _Seat) -> None:
        with suppress(Exception):  # it may be gone, and its cluster too
            self._ray.kill(seat.handle)

    def _hand_out(self, again: deque[Task], cut: Callable[[int], Task | None]) -> bool:
        """Give every actor enough tasks; return True if there may be more."""
        ready = [seat for seat in self._seats if seat.ready]
        # In turn: no actor gets a second task while another has none.
        for busy in range(AHEAD):
            for seat in ready:
                if len(seat.tasks) > busy:
                    continue
                task = again.popleft() if again else cut(len(ready))
                if task is None:
                    return False
                seat.tasks[seat.handle.do.remote(task)] = task
        return True

    def _answers(self) -> dict[Reference, _Seat]:
        expected = {answer: seat for seat in self._seats for answer in seat.tasks}
        return expected | {seat.loaded: seat for seat in self._seats if not seat.ready}

    def _take(self, seat: _Seat, answer: Reference, again: deque[Task]) -> tuple[Task, Answer] | None:
        try:
            if answer == seat.loaded:
                self._check_loaded(seat)
                return None
            answers = self._ray.get(answer)
        except self._ray.exceptions.RayTaskError:
            raise
        except self._ray.exceptions.RayError as error:  # the actor, its node, or its answer is lost
            self._replace(seat, again, error)
            return None
        task = seat.tasks.pop(answer)
        self._losses.pop(id(task), None)
        return task, answers

    def _check_loaded(self, seat: _Seat) -> None:
        """Raise InputError if an actor has another version, whose outcomes could differ, or cannot load the job."""
        version, host = self._ray.get(seat.about)
        if version != VERSION:
            raise InputError(f"workers: {host} has testifai {version}, this is {VERSION}; install the same everywhere")
        try:
            self._ray.get(seat.loaded)
        except self._ray.exceptions.RayTaskError as error:
            cause = _cause(error)
            if isinstance(cause, InputError):
                raise cause from None
            raise InputError(
                f"workers: a node cannot load the model and the data: {type(cause).__name__}: {one_line(cause)}; what "
                "they need must be installed, and their files be found, on every node"
            ) from None
        seat.ready = True

    def _replace(self, seat: _Seat, again: deque[Task], error: BaseException) -> None:
        self._dismiss(seat)
        self._seats.remove(seat)
        again += seat.tasks.values()
        reasons = [line.strip() for line in str(error).splitlines() if "Error: " in line]
        if not seat.ready and reasons:
            raise InputError(
                f"workers: an actor cannot start: {reasons[-1][:200]}; is testifai {VERSION} on every node?"
            )
        first = next(iter(seat.tasks.values()), None)  # the one that it was running
        if first is not None:
            self._losses[id(first)] = self._losses.get(id(first), 0) + 1
            if self._losses[id(first)] >= MOST_LOSSES:
                raise InputError(
                    f"workers: {MOST_LOSSES} actors ended one after the other with the same task; does the model fit "
                    "into the memory of a node, or does it end its process? (fewer actors a node have more each)"
                )
        self._seats.append(self._hire())


def _cause(error: Any) -> BaseException:
    cause = error.cause
    return cause if isinstance(cause, BaseException) else error


def _import_path() -> list[str]:
    """Return the folders of modules here, `sys.path` and others, except those within installed packages."""
    places = list(dict.fromkeys(str(Path(entry or ".").absolute()) for entry in sys.path))
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if "." not in name and name != "__main__" and file is not None:
            own = Path(file).absolute()
            home = own.parents[1] if own.name == "__init__.py" else own.parent
            if str(home) not in places and not INSTALLED.intersection(home.parts):
                places.append(str(home))
    return places
