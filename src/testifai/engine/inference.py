"""Asking a model: what it says, checked, or one line that says what went wrong and where; many batches in threads."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from testifai.errors import InputError
from testifai.models.base import Model
from testifai.models.outputs import check_outputs
from testifai.support.batches import Batch, own_copy
from testifai.support.threads import only_workers
from testifai.support.types import Array
from testifai.support.user_code import ANY_FAULT

log = logging.getLogger(__name__)

Task = TypeVar("Task")
Answer = TypeVar("Answer")

AHEAD = 2  # tasks per worker that are handed out before the first of them is waited for


def call(
    model: Model,
    batch: Batch,
    where: str | Callable[[], str] = "",
    *,
    columns: int | None = None,
    classes: int | None = None,
) -> Array:
    """The model's outputs on a batch, one row per input, checked.

    >>> from testifai.models import wrap
    >>> call(wrap(lambda batch: 1 / 0), ["one", "two"], "clean")
    Traceback (most recent call last):
    testifai.errors.InputError: model: raised ZeroDivisionError: division by zero (batch of 2 inputs, clean)
    """
    outputs = attempt(model, batch, where)
    checked = check_outputs(outputs, len(batch), model.name, columns=columns, classes=classes)
    # A model may write its next answer to where it wrote this one.
    return checked if model.spares_batch else checked.copy()


def attempt(ask: Callable[[Batch], Answer], batch: Batch, where: str | Callable[[], str] = "") -> Answer:
    """What a model's function returns, unchecked; whatever it raises becomes one line that says where.

    What it does to its batch reaches nobody else: it gets a copy, unless it is known to leave the batch as it is. A
    read-only view would be cheaper still, but code in C (torch's, OpenCV's) writes through it.
    """
    with blamed(len(batch), where):
        return ask(batch if isinstance(ask, Model) and ask.spares_batch else own_copy(batch))


@contextmanager
def blamed(inputs: int, where: str | Callable[[], str] = "") -> Iterator[None]:
    """Whatever a model raises in here becomes one line that says where: with a batch of so many inputs."""
    try:
        yield
    except InputError:
        raise
    except ANY_FAULT as error:
        log.debug("the model raised", exc_info=True)
        place = where if isinstance(where, str) else where()
        what = ", ".join(filter(None, [f"batch of {inputs} inputs", place]))
        raise InputError(f"model: raised {type(error).__name__}: {one_line(error)} ({what})") from error


def one_line(error: BaseException) -> str:
    """The first line of an error's text."""
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else "no message"


def in_order(run: Callable[[Task], Answer], tasks: Iterable[Task], workers: int) -> Generator[Answer, None, None]:
    """What the tasks give, in their order, from so many threads and with few tasks in memory at a time.

    Jobs are taken from the iterable as they are needed, always in the caller's thread. An error ends it; what has not
    begun by then, or when nobody asks for more, is not run.

    >>> list(in_order(lambda task: task**2, range(5), workers=2))
    [0, 1, 4, 9, 16]
    """
    with only_workers(workers):
        if workers == 1:
            yield from map(run, tasks)
            return
        running: deque[Future[Answer]] = deque()
        pool = ThreadPoolExecutor(workers, thread_name_prefix="testifai")
        try:
            for task in tasks:
                running.append(pool.submit(run, task))
                if len(running) > AHEAD * workers:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)
