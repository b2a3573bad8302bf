"""The executor of this machine: chunks of inputs are tasks for threads (onnxruntime and OpenCV release the GIL)."""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager

import numpy as np

from testifai.engine.base import BatchOutcome, BatchSize, Executor, References, default_workers, input_bytes
from testifai.engine.plan import Node, Work, most_inputs, prefix_tree
from testifai.engine.prefix_tree import ArrayTreeWalk, TreePaths
from testifai.engine.subject import Subject
from testifai.runs.outcomes import Outcomes
from testifai.support.threads import only_workers

# A chunk is perturbed as a whole: large enough to amortise NumPy's cost per call, small enough for one per depth.
CHUNK_BYTES = 4 << 20
CHUNK_INPUTS = 4096
SCATTERED = 4  # times as many inputs, if each test needs few of them: outcomes are recorded in larger pieces

HAND_OVER_EVERY = 0.05  # seconds
MOST_REPORTS = 64  # in the queue

# Outcomes, an error, or None at the end of a worker.
Reported = list[BatchOutcome] | BaseException | None


class LocalExecutor(Executor):
    """Threads of this process; a worker never touches the outcomes."""

    def __init__(
        self,
        subject: Subject,
        *,
        batch_size: int | None = None,
        workers: int | None = None,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        self.subject = subject
        size = max(1, input_bytes(subject.data))
        self.batch_size = BatchSize(batch_size or subject.model.batch_size, size)
        self.workers = workers or default_workers(subject.model)
        self.references = References(len(subject.order))
        self.interrupted = interrupted
        self.chunk = max(1, min(CHUNK_INPUTS, CHUNK_BYTES // size))

    def run(self, work: Work, outcomes: Outcomes, hand_over: Callable[[BatchOutcome], None]) -> None:
        if self.subject.oracle.needs_clean:
            work = work.with_clean()
        tree = prefix_tree(self.subject.space, work.configurations)
        paths = TreePaths(tree)
        pieces = work.pieces(outcomes, self._chunk_size(work))
        walks = (ArrayTreeWalk(self, work, paths, piece) for piece in pieces)
        with only_workers(self.workers), closing(self._measure(tree, walks)) as results:
            self.stream_results(results, hand_over)

    def _chunk_size(self, work: Work) -> int:
        """Return the size of chunks of equal size, the same number for each worker: they all end together."""
        inputs, tests = len(work.union()), max(1, len(work.configurations))
        # Scattered tests get larger chunks, up to the same number of trials.
        scattered = min(SCATTERED, tests * inputs / max(1, work.asked()))
        chunk = max(1, min(int(scattered * self.chunk), most_inputs(tests)))
        rounds = max(1, -(-inputs // (chunk * self.workers)))
        return max(1, -(-inputs // (rounds * self.workers)))

    def _measure(self, tree: Node, walks: Iterator[ArrayTreeWalk]) -> Generator[BatchOutcome, None, None]:
        if self.workers == 1:
            for walk in walks:
                yield from walk.run(tree)
            return
        threads = _WorkerThreads()
        turn = threading.Lock()

        def worker() -> None:
            try:
                while threads.goes_on():
                    with turn:
                        walk = next(walks, None)
                    if walk is None:
                        break
                    for bundle in _bundles(walk.run(tree)):
                        threads.report(bundle)
                        if not threads.goes_on():
                            break
                threads.report(None)
            except BaseException as error:
                threads.report(error)

        failure: BaseException | None = None
        with threads.working(worker, self.workers):
            running = self.workers
            while running:
                try:
                    item = threads.reports.get(timeout=0.2)
                except queue.Empty:
                    if self.interrupted():
                        raise KeyboardInterrupt from None
                    continue
                if isinstance(item, list):
                    yield from item
                    continue
                running -= 1
                if item is not None:
                    # The others report what they have measured before the failure is raised.
                    failure = failure or item
                    threads.halt = True
        if failure is not None:
            raise failure


class _WorkerThreads:
    """Threads that report to the one that started them.

    A signal may stop that one at any line, also while it holds a lock of the standard library's queues and events,
    which are written in Python: the others would wait for it forever. So it uses a queue written in C and plain
    attributes, and waits by polling.
    """

    def __init__(self) -> None:
        self.reports: queue.SimpleQueue[Reported] = queue.SimpleQueue()
        self.halt = False  # no further batches
        self.gone = False  # reports are not read any more

    def goes_on(self) -> bool:
        return not self.halt

    def report(self, item: Reported) -> None:
        while not self.gone and self.reports.qsize() >= MOST_REPORTS:
            time.sleep(0.01)
        if not self.gone:
            self.reports.put(item)

    @contextmanager
    def working(self, work: Callable[[], None], workers: int) -> Iterator[None]:
        """Start threads; at the end, those still in a batch are waited for, until a signal."""

        def whole() -> None:
            try:
                work()
            finally:
                ended.append(None)

        # Daemons: after a second Ctrl-C, a batch in flight must not keep the process alive.
        ended: list[None] = []  # one for each thread
        threads = [threading.Thread(target=whole, daemon=True, name=f"testifai-{number}") for number in range(workers)]
        started = 0
        try:
            for thread in threads:
                started += 1
                thread.start()
            yield
        finally:
            self.halt = self.gone = True
            while len(ended) < started and any(thread.is_alive() for thread in threads[:started]):
                time.sleep(0.002)


def _bundles(results: Iterator[BatchOutcome]) -> Iterator[list[BatchOutcome]]:
    """Collect results for some milliseconds: every report makes the threads wait for each other."""
    bundle: list[BatchOutcome] = []
    begin = time.perf_counter()
    try:
        for measured in results:
            bundle.append(measured)
            if time.perf_counter() - begin > HAND_OVER_EVERY:
                yield _joined(bundle)
                bundle, begin = [], time.perf_counter()
    except Exception:
        # What was measured before the model failed counts.
        yield _joined(bundle)
        raise
    if bundle:
        yield _joined(bundle)


def _joined(bundle: list[BatchOutcome]) -> list[BatchOutcome]:
    """Join batches of one configuration: recording ten inputs costs the same as a thousand."""
    joined = []
    for configuration, group in itertools.groupby(bundle, key=lambda measured: measured.configuration):
        parts = list(group)
        references = [part.reference for part in parts if part.reference is not None]
        joined.append(
            BatchOutcome(
                configuration,
                np.concatenate([part.places for part in parts]),
                np.concatenate([part.passed for part in parts]),
                {name: np.concatenate([part.kept[name] for part in parts]) for name in parts[0].kept},
                np.concatenate(references) if references else None,
            )
        )
    return joined
