"""Base classes of executors, which run work somewhere and return outcomes."""

from __future__ import annotations

import itertools
import math
import os
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from testifai.data import Data
from testifai.engine.inference import in_order
from testifai.engine.plan import Work
from testifai.engine.subject import Subject
from testifai.models.base import Model
from testifai.runs.outcomes import Outcomes, Places
from testifai.support.batches import are_images, are_pairs
from testifai.support.types import Array, Bools


def default_workers(model: Model) -> int:
    if not model.thread_safe:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class BatchSize:
    """The model's batch size: as given, or the quickest of a few sizes tried on the first batches of the work."""

    SIZES = (32, 64, 128, 256, 512)
    MOST_BYTES = 4 << 20
    TRIES = 8
    WORTH = 1.04  # least speedup of a larger batch: it takes more memory, and timings are noisy
    FAR = 1.3  # times as long as the quickest: sizes after one this slow are not tried

    def __init__(
        self,
        told: int | None,
        bytes_each: int,
        *,
        sizes: Sequence[int] = SIZES,
        most_bytes: int = MOST_BYTES,
        tries: int = TRIES,
    ) -> None:
        affordable = [size for size in sizes if size * bytes_each <= most_bytes]
        self._sizes = [told] if told else affordable or [max(1, most_bytes // bytes_each)]
        self._tries = tries
        self._seconds: dict[int, list[float]] = {size: [] for size in self._sizes}
        self._best: int | None = self._sizes[0] if len(self._sizes) == 1 else None

    def next(self) -> int:
        return self._best or min(self._promising(), key=lambda size: len(self._seconds[size]))

    def limit(self, most: int) -> None:
        """Use no larger size any more, not even one that was given: memory does not suffice."""
        self._sizes = [size for size in self._sizes if size <= most] or [most]
        self._seconds = {size: self._seconds.get(size, []) for size in self._sizes}
        if len(self._sizes) == 1 or (self._best is not None and self._best > most):
            self._best = max(self._sizes)

    def note(self, inputs: int, seconds: float) -> None:
        if self._best is not None or inputs not in self._seconds:
            return
        self._seconds[inputs].append(seconds / inputs)
        tried = self._promising()
        if all(len(self._seconds[size]) >= self._tries for size in tried):
            limit = self.WORTH * min(map(self._quickest, tried))
            self._best = min(size for size in tried if self._quickest(size) <= limit)

    def _promising(self) -> list[int]:
        """Return the sizes before the first one after the best that was tried often enough and is far slower."""
        best = min(self._sizes, key=self._quickest)
        for place in range(self._sizes.index(best) + 1, len(self._sizes)):
            size = self._sizes[place]
            slow = self._quickest(size) > self.FAR * self._quickest(best)
            if slow and len(self._seconds[size]) >= self._tries:
                return self._sizes[:place]
        return self._sizes

    def _quickest(self, size: int) -> float:
        """Return the fastest try of a size: other load only adds time."""
        return min(self._seconds[size], default=math.inf)


def input_bytes(data: Data) -> int:
    if are_images(data.inputs):
        return sum(image.nbytes for image in data.inputs) // len(data.inputs)
    if isinstance(data.inputs, list):
        texts = itertools.chain.from_iterable(data.inputs) if are_pairs(data.inputs) else data.inputs
        return sum(map(len, texts)) // max(1, len(data.inputs))
    first = data.inputs[np.arange(min(1, len(data.inputs)))]
    return sum(one.nbytes for one in first)


Task = TypeVar("Task")
Answer = TypeVar("Answer")
TaskIn = TypeVar("TaskIn", contravariant=True)
AnswerOut = TypeVar("AnswerOut", covariant=True)


class Job(Protocol[TaskIn, AnswerOut]):
    """Answers tasks with a model, in any process; an answer depends on its task alone."""

    @property
    def model(self) -> Model: ...

    def __call__(self, task: TaskIn, /) -> AnswerOut: ...


class Workers(ABC):
    @abstractmethod
    def map(
        self, job: Job[Task, Answer], tasks: Iterable[Task], *, alone: bool = False
    ) -> Generator[Answer, None, None]:
        """Return the answers to all tasks in order, until an error; `alone`: in a single thread of each process."""

    def close(self) -> None:  # noqa: B027  most hold nothing
        """Release what is held between calls; another call may follow."""


class Threads(Workers):
    def __init__(self, workers: int) -> None:
        self.workers = workers

    def map(
        self, job: Job[Task, Answer], tasks: Iterable[Task], *, alone: bool = False
    ) -> Generator[Answer, None, None]:
        return in_order(job, tasks, 1 if alone else self.workers)


@dataclass(frozen=True)
class BatchOutcome:
    """The outcomes of one configuration on some inputs; `reference` is what the oracle needs of clean outputs."""

    configuration: int
    places: Places
    passed: Bools
    kept: dict[str, NDArray[np.float32]]
    reference: Array | None = None


class References:
    """What the oracle needs of the clean outputs, per place."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.values: Array | None = None

    def put(self, places: Places, rows: Array) -> None:
        if self.values is None:
            self.values = np.zeros((self.inputs, *rows.shape[1:]), rows.dtype)
        self.values[places] = rows

    def get(self, places: Places) -> Array | None:
        return None if self.values is None else self.values[places]


class Interrupts:
    """True after Ctrl-C during a run: the first ends it after the batch in flight, a second one immediately."""

    def __init__(self) -> None:
        self.noted = False

    def __call__(self) -> bool:
        return self.noted

    @contextmanager
    def delayed(self) -> Iterator[None]:
        """Note Ctrl-C instead of raising KeyboardInterrupt, unless other code handles signals."""
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or before is not signal.default_int_handler:
            yield
            return

        def note(*_: object) -> None:
            # A plain attribute: a second signal may arrive while this line runs, and must not wait for a lock.
            self.noted = True
            signal.signal(signal.SIGINT, before)

        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
            self.noted = False


class Executor(Threads):
    """Runs work and passes on outcomes in batches, which depend on the subject and the work alone; runs jobs too."""

    subject: Subject
    batch_size: BatchSize
    chunk: int  # inputs perturbed together
    references: References
    interrupted: Callable[[], bool]  # called after every batch; if true, `run` raises KeyboardInterrupt
    where: str = ""  # location of the work, for the progress display; empty for this machine

    def stream_results(self, results: Iterable[BatchOutcome], hand_over: Callable[[BatchOutcome], None]) -> None:
        """Pass on results as they arrive, storing clean outputs, until an interrupt."""
        for measured in results:
            if measured.reference is not None:
                self.references.put(measured.places, measured.reference)
            hand_over(measured)
            if self.interrupted():
                raise KeyboardInterrupt

    @abstractmethod
    def run(self, work: Work, outcomes: Outcomes, hand_over: Callable[[BatchOutcome], None]) -> None:
        """Measure what is missing of the work; what was passed on before an error or interrupt stays valid."""
