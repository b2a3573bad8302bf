"""Limits of threads: workers are the only parallelism while they run."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from typing import Any

_lock = threading.Lock()
_users = 0
_limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run NumPy's matrix products in one thread; small ones take three times as long when split over cores.

    The limit belongs to the whole process: the first user sets it and the last one restores it.
    """
    global _users, _limit
    with _lock:
        _users += 1
        if _users == 1:
            _limit = _controller().limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.restore_original_limits()


@contextmanager
def only_workers(count: int) -> Iterator[None]:
    """Keep libraries from starting threads of their own, which would compete with those of the workers."""
    with ExitStack() as stack:
        with suppress(ImportError):
            import cv2

            stack.callback(cv2.setNumThreads, cv2.getNumThreads())
            cv2.setNumThreads(1)
        if count > 1:
            stack.enter_context(one_blas_thread())
        yield


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401  it brings a BLAS of its own, which is only counted once it is loaded
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


OWN = 1_000  # objects that Python itself may have set aside: 375 in version 3.12


@contextmanager
def only_new_looked_at() -> Iterator[None]:
    """Exclude the existing objects from garbage collection, unless the caller has frozen some already.

    With torch loaded, a full collection takes a tenth of a second, and a run triggers several.
    """
    if gc.get_freeze_count() > OWN:
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def in_background(task: Callable[[], object]) -> Iterator[None]:
    """Run a task in a thread during the block and wait for it at the end; its errors are ignored."""

    def run() -> None:
        with suppress(Exception):
            task()

    thread = threading.Thread(target=run, name="testifai-fingerprint", daemon=True)
    thread.start()
    yield
    thread.join()
