"""One chunk of inputs through the prefix tree: perturb, feed the model full batches, judge."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.engine.base import BatchOutcome, Executor
from testifai.engine.gathering import Step, Trails
from testifai.engine.plan import Node, Work
from testifai.oracles import predicted
from testifai.runs.outcomes import Ids, Places
from testifai.support.batches import Batch, concat, take

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class _Waiting:
    """Perturbed inputs that wait for the model: of which test and which place each is."""

    configurations: Ids
    places: Places
    inputs: Batch

    def __len__(self) -> int:
        return len(self.places)

    def split(self, size: int) -> tuple[_Waiting, _Waiting]:
        """The first so many, and the others."""
        parts = (slice(size), slice(size, None))
        first, rest = (_Waiting(self.configurations[p], self.places[p], self.inputs[p]) for p in parts)
        return first, rest


class Walk:
    """One chunk's walk through the tree, collecting perturbed inputs into full batches for the model.

    It goes depth first, so that a batch per depth is in memory, and takes neighbouring branches together as long as
    their trials are no more than a chunk.
    """

    def __init__(
        self, executor: Executor, work: Work, trails: Trails, places: Places, table: NDArray[np.bool_]
    ) -> None:
        self.executor = executor
        self.subject = executor.subject
        self.work = work
        self.trails = trails
        self.places = places
        self.table = table
        self.trials = np.count_nonzero(table, axis=1)
        self.complete = bool(table.all())
        self.pending: list[_Waiting] = []
        self.fresh: NDArray[Any] | None = None

    def run(self, tree: Node) -> Iterator[BatchOutcome]:
        rows = np.flatnonzero(self.table.any(axis=0))
        yield from self._visit(tree, 0, rows, self.subject.batch(self.places[rows]))
        yield from self._flush(everything=True)

    def _visit(self, node: Node, depth: int, rows: Rows, batch: Batch) -> Iterator[BatchOutcome]:
        for test in node.tests:
            wanted, inputs = self._narrow([test], rows, batch)
            if len(wanted):
                configuration = int(self.work.configurations[test])
                self._wait(np.full(len(wanted), test), wanted, inputs)
                # Later tests are judged against the clean outputs of the same inputs.
                clean_first = configuration == 0 and self.subject.oracle.needs_clean
                yield from self._flush(everything=clean_first)
        for branches in self._together(node):
            tests = [test for _, child in branches for test in child.rows]
            wanted, inputs = self._narrow(tests, rows, batch)
            if len(branches) > 1:
                self._gather(node, depth, tests, wanted, inputs)
                yield from self._flush(everything=False)
            else:
                (((axis, severity), child),) = branches
                perturbed = self.subject.perturb(inputs, self.places[wanted], axis, severity)
                yield from self._visit(child, depth + 1, wanted, perturbed)

    def _together(self, node: Node) -> Iterator[list[tuple[tuple[int, int], Node]]]:
        """The branches with trials, as many at a time as have no more trials than a chunk has inputs, at least one."""
        branches: list[tuple[tuple[int, int], Node]] = []
        load = 0
        for step, child in node.children.items():
            own = int(self.trials[child.rows].sum())
            if not own:
                continue
            if branches and load + own > self.executor.chunk:
                yield branches
                branches, load = [], 0
            branches.append((step, child))
            load += own
        if branches:
            yield branches

    def _gather(self, node: Node, depth: int, tests: list[int], rows: Rows, batch: Batch) -> None:
        """Perturb for all trials of some tests at once."""
        which, wanted = np.nonzero(self.table[tests])
        test = np.array(tests)[which]
        gathering = self.trails.gather(node, depth, test, np.searchsorted(rows, wanted), len(rows))
        places = self.places[rows]

        def perturb(inputs: Batch, step: Step) -> Batch:
            return self.subject.perturb(inputs, places[step.rows], step.axis, step.severity)

        self._wait(test, wanted, gathering.make(batch, perturb))

    def _narrow(self, tests: list[int], rows: Rows, batch: Batch) -> tuple[Rows, Batch]:
        """The rows of the batch that some of the tests still need."""
        if self.complete:
            return rows, batch
        asked = self.table[tests[0]] if len(tests) == 1 else self.table[tests].any(axis=0)
        wanted = np.flatnonzero(asked)
        return (rows, batch) if len(wanted) == len(rows) else (wanted, take(batch, np.searchsorted(rows, wanted)))

    def _wait(self, tests: Rows, rows: Rows, inputs: Batch) -> None:
        self.pending.append(_Waiting(self.work.configurations[tests], self.places[rows], inputs))

    def _flush(self, *, everything: bool) -> Iterator[BatchOutcome]:
        """Feed the model full batches while there are enough inputs; or all that wait, the last batch as it is."""
        waiting = sum(map(len, self.pending))
        while waiting and (everything or waiting >= self.executor.batch_size.next()):
            taken = self._next_batch(self.executor.batch_size.next())
            waiting -= len(taken)
            yield from self._judge(taken)

    def _next_batch(self, size: int) -> _Waiting:
        taken: list[_Waiting] = []
        while size and self.pending:
            first = self.pending.pop(0)
            if len(first) > size:
                first, rest = first.split(size)
                self.pending.insert(0, rest)
            taken.append(first)
            size -= len(first)
        return _Waiting(
            np.concatenate([part.configurations for part in taken]),
            np.concatenate([part.places for part in taken]),
            concat([part.inputs for part in taken]),
        )

    def _judge(self, asked: _Waiting) -> Iterator[BatchOutcome]:
        subject, places = self.subject, asked.places
        begin = time.perf_counter()
        outputs = subject.infer(asked.inputs, int(asked.configurations[0]))
        expected = None if subject.labels is None else subject.labels[subject.order[places]]
        reference = clean = None
        if subject.oracle.needs_clean:
            # The clean test is in no batch with others.
            if asked.configurations[0] == 0:
                reference = clean = subject.reference(outputs)
                self._remember(places, clean)
            else:
                clean = self._clean(places)
        outcome = subject.judge(outputs, expected, clean)
        kept: dict[str, NDArray[np.float32]] = {}
        if "value" in subject.keep and outcome.value is not None:
            kept["value"] = outcome.value.astype(np.float32)
        if "predicted" in subject.keep:
            kept["predicted"] = predicted(outputs).astype(np.float32)
        # What comes with every batch counts too: the smaller batches are, the more of it there is.
        self.executor.batch_size.note(len(asked), time.perf_counter() - begin)
        ends = np.flatnonzero(np.diff(asked.configurations, append=-1)) + 1
        for start, end in zip([0, *ends.tolist()], ends.tolist(), strict=False):
            yield BatchOutcome(
                int(asked.configurations[start]),
                places[start:end],
                outcome.passed[start:end],
                {name: values[start:end] for name, values in kept.items()},
                reference,
            )

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
