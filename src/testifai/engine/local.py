"""Runs work on this machine: perturb along the prefix tree, feed the model full batches, judge, hand back outcomes.

Chunks of inputs are independent, so each is a task of its own for a pool of threads (onnxruntime and OpenCV release
the interpreter lock). Outcomes are handed to the caller batch by batch, in the caller's thread.
"""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.engine.base import BatchOutcome, Executor, References
from testifai.engine.batch_size import BatchSize, default_workers, input_bytes
from testifai.engine.plan import Node, Work, prefix_tree
from testifai.engine.subject import Subject
from testifai.oracles import predicted
from testifai.runs.outcomes import Outcomes, Places
from testifai.support.batches import Batch, concat, take
from testifai.support.threads import only_workers

# A chunk is perturbed as a whole: large enough to amortise NumPy's cost per call, small enough to hold one per depth.
CHUNK_BYTES = 4 << 20
CHUNK_INPUTS = 4096
CHUNK_CELLS = 64 << 20  # and what each test wants of a chunk is a byte an input

HAND_OVER_EVERY = 0.05  # seconds
MOST_REPORTS = 64  # that wait to be taken

# What a worker says: outcomes, why it failed, or that it is done.
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
        tables = (
            (places, work.missing(outcomes, places))
            for places in _chunks(work.union(), self._chunk_size(len(work.union()), len(work.configurations)))
        )
        tasks = ((places, table) for places, table in tables if table.any())
        with only_workers(self.workers), closing(self._measure(work, tree, tasks)) as results:
            for measured in results:
                if measured.reference is not None:
                    self.references.put(measured.places, measured.reference)
                hand_over(measured)
                if self.interrupted():
                    raise KeyboardInterrupt

    def _chunk_size(self, inputs: int, tests: int) -> int:
        """Chunks of equal size, as many for each worker as for the others: they all end together."""
        chunk = max(1, min(self.chunk, CHUNK_CELLS // max(1, tests)))
        rounds = max(1, -(-inputs // (chunk * self.workers)))
        return max(1, -(-inputs // (rounds * self.workers)))

    def _measure(
        self, work: Work, tree: Node, tasks: Iterator[tuple[Places, NDArray[np.bool_]]]
    ) -> Generator[BatchOutcome, None, None]:
        if self.workers == 1:
            for places, table in tasks:
                yield from _Walk(self, work, places, table).run(tree)
            return
        yield from self._measure_in_threads(work, tree, tasks)

    def _measure_in_threads(
        self, work: Work, tree: Node, tasks: Iterator[tuple[Places, NDArray[np.bool_]]]
    ) -> Iterator[BatchOutcome]:
        crew = _Crew()
        turn = threading.Lock()

        def worker() -> None:
            try:
                while crew.goes_on():
                    with turn:
                        task = next(tasks, None)
                    if task is None:
                        break
                    for bundle in _bundles(_Walk(self, work, *task).run(tree)):
                        crew.report(bundle)
                        if not crew.goes_on():
                            break
                crew.report(None)
            except BaseException as error:
                crew.report(error)

        failure: BaseException | None = None
        with crew.working(worker, self.workers):
            running = self.workers
            while running:
                item = self._next(crew)
                if isinstance(item, list):
                    yield from item
                    continue
                running -= 1
                if item is not None:
                    # The others hand in what they have measured before the failure is told.
                    failure = failure or item
                    crew.halt = True
        if failure is not None:
            raise failure

    def _next(self, crew: _Crew) -> Reported:
        while True:
            try:
                return crew.reports.get(timeout=0.2)
            except queue.Empty:
                if self.interrupted():
                    raise KeyboardInterrupt from None


class _Crew:
    """Threads that report to the one that started them.

    That one may be stopped by a signal at any line, also while it holds a lock of the standard library's queues and
    events, which are written in Python: the lock would stay taken, and everybody else wait for it for ever. So it
    touches none: its queue is one in C, what it says are plain attributes, and it waits by looking.
    """

    def __init__(self) -> None:
        self.reports: queue.SimpleQueue[Reported] = queue.SimpleQueue()
        self.halt = False  # no further batches
        self.gone = False  # nobody takes outcomes any more
        self.threads: list[threading.Thread] = []
        self._ended: list[None] = []  # one for each thread that has

    def goes_on(self) -> bool:
        """Whether there is to be another batch."""
        return not self.halt

    def report(self, item: Reported) -> None:
        """Hand something in, once the reports that wait are not too many."""
        while not self.gone and self.reports.qsize() >= MOST_REPORTS:
            time.sleep(0.01)
        if not self.gone:
            self.reports.put(item)

    @contextmanager
    def working(self, work: Callable[[], None], workers: int) -> Iterator[None]:
        """So many threads at work; at the end, those still in a batch are waited for, until a signal says not to."""

        def whole() -> None:
            try:
                work()
            finally:
                self._ended.append(None)

        # Daemons: a batch that a second Ctrl-C does not wait for must not keep the process from ending.
        self.threads = [
            threading.Thread(target=whole, daemon=True, name=f"testifai-{number}") for number in range(workers)
        ]
        started = 0
        try:
            for thread in self.threads:
                started += 1
                thread.start()
            yield
        finally:
            self.halt = self.gone = True
            while len(self._ended) < started and any(thread.is_alive() for thread in self.threads[:started]):
                time.sleep(0.002)


def _bundles(results: Iterator[BatchOutcome]) -> Iterator[list[BatchOutcome]]:
    """Results of some milliseconds together: every hand-over makes the threads wait for each other."""
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
    """Batches of one configuration as one: a record costs the same for ten inputs as for a thousand."""
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


class _Walk:
    """One chunk's walk through the tree, collecting perturbed inputs into full batches for the model."""

    def __init__(self, executor: LocalExecutor, work: Work, places: Places, table: NDArray[np.bool_]) -> None:
        self.executor = executor
        self.subject = executor.subject
        self.work = work
        self.places = places
        self.table = table
        self.complete = bool(table.all())
        self.pending: list[tuple[int, Places, Batch]] = []
        self.fresh: NDArray[Any] | None = None

    def run(self, tree: Node) -> Iterator[BatchOutcome]:
        rows = np.flatnonzero(self.table[tree.rows].any(axis=0))
        yield from self._visit(tree, rows, self.subject.batch(self.places[rows]))
        yield from self._flush(everything=True)

    def _visit(self, node: Node, rows: NDArray[np.intp], batch: Batch) -> Iterator[BatchOutcome]:
        for test in node.tests:
            wanted, inputs = self._narrow([test], rows, batch)
            if len(wanted):
                configuration = int(self.work.configurations[test])
                self.pending.append((configuration, self.places[wanted], inputs))
                # Later tests are judged against the clean outputs of the same inputs.
                clean_first = configuration == 0 and self.subject.oracle.needs_clean
                yield from self._flush(everything=clean_first)
        for (axis, severity), child in node.children.items():
            wanted, inputs = self._narrow(child.rows, rows, batch)
            if len(wanted):
                perturbed = self.subject.perturb(inputs, self.places[wanted], axis, severity)
                yield from self._visit(child, wanted, perturbed)

    def _narrow(self, tests: list[int], rows: NDArray[np.intp], batch: Batch) -> tuple[NDArray[np.intp], Batch]:
        """The rows of the batch that some of the tests still need."""
        if self.complete:
            return rows, batch
        needed = self.table[tests][:, rows].any(axis=0) if len(tests) > 1 else self.table[tests[0], rows]
        if needed.all():
            return rows, batch
        return rows[needed], take(batch, np.flatnonzero(needed))

    def _flush(self, *, everything: bool) -> Iterator[BatchOutcome]:
        """Feed the model full batches while there are enough inputs; or all that wait, the last batch as it is."""
        waiting = sum(len(places) for _, places, _ in self.pending)
        while waiting and (everything or waiting >= self.executor.batch_size.next()):
            taken = self._next_batch(self.executor.batch_size.next())
            waiting -= sum(len(places) for _, places, _ in taken)
            yield from self._judge(taken)

    def _next_batch(self, size: int) -> list[tuple[int, Places, Batch]]:
        taken: list[tuple[int, Places, Batch]] = []
        while size and self.pending:
            configuration, places, batch = self.pending.pop(0)
            if len(places) > size:
                self.pending.insert(0, (configuration, places[size:], batch[size:]))
                places, batch = places[:size], batch[:size]
            taken.append((configuration, places, batch))
            size -= len(places)
        return taken

    def _judge(self, taken: list[tuple[int, Places, Batch]]) -> Iterator[BatchOutcome]:
        subject = self.subject
        batch = concat([part for _, _, part in taken])
        begin = time.perf_counter()
        outputs = subject.infer(batch, taken[0][0])
        self.executor.batch_size.note(len(batch), time.perf_counter() - begin)
        start = 0
        for configuration, places, _ in taken:
            own = outputs[start : start + len(places)]
            start += len(places)
            expected = None if subject.labels is None else subject.labels[subject.order[places]]
            reference = clean = None
            if subject.oracle.needs_clean:
                if configuration == 0:
                    reference = clean = subject.reference(own)
                    self._remember(places, clean)
                else:
                    clean = self._clean(places)
            outcome = subject.judge(own, expected, clean)
            kept: dict[str, NDArray[np.float32]] = {}
            if "value" in subject.keep and outcome.value is not None:
                kept["value"] = outcome.value.astype(np.float32)
            if "predicted" in subject.keep:
                kept["predicted"] = predicted(own).astype(np.float32)
            yield BatchOutcome(configuration, places, outcome.passed, kept, reference)

    def _remember(self, places: Places, clean: NDArray[Any]) -> None:
        if self.fresh is None:
            known = self.executor.references.get(self.places)
            shape = (len(self.places), *clean.shape[1:])
            self.fresh = np.zeros(shape, clean.dtype) if known is None else known
        self.fresh[np.searchsorted(self.places, places)] = clean

    def _clean(self, places: Places) -> NDArray[Any]:
        """Clean outputs of this chunk, measured just now or in an earlier run."""
        if self.fresh is None:
            known = self.executor.references.get(self.places)
            assert known is not None, "work with a comparing oracle includes the clean test"
            self.fresh = known
        return self.fresh[np.searchsorted(self.places, places)]


def _chunks(places: Places, size: int) -> Iterator[Places]:
    for start in range(0, len(places), size):
        yield places[start : start + size]
