"""One chunk of inputs through the prefix tree: perturb, feed the model full batches, judge.

`Walk` is the way through the tree, wherever batches live; `ArrayWalk` is the one in this computer's own memory.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from testifai.engine.base import BatchOutcome, Executor
from testifai.engine.plan import Node, Work
from testifai.oracles import predicted
from testifai.runs.outcomes import Places
from testifai.support.batches import Batch, concat, take

Held = TypeVar("Held", bound=Any)  # a batch where it lives; a slice of it is one too
Waiting = tuple[int, Places, Held]  # a configuration, and inputs as it shows them


class Walk(ABC, Generic[Held]):
    """One chunk's walk through the tree, collecting perturbed inputs into full batches for the model."""

    def __init__(self, executor: Executor, work: Work, places: Places, table: NDArray[np.bool_]) -> None:
        self.executor = executor
        self.subject = executor.subject
        self.work = work
        self.places = places
        self.table = table
        self.complete = bool(table.all())
        self.pending: list[Waiting[Held]] = []

    @abstractmethod
    def inputs(self, rows: NDArray[np.intp]) -> Held:
        """The clean inputs at some rows of the chunk."""

    @abstractmethod
    def take(self, batch: Held, rows: NDArray[np.intp]) -> Held:
        """Some rows of a batch."""

    @abstractmethod
    def perturb(self, batch: Held, places: Places, axis: int, severity: int) -> Held:
        """One step of a composite."""

    @abstractmethod
    def measure(self, taken: list[Waiting[Held]]) -> Iterator[BatchOutcome]:
        """Ask the model about a batch and judge it; outcomes may come with those of a later batch."""

    def run(self, tree: Node) -> Iterator[BatchOutcome]:
        rows = np.flatnonzero(self.table[tree.rows].any(axis=0))
        yield from self._visit(tree, rows, self.inputs(rows))
        yield from self._flush(everything=True)

    def _visit(self, node: Node, rows: NDArray[np.intp], batch: Held) -> Iterator[BatchOutcome]:
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
                perturbed = self.perturb(inputs, self.places[wanted], axis, severity)
                yield from self._visit(child, wanted, perturbed)

    def _narrow(self, tests: list[int], rows: NDArray[np.intp], batch: Held) -> tuple[NDArray[np.intp], Held]:
        """The rows of the batch that some of the tests still need."""
        if self.complete:
            return rows, batch
        needed = self.table[tests][:, rows].any(axis=0) if len(tests) > 1 else self.table[tests[0], rows]
        if needed.all():
            return rows, batch
        return rows[needed], self.take(batch, np.flatnonzero(needed))

    def _flush(self, *, everything: bool) -> Iterator[BatchOutcome]:
        """Feed the model full batches while there are enough inputs; or all that wait, the last batch as it is."""
        waiting = sum(len(places) for _, places, _ in self.pending)
        while waiting and (everything or waiting >= self.executor.batch_size.next()):
            taken = self._next_batch(self.executor.batch_size.next())
            waiting -= sum(len(places) for _, places, _ in taken)
            yield from self.measure(taken)

    def _next_batch(self, size: int) -> list[Waiting[Held]]:
        taken, self.pending = cut(self.pending, size)
        return taken


def cut(waiting: list[Waiting[Held]], size: int) -> tuple[list[Waiting[Held]], list[Waiting[Held]]]:
    """The first inputs that wait, so many of them, and the rest."""
    for number, (configuration, places, batch) in enumerate(waiting):
        if len(places) >= size:
            first = (configuration, places[:size], batch[:size])
            rest = [(configuration, places[size:], batch[size:])] if len(places) > size else []
            return [*waiting[:number], first], [*rest, *waiting[number + 1 :]]
        size -= len(places)
    return waiting, []


class ArrayWalk(Walk[Batch]):
    """A walk over arrays and lists of texts."""

    def __init__(self, executor: Executor, work: Work, places: Places, table: NDArray[np.bool_]) -> None:
        super().__init__(executor, work, places, table)
        self.judge = ArrayJudge(executor, places)

    def inputs(self, rows: NDArray[np.intp]) -> Batch:
        return self.subject.batch(self.places[rows])

    def take(self, batch: Batch, rows: NDArray[np.intp]) -> Batch:
        return take(batch, rows)

    def perturb(self, batch: Batch, places: Places, axis: int, severity: int) -> Batch:
        return self.subject.perturb(batch, places, axis, severity)

    def measure(self, taken: list[Waiting[Batch]]) -> Iterator[BatchOutcome]:
        batch = concat([part for _, _, part in taken])
        begin = time.perf_counter()
        outputs = self.subject.infer(batch, taken[0][0])
        self.executor.batch_size.note(len(batch), time.perf_counter() - begin)
        yield from self.judge.outcomes(outputs, [(configuration, places) for configuration, places, _ in taken])


class ArrayJudge:
    """From a chunk's outputs to outcomes; it remembers what the oracle needs of the clean ones."""

    def __init__(self, executor: Executor, places: Places) -> None:
        self.subject = executor.subject
        self.references = executor.references
        self.places = places
        self.fresh: NDArray[Any] | None = None

    def outcomes(self, outputs: NDArray[Any], parts: list[tuple[int, Places]]) -> Iterator[BatchOutcome]:
        """What becomes of a batch that holds inputs of some configurations, one after the other."""
        subject, start = self.subject, 0
        for configuration, places in parts:
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
            known = self.references.get(self.places)
            shape = (len(self.places), *clean.shape[1:])
            self.fresh = np.zeros(shape, clean.dtype) if known is None else known
        self.fresh[np.searchsorted(self.places, places)] = clean

    def _clean(self, places: Places) -> NDArray[Any]:
        """Clean outputs of this chunk, measured just now or in an earlier run."""
        if self.fresh is None:
            known = self.references.get(self.places)
            assert known is not None, "work with a comparing oracle includes the clean test"
            self.fresh = known
        return self.fresh[np.searchsorted(self.places, places)]
