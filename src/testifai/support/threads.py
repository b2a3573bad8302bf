"""Who may use how many threads: workers are the only parallelism while they run."""

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
    """NumPy's matrix products in one thread for as long as anyone asks for it.

    Small products, such as a blur's, take three times as long when the library splits them over cores. The number of
    threads belongs to the whole process, so the first to come sets it and the last to go restores it.
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
def one_opencv_thread() -> Iterator[None]:
    """OpenCV, where it is installed, in one thread for as long as this lasts."""
    try:
        import cv2
    except ImportError:
        yield
        return
    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        cv2.setNumThreads(before)


@contextmanager
def only_workers(count: int) -> Iterator[None]:
    """So many workers are the only parallelism: threads of a library's own would only fight those of the others."""
    with ExitStack() as stack:
        stack.enter_context(one_opencv_thread())
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
    """What exists now is not looked through while this lasts.

    Once torch is loaded there are hundreds of thousands of objects: every look at all of them takes a tenth of a
    second, and a run makes objects enough for several. Whoever has set objects aside himself is left alone.
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
    """Run a task in a thread during the block, and wait for it at the end; its errors are left to later callers."""

    def run() -> None:
        with suppress(Exception):
            task()

    thread = threading.Thread(target=run, name="testifai-fingerprint", daemon=True)
    thread.start()
    yield
    thread.join()
