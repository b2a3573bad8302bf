"""One chunk of inputs through the prefix tree: perturb, call the model on full batches, judge."""

from __future__ import annotations

import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from testifai.engine.base import BatchOutcome, Executor, References
from testifai.engine.plan import Node, Piece, Work
from testifai.oracles import predicted
from testifai.runs.outcomes import DETECTIONS, EXPECTED, Ids, Places
from testifai.support.batches import Batch, concat, roomy, take
from testifai.support.types import Array

Rows = NDArray[np.intp]
Held = TypeVar("Held", bound=Any)  # a batch on its device


@dataclass(frozen=True)
class PerturbationStep:
    axis: int
    severity: int
    sources: Rows
    rows: Rows


@dataclass(frozen=True)
class CompositeBatch:
    """Steps to the composites of some trials, which are numbered: first the given ones, then as steps make them."""

    rows: Rows  # inputs of the given composites
    steps: list[PerturbationStep]
    ends: Rows  # composite of each trial


class TreePaths:
    """The path of each test, by numbers of nodes: parents before children, nodes of one step together if possible."""

    def __init__(self, tree: Node) -> None:
        found, waiting = [], [_Found(tree, tree, 0, (0, (-1, 0)))]
        while waiting:
            one = waiting.pop()
            found.append(one)
            back, last = one.turn
            for step, child in one.node.children.items():
                waiting.append(_Found(child, one.node, one.depth + 1, (back + (step <= last), step)))
        found.sort(key=lambda one: one.turn)
        number = {id(one.node): place for place, one in enumerate(found)}
        self._number = number
        self._parents = np.array([number[id(one.parent)] for one in found], np.intp)
        self._turns = [one.turn for one in found]
        self._ways = np.full((len(tree.rows), 1 + max(one.depth for one in found)), -1, np.intp)
        self._ends = np.zeros(len(tree.rows), np.intp)
        for place, one in enumerate(found):
            self._ways[one.node.rows, one.depth] = place
            self._ends[one.node.tests] = place
        same = [turn == before for turn, before in zip(self._turns, [None, *self._turns], strict=False)]
        self._groups = np.cumsum(~np.array(same))

    def gather(self, node: Node, depth: int, tests: Rows, rows: Rows, inputs: int) -> CompositeBatch:
        """Return the steps from a node's composites to those of trials below it, tests on rows of the inputs."""
        ways = self._ways[tests, depth:]
        keys = np.sort((ways * inputs + rows[:, None])[ways >= 0])
        keys = keys[np.append(True, keys[1:] != keys[:-1])]
        nodes, of = np.divmod(keys, inputs)
        sources = np.searchsorted(keys, self._parents[nodes] * inputs + of)
        given = int(np.searchsorted(nodes, self._number[id(node)], side="right"))
        cuts = [given, *(given + 1 + np.flatnonzero(np.diff(self._groups[nodes[given:]]))).tolist(), len(keys)]
        steps = []
        for begin, end in itertools.pairwise(cuts):
            axis, severity = self._turns[nodes[begin]][1]
            steps.append(PerturbationStep(axis, severity, sources[begin:end], of[begin:end]))
        return CompositeBatch(of[:given], steps, np.searchsorted(keys, self._ends[tests] * inputs + rows))


@dataclass(frozen=True)
class _Found:
    node: Node
    parent: Node
    depth: int
    turn: tuple[int, tuple[int, int]]  # returns to an earlier axis, and the last step: one call if equal


@dataclass(frozen=True)
class Waiting(Generic[Held]):
    configurations: Ids
    places: Places
    inputs: Held

    def __len__(self) -> int:
        return len(self.places)

    def split(self, size: int) -> tuple[Waiting[Held], Waiting[Held]]:
        parts = (slice(size), slice(size, None))
        first, rest = (Waiting(self.configurations[p], self.places[p], self.inputs[p]) for p in parts)
        return first, rest


