"""One chunk of inputs through the prefix tree: perturb, feed the model full batches, judge."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.engine.base import BatchOutcome, Executor
from testifai.engine.plan import Node, Work
from testifai.oracles import predicted
from testifai.runs.outcomes import Places
from testifai.support.batches import Batch, concat, take


class Walk:
    """One chunk's walk through the tree, collecting perturbed inputs into full batches for the model."""

    def __init__(self, executor: Executor, work: Work, places: Places, table: NDArray[np.bool_]) -> None:
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
