"""Who asks a model about tasks of any kind: threads of this process, or actors elsewhere, behind one interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable
from typing import Protocol, TypeVar

from testifai.engine.inference import in_order
from testifai.models.base import Model

Task = TypeVar("Task")
Answer = TypeVar("Answer")
TaskIn = TypeVar("TaskIn", contravariant=True)
AnswerOut = TypeVar("AnswerOut", covariant=True)


class Job(Protocol[TaskIn, AnswerOut]):
    """What is asked of a model, task by task: the answer depends on the task alone, in whatever process it is given.

    It may be sent to another process, once; tasks and answers are small beside it.
    """

    @property
    def model(self) -> Model:
        """The model that is asked, which may be moved to an accelerator beforehand."""
        ...

    def __call__(self, task: TaskIn, /) -> AnswerOut: ...


class Workers(ABC):
    """Somebody who has jobs answered."""

    @abstractmethod
    def map(
        self, job: Job[Task, Answer], tasks: Iterable[Task], *, alone: bool = False
    ) -> Generator[Answer, None, None]:
        """The answers to all tasks, in their order; an error ends it. `alone`: not from several threads at once."""

    def close(self) -> None:  # noqa: B027  most hold nothing
        """Let go of whatever is held between calls, on this machine and on others; another call may follow."""


class Threads(Workers):
    """So many threads of this process."""

    def __init__(self, count: int) -> None:
        self.count = count

    def map(
        self, job: Job[Task, Answer], tasks: Iterable[Task], *, alone: bool = False
    ) -> Generator[Answer, None, None]:
        return in_order(job, tasks, 1 if alone else self.count)