class TreeWalk(ABC, Generic[Held]):
    """One chunk's depth-first walk; neighbouring branches are perturbed together up to the trials of a chunk."""

    def __init__(self, executor: Executor, work: Work, paths: TreePaths, piece: Piece) -> None:
        self.executor, self.subject, self.work, self.paths = executor, executor.subject, work, paths
        self.places, self.table = piece
        self.trials = np.count_nonzero(self.table, axis=1)
        self.complete = bool(self.table.all())
        self.together = executor.chunk  # most trials of branches that are perturbed together
        self.pending: list[Waiting[Held]] = []

    @abstractmethod
    def inputs(self, rows: Rows) -> Held: ...

    @abstractmethod
    def take(self, batch: Held, rows: Rows) -> Held: ...

    @abstractmethod
    def roomy(self, batch: Held, size: int) -> Held:
        """Return a batch of this size that starts with the given one."""

    @abstractmethod
    def concat(self, batches: Sequence[Held]) -> Held: ...

    @abstractmethod
    def perturb(self, batch: Held, places: Places, axis: int, severity: int) -> Held: ...

    @abstractmethod
    def measure(self, asked: Waiting[Held]) -> Iterator[BatchOutcome]:
        """Call the model on a batch and judge it; outcomes may come with those of a later batch."""

    def run(self, tree: Node) -> Iterator[BatchOutcome]:
        rows = np.flatnonzero(self.table.any(axis=0))
        yield from self._visit(tree, 0, rows, self.inputs(rows))
        yield from self._flush(everything=True)

    def _visit(self, node: Node, depth: int, rows: Rows, batch: Held) -> Iterator[BatchOutcome]:
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
                perturbed = self.perturb(inputs, self.places[wanted], axis, severity)
                yield from self._visit(child, depth + 1, wanted, perturbed)

    def _together(self, node: Node) -> Iterator[list[tuple[tuple[int, int], Node]]]:
        branches: list[tuple[tuple[int, int], Node]] = []
        load = 0
        for step, child in node.children.items():
            own = int(self.trials[child.rows].sum())
            if not own:
                continue
            if branches and load + own > self.together:
                yield branches
                branches, load = [], 0
            branches.append((step, child))
            load += own
        if branches:
            yield branches

    def _gather(self, node: Node, depth: int, tests: list[int], rows: Rows, batch: Held) -> None:
        which, wanted = np.divmod(np.flatnonzero(self.table[tests]), self.table.shape[1])  # as nonzero, but quicker
        test = np.array(tests)[which]
        composites = self.paths.gather(node, depth, test, np.searchsorted(rows, wanted), len(rows))
        places, begin = self.places[rows], len(composites.rows)
        made = self.roomy(batch, begin + sum(len(step.rows) for step in composites.steps))
        for step in composites.steps:
            end = begin + len(step.rows)
            made[begin:end] = self.perturb(self.take(made, step.sources), places[step.rows], step.axis, step.severity)
            begin = end
        self._wait(test, wanted, self.take(made, composites.ends))

    def _narrow(self, tests: list[int], rows: Rows, batch: Held) -> tuple[Rows, Held]:
        if self.complete:
            return rows, batch
        asked = self.table[tests[0]] if len(tests) == 1 else self.table[tests].any(axis=0)
        wanted = np.flatnonzero(asked)
        return (rows, batch) if len(wanted) == len(rows) else (wanted, self.take(batch, np.searchsorted(rows, wanted)))

    def _wait(self, tests: Rows, rows: Rows, inputs: Held) -> None:
        self.pending.append(Waiting(self.work.configurations[tests], self.places[rows], inputs))

    def _flush(self, *, everything: bool) -> Iterator[BatchOutcome]:
        """Call the model on full batches while there are enough inputs, or on everything that waits."""
        waiting = sum(map(len, self.pending))
        while waiting and (everything or waiting >= self.executor.batch_size.next()):
            taken = self._next_batch(self.executor.batch_size.next())
            waiting -= len(taken)
            yield from self.measure(taken)

    def _next_batch(self, size: int) -> Waiting[Held]:
        taken: list[Waiting[Held]] = []
        while size and self.pending:
            first = self.pending.pop(0)
            if len(first) > size:
                first, rest = first.split(size)
                self.pending.insert(0, rest)
            taken.append(first)
            size -= len(first)
        if len(taken) == 1:
            return taken[0]
        return Waiting(
            np.concatenate([part.configurations for part in taken]),
            np.concatenate([part.places for part in taken]),
            self.concat([part.inputs for part in taken]),
        )


