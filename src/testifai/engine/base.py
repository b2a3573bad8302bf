"""What an executor is: it runs work somewhere and hands over what became of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testifai.engine.batch_size import BatchSize
from testifai.engine.plan import Work
from testifai.engine.subject import Subject
from testifai.engine.worker_pool import Answer, Job, Task, Threads, Workers
from testifai.runs.outcomes import Outcomes, Places
from testifai.support.types import Array, Bools


@dataclass(frozen=True)
class BatchOutcome:
    """The outcomes of one configuration on some inputs; `reference` is what to remember of clean outputs."""

    configuration: int
    places: Places
    passed: Bools
    kept: dict[str, NDArray[np.float32]]
    reference: Array | None = None


class References:
    """What the oracle remembers of the clean outputs, per place."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.values: Array | None = None

    def put(self, places: Places, rows: Array) -> None:
        if self.values is None:
            self.values = np.zeros((self.inputs, *rows.shape[1:]), rows.dtype)
        self.values[places] = rows

    def get(self, places: Places) -> Array | None:
        return None if self.values is None else self.values[places]


class Executor(Workers):
    """Runs work and hands over what it measured, batch by batch and in the caller's thread; other jobs too.

    The outcomes depend on the subject and the work alone, never on batch size, workers or interruptions.
    """

    subject: Subject
    batch_size: BatchSize
    workers: int
    chunk: int  # inputs perturbed together
    references: References
    interrupted: Callable[[], bool]  # asked after every batch; where it says yes, `run` raises KeyboardInterrupt
    where: str = ""  # the work is done, in words, for whoever looks on; nothing where that is here

    def stream_results(self, results: Iterable[BatchOutcome], hand_over: Callable[[BatchOutcome], None]) -> None:
        """Hand over results as they come, remembering clean outputs, until an interrupt."""
        for measured in results:
            if measured.reference is not None:
                self.references.put(measured.places, measured.reference)
            hand_over(measured)
            if self.interrupted():
                raise KeyboardInterrupt

    @abstractmethod
    def run(self, work: Work, outcomes: Outcomes, hand_over: Callable[[BatchOutcome], None]) -> None:
        """Measure what is missing of the work. What was handed over before an error or interrupt stays valid."""

    def map(
        self, job: Job[Task, Answer], tasks: Iterable[Task], *, alone: bool = False
    ) -> Generator[Answer, None, None]:
        return Threads(self.workers).map(job, tasks, alone=alone)
