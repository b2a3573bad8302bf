"""Tasks and results that driver and actors exchange."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from testifai.engine.base import BatchOutcome, Executor, Job
from testifai.engine.inference import in_order
from testifai.engine.local import LocalExecutor
from testifai.engine.plan import Work
from testifai.engine.subject import Subject
from testifai.models.base import Model
from testifai.runs.outcomes import Ids, Outcomes, Places
from testifai.space import Space
from testifai.support.bits import Bits, pack, unpack
from testifai.support.threads import one_blas_thread
from testifai.support.types import Array, Bools
from testifai.support.version import VERSION

AnyJob: TypeAlias = Job[Any, Any]


@dataclass(frozen=True, eq=False)
class TrialTask:
    """Tests and the inputs that each still needs, of one block of inputs."""

    configurations: Ids
    places: Places
    wanted: Bits | None  # a table (tests × places), None if every test needs every place
    references: Array | None = None  # what the oracle needs of the clean outputs, if it needs and has them

    @classmethod
    def of(cls, configurations: Ids, places: Places, table: Bools) -> TrialTask:
        """Return the task of a table (tests × places), without the inputs that no test needs."""
        some = table.any(axis=0)
        if not some.all():
            places, table = places[some], table[:, some]
        return cls(configurations, places, None if table.all() else pack(table))

    def table(self) -> Bools:
        if self.wanted is None:
            return np.ones((len(self.configurations), len(self.places)), bool)
        return unpack(self.wanted, len(self.places))

    def trials(self) -> int:
        return int(self.table().sum())

    def work(self) -> Work:
        if self.wanted is None:
            return Work(self.configurations, self.places)
        return Work(self.configurations, [self.places[row] for row in self.table()])


@dataclass(frozen=True, eq=False)
class Measured:
    """A bit and the values kept of each trial of a task, test by test, references of the clean test, and the time."""

    passed: Bits
    kept: dict[str, NDArray[np.float32]]
    reference: Array | None
    seconds: float

    @classmethod
    def of(cls, task: TrialTask, outcomes: Iterable[BatchOutcome], seconds: float) -> Measured:
        """Collect the outcomes of all trials of the task, in any order and any pieces."""
        rows = _TrialRows(task)
        passed = np.zeros(rows.trials, bool)
        found = np.zeros(rows.trials, bool)
        kept: dict[str, NDArray[np.float32]] = {}
        reference: Array | None = None
        for one in outcomes:
            at, within = rows.where(one)
            found[at], passed[at] = True, one.passed
            for name, values in one.kept.items():
                if name not in kept:
                    kept[name] = np.full((rows.trials, *values.shape[1:]), np.nan, np.float32)
                kept[name][at] = values
            if one.reference is not None:
                if reference is None:
                    clean = rows.counts[rows.number[one.configuration]]
                    reference = np.zeros((clean, *one.reference.shape[1:]), one.reference.dtype)
                reference[within] = one.reference
        assert found.all(), "an actor measures all of a task or nothing"
        return cls(pack(passed), kept, reference, seconds)

    def outcomes(self, task: TrialTask) -> Iterator[BatchOutcome]:
        rows = _TrialRows(task)
        passed = unpack(self.passed, rows.trials)
        for number, configuration in enumerate(task.configurations.tolist()):
            own = slice(rows.starts[number], rows.starts[number] + rows.counts[number])
            kept = {name: values[own] for name, values in self.kept.items()}
            reference = self.reference if configuration == 0 else None
            yield BatchOutcome(configuration, rows.places(number), passed[own], kept, reference)


class _TrialRows:
    """The positions of the trials of each test of a task when they are written one after the other."""

    def __init__(self, task: TrialTask) -> None:
        self._all, self._table = task.places, None if task.wanted is None else task.table()
        tests = len(task.configurations)
        self.counts = np.full(tests, len(task.places)) if self._table is None else self._table.sum(axis=1)
        self.starts = np.concatenate([[0], np.cumsum(self.counts)[:-1]])
        self.trials = int(self.counts.sum())
        self.number = {configuration: number for number, configuration in enumerate(task.configurations.tolist())}

    def places(self, number: int) -> Places:
        return self._all if self._table is None else self._all[self._table[number]]

    def where(self, one: BatchOutcome) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the positions of outcomes of one test among all trials, and among its own."""
        number = self.number[one.configuration]
        within = np.searchsorted(self.places(number), one.places)
        return self.starts[number] + within, within


def threads_of(model: Model, cpus: float) -> int:
    return max(1, int(cpus)) if model.thread_safe else 1


class Measuring:
    def __init__(self, subject: Subject, batch_size: int | None, cpus: float) -> None:
        self.subject, self._batch_size, self._cpus = subject, batch_size, cpus

    @property
    def model(self) -> Model:
        return self.subject.model

    @cached_property
    def _executor(self) -> Executor:
        threads = threads_of(self.model, self._cpus)
        return LocalExecutor(self.subject, batch_size=self._batch_size, workers=threads)

    def __call__(self, task: TrialTask) -> Measured:
        begin = time.perf_counter()
        known = Outcomes(len(self.subject.order))
        if task.references is not None:
            self._executor.references.put(task.places, task.references)
            known.record(0, task.places, np.ones(len(task.places), bool))
        found: list[BatchOutcome] = []
        self._executor.run(task.work(), known, found.append)
        return Measured.of(task, found, time.perf_counter() - begin)


