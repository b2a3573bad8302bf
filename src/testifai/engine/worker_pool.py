"""Who asks a model about jobs of any kind: threads of this process, or actors elsewhere, behind one interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable
from typing import Protocol, TypeVar

from testifai.engine.inference import in_order
from testifai.models.base import Model

Job = TypeVar("Job")
Said = TypeVar("Said")
JobIn = TypeVar("JobIn", contravariant=True)
SaidOut = TypeVar("SaidOut", covariant=True)


class Inquiry(Protocol[JobIn, SaidOut]):
    """What is asked of a model, job by job: the answer depends on the job alone, in whatever process it is given.

    It may be sent to another process, once; jobs and answers are small beside it.
    """

    @property
    def model(self) -> Model:
        """The model that is asked, which may be moved to an accelerator beforehand."""
        ...

    def __call__(self, job: JobIn, /) -> SaidOut: ...


class Workers(ABC):
    """Somebody who has inquiries answered."""

    @abstractmethod
    def map(
        self, inquiry: Inquiry[Job, Said], jobs: Iterable[Job], *, alone: bool = False
    ) -> Generator[Said, None, None]:
        """The answers to all jobs, in their order; an error ends it. `alone`: not from several threads at once."""

    def close(self) -> None:  # noqa: B027  most hold nothing
        """Let go of whatever is held between calls, on this machine and on others; another call may follow."""


class Threads(Workers):
    """So many threads of this process."""

    def __init__(self, count: int) -> None:
        self.count = count

    def map(
        self, inquiry: Inquiry[Job, Said], jobs: Iterable[Job], *, alone: bool = False
    ) -> Generator[Said, None, None]:
        return in_order(inquiry, jobs, 1 if alone else self.count)
