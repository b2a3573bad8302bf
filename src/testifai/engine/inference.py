"""Calls of models, with checked outputs and one-line errors, and jobs in threads."""

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

log = logging.getLogger(__name__)

Task = TypeVar("Task")
Answer = TypeVar("Answer")

AHEAD = 2  # tasks per worker that are submitted before the first of them is waited for


def call(
    model: Model,
    batch: Batch,
    where: str | Callable[[], str] = "",
    *,
    columns: int | None = None,
    classes: int | None = None,
) -> Array:
    outputs = attempt(model, batch, where)
    checked = check_outputs(outputs, len(batch), model.name, columns=columns, classes=classes)
    # A copy: a model may overwrite its last outputs.
    return checked if model.spares_batch else checked.copy()


def attempt(ask: Callable[[Batch], Answer], batch: Batch, where: str | Callable[[], str] = "") -> Answer:
    """Return a model's unchecked result on a batch, copied unless it is known not to be modified."""
    with blamed(len(batch), where):
        return ask(batch if isinstance(ask, Model) and ask.spares_batch else own_copy(batch))


@contextmanager
def blamed(inputs: int, where: str | Callable[[], str] = "") -> Iterator[None]:
    """Turn exceptions of a model into one line that says where, with the number of inputs of the batch."""
    try:
        yield
    except (InputError, KeyboardInterrupt):
        raise
    except BaseException as error:
        log.debug("the model raised", exc_info=True)
        place = where if isinstance(where, str) else where()
        what = ", ".join(filter(None, [f"batch of {inputs} inputs", place]))
        raise InputError(f"model: raised {type(error).__name__}: {one_line(error)} ({what})") from error


def one_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else "no message"


def in_order(run: Callable[[Task], Answer], tasks: Iterable[Task], workers: int) -> Generator[Answer, None, None]:
    """Return the results of tasks in order, run in threads; tasks are taken as needed, in the caller's thread."""
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