class Bundled:
    """Another job's answers to several numbered tasks together, and the seconds they took."""

    def __init__(self, job: AnyJob, threads: int) -> None:
        self.job, self.threads = job, threads

    @property
    def model(self) -> Model:
        return self.job.model

    def __call__(self, tasks: tuple[int, list[object]]) -> tuple[list[object], float]:
        begin = time.perf_counter()
        # Sums of matrix products depend on the number of threads, and an answer must not depend on the node.
        with one_blas_thread():
            answers = list(in_order(self.job, tasks[1], self.threads))
        return answers, time.perf_counter() - begin


class Actor:
    def __init__(self, folder: str, path: list[str]) -> None:
        # SIGTERM ends the process. Ray's handler would raise SystemExit in the user's code, as if that had.
        with suppress(ValueError):  # not in the main thread
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        # Relative paths of the user start at the driver's folder, if it is reachable.
        with suppress(OSError):
            os.chdir(folder)
        sys.path.extend(entry for entry in path if entry not in sys.path)
        self._job: AnyJob | None = None

    def about(self) -> tuple[str, str]:
        return VERSION, socket.gethostname()

    def load(self, job: AnyJob, gpus: float) -> None:
        """Store a job; its model moves to a GPU if one was requested and exists."""
        torch: Any = sys.modules.get("torch")
        model, module = job.model, getattr(job.model, "module", None)
        if gpus and torch is not None and isinstance(module, torch.nn.Module) and torch.cuda.is_available():
            from testifai.models.torch import TorchModel

            if isinstance(model, TorchModel):
                # Ray shows the process its own GPUs alone; this is the first of them.
                model.module, model.device = module.to("cuda"), torch.device("cuda")
        self._job = job

    def do(self, task: Any) -> Any:
        assert self._job is not None, "a job is loaded first"
        return self._job(task)


FEWEST_INPUTS = 128  # per test of a task: calls for fewer cost more than splitting tests
MOST_CELLS = 32 << 20  # of the table of a block


class TaskSplitter:
    """Splits missing work into tasks: by inputs first, as tests share steps on them, then by tests in tree order."""

    def __init__(self, space: Space, work: Work, outcomes: Outcomes, *, most_inputs: int) -> None:
        paths = space.paths(work.configurations)
        order = sorted(range(len(paths)), key=paths.__getitem__)  # depth first in the prefix tree
        places = [work.places[row] for row in order] if isinstance(work.places, list) else work.places
        self._work, self._outcomes = Work(work.configurations[order], places), outcomes
        self._inputs, tests = work.union(), len(work.configurations)
        self._of_an_input = work.asked() / max(1, len(self._inputs))
        self._most_inputs = max(1, min(most_inputs, MOST_CELLS // max(1, tests)))
        # More if each test has separate inputs, to have enough for each.
        self._fewest_inputs = min(self._most_inputs, int(np.ceil(FEWEST_INPUTS * tests / max(1e-9, self._of_an_input))))
        self._cut = 0  # inputs
        self._block: Places = self._inputs[:0]
        self._table: Bools = np.zeros((tests, 0), bool)
        self._ends = np.zeros(tests, np.int64)  # trials of the block up to and with each test
        self._row = tests  # the first test of the block that is in no task yet

    def left(self) -> int:
        """Estimate the number of trials that are in no task yet."""
        of_block = self._ends[-1] - self._done() if self._row < len(self._ends) else 0
        return int(of_block + self._of_an_input * (len(self._inputs) - self._cut))

    def next(self, trials: int) -> TrialTask | None:
        """Return a task of about this number of trials, None if nothing is left."""
        while self._row == len(self._ends) or self._ends[-1] == self._done():
            if self._cut == len(self._inputs):
                return None
            self._begin_block(trials)
        begin, done = self._row, self._done()
        # A small rest is added to this task.
        everything = self._ends[-1] - done <= 1.5 * trials
        end = len(self._ends) if everything else int(np.searchsorted(self._ends, done + trials)) + 1
        self._row = end
        rows = begin + np.flatnonzero(self._table[begin:end].any(axis=1))
        return TrialTask.of(self._work.configurations[rows], self._block, self._table[rows])

    def _done(self) -> int:
        return int(self._ends[self._row - 1]) if self._row else 0

    def _begin_block(self, trials: int) -> None:
        size = int(trials / max(1e-9, self._of_an_input))
        size = min(max(size, self._fewest_inputs), self._most_inputs)
        rest = len(self._inputs) - self._cut
        size = rest if rest < 1.5 * size and rest <= self._most_inputs else size
        self._block = self._inputs[self._cut : self._cut + size]
        self._cut += len(self._block)
        self._table = self._work.missing(self._outcomes, self._block)
        self._ends = np.cumsum(self._table.sum(axis=1))
        self._row = 0


class TaskPace:
    """Number of trials for tasks of about a second, smaller towards the end so that all actors end together."""

    SECONDS = 1.0
    SHORTEST = 0.1  # a task costs a few milliseconds
    FIRST = 64
    GROWTH = 8  # at most, between tasks: the first batches of a model are not typical

    def __init__(self, first: int = FIRST, shortest: float = SHORTEST) -> None:
        self._rate: float | None = None  # trials a second of one actor
        self._first = self._largest = first
        self._shortest = shortest

    def note(self, trials: int, seconds: float) -> None:
        rate = trials / max(seconds, 1e-6)
        self._rate = rate if self._rate is None else (self._rate + rate) / 2
        self._largest = max(self._largest, trials)

    def trials(self, left: int, actors: int) -> int:
        if self._rate is None:
            return self._first
        fair = max(left / (2 * max(1, actors)), self._shortest * self._rate)
        return max(1, int(min(self.SECONDS * self._rate, fair, self.GROWTH * self._largest)))
