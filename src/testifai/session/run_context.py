"""What surrounds a run: Ctrl-C waits for the batch in flight, and fingerprints are computed in a thread."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


class Interrupts:
    """Whether Ctrl-C was pressed during a run: the first ends it after the batch in flight, a second one immediately.

    An executor calls it after every batch. It is no method of the session: that cycle of references would keep the
    model in memory until the next garbage collection.
    """

    def __init__(self) -> None:
        self.noted = False

    def __call__(self) -> bool:
        return self.noted

    @contextmanager
    def delayed(self) -> Iterator[None]:
        """Note Ctrl-C instead of raising KeyboardInterrupt, unless someone else handles signals."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.getsignal(signal.SIGINT)
        if before is not signal.default_int_handler:
            yield
            return

        def note(*_: object) -> None:
            # A plain attribute: a second signal may come while this line runs, and must not wait for a lock.
            self.noted = True
            signal.signal(signal.SIGINT, before)

        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
            self.noted = False


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