class ArrayTreeWalk(TreeWalk[Batch]):
    def __init__(self, executor: Executor, work: Work, paths: TreePaths, piece: Piece) -> None:
        super().__init__(executor, work, paths, piece)
        self.judge = ArrayJudge(executor, self.places)

    def inputs(self, rows: Rows) -> Batch:
        return self.subject.batch(self.places[rows])

    take = staticmethod(take)
    roomy = staticmethod(roomy)
    concat = staticmethod(concat)

    def perturb(self, batch: Batch, places: Places, axis: int, severity: int) -> Batch:
        return self.subject.perturb(batch, places, axis, severity)

    def measure(self, asked: Waiting[Batch]) -> Iterator[BatchOutcome]:
        begin = time.perf_counter()
        outputs = self.subject.infer(asked.inputs, int(asked.configurations[0]))
        results = self.judge.outcomes(outputs, asked.configurations, asked.places)
        # Judging counts too: its cost per batch favours large ones.
        self.executor.batch_size.note(len(asked), time.perf_counter() - begin)
        yield from results


class ArrayJudge:
    def __init__(self, executor: Executor, places: Places) -> None:
        self.subject, self.places = executor.subject, places
        self.clean = CleanRows(executor.references, places)

    def outcomes(self, outputs: Array, configurations: Ids, places: Places) -> list[BatchOutcome]:
        subject = self.subject
        expected = None if subject.labels is None else subject.labels[subject.order[places]]
        reference = clean = None
        if subject.oracle.needs_clean:
            at = np.searchsorted(self.places, places)
            # The clean test is in no batch with others.
            if configurations[0] == 0:
                reference = clean = subject.reference(outputs)
                self.clean.put(at, clean, np.zeros((len(self.places), *clean.shape[1:]), clean.dtype))
            else:
                clean = self.clean.get(at)
        expected, clean = (subject.moved(rows, configurations, places) for rows in (expected, clean))
        outcome = subject.judge(outputs, expected, clean)
        kept: dict[str, NDArray[np.float32]] = {}
        if "value" in subject.keep and outcome.value is not None:
            kept["value"] = outcome.value.astype(np.float32)
        if "predicted" in subject.keep:
            kept["predicted"] = predicted(outputs).astype(np.float32)
        if DETECTIONS in subject.keep:
            wanted = clean if subject.oracle.needs_clean else expected
            assert wanted is not None, "the oracle has judged against them"
            kept |= {DETECTIONS: outputs, EXPECTED: wanted}
        return by_configuration(configurations, BatchOutcome(0, places, outcome.passed, kept, reference))


class CleanRows:
    def __init__(self, references: References, places: Places, up: Callable[[Array], Any] = np.asarray) -> None:
        self._references, self._places, self._up = references, places, up  # `up` moves arrays to the device
        self._rows: Any = None

    def put(self, at: Any, rows: Any, empty: Any) -> None:
        """Store rows; `empty` has one for each place."""
        if self._rows is None:
            known = self._references.get(self._places)
            self._rows = empty if known is None else self._up(known)
        self._rows[at] = rows

    def get(self, at: Any) -> Any:
        if self._rows is None:
            known = self._references.get(self._places)
            assert known is not None, "work with a comparing oracle includes the clean test"
            self._rows = self._up(known)
        return self._rows[at]


def by_configuration(configurations: Ids, batch: BatchOutcome) -> list[BatchOutcome]:
    """Split a batch by configuration; one with a reference has the clean one alone."""
    ends = (np.flatnonzero(np.diff(configurations, append=-1)) + 1).tolist()
    return [
        BatchOutcome(
            int(configurations[start]),
            batch.places[start:end],
            batch.passed[start:end],
            {name: values[start:end] for name, values in batch.kept.items()},
            batch.reference,
        )
        for start, end in zip([0, *ends], ends, strict=False)
    ]
