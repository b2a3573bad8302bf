"""One chunk of inputs through the prefix tree: perturb, feed the model full batches, judge.

`TreeWalk` is the way through the tree, wherever batches live; `ArrayTreeWalk` is the one in this computer's own memory.
"""

from __future__ import annotations

import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from testifai.engine.base import BatchOutcome, Executor
from testifai.engine.plan import Node, Piece, Work
from testifai.oracles import predicted
from testifai.runs.outcomes import DETECTIONS, EXPECTED, Ids, Places
from testifai.support.batches import Batch, concat, roomy, take
from testifai.support.types import Array

Numbers = NDArray[np.intp]
Held = TypeVar("Held", bound=Any)  # a batch where it lives


@dataclass(frozen=True)
class PerturbationStep:
    """A perturbation at one severity: from which composites it makes new ones, and of which inputs they are."""

    axis: int
    severity: int
    sources: Numbers
    rows: Numbers


@dataclass(frozen=True)
class CompositeBatch:
    """How to make the composites of some trials; they are numbered, first the given ones, then as steps make them."""

    rows: Numbers  # the inputs of the given composites
    steps: list[PerturbationStep]
    ends: Numbers  # for each trial, its composite

    def make(
        self,
        given: Held,
        perturb: Callable[[Held, PerturbationStep], Held],
        *,
        take: Callable[[Any, Numbers], Any] = take,
        roomy: Callable[[Any, int], Any] = roomy,
    ) -> Held:
        """The perturbed inputs of the trials; where batches are no arrays, rows and room come from other functions."""
        begin = len(self.rows)
        made = roomy(given, begin + sum(len(step.rows) for step in self.steps))
        for step in self.steps:
            end = begin + len(step.rows)
            made[begin:end] = perturb(take(made, step.sources), step)
            begin = end
        finished: Held = take(made, self.ends)
        return finished


class TreePaths:
    """The way of each test through a prefix tree, by numbers of nodes.

    A node has a higher number than the one it comes from, and nodes of one step follow each other as far as that
    allows: where perturbations are applied in the order of the axes, all of them.
    """

    def __init__(self, tree: Node) -> None:
        found = sorted(_descend(tree), key=lambda one: one.turn)
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

    def gather(self, node: Node, depth: int, tests: Numbers, rows: Numbers, inputs: int) -> CompositeBatch:
        """How to come from a node's composites to those of trials beneath it: each a test on one of so many inputs."""
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
    # How often the way here went back to an earlier axis, and the last step: what can be done in one call.
    turn: tuple[int, tuple[int, int]]


def _descend(tree: Node) -> Iterator[_Found]:
    """Every node of a tree."""
    waiting = [_Found(tree, tree, 0, (0, (-1, 0)))]
    while waiting:
        found = waiting.pop()
        yield found
        back, last = found.turn
        for step, child in found.node.children.items():
            waiting.append(_Found(child, found.node, found.depth + 1, (back + (step <= last), step)))


Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Waiting(Generic[Held]):
    """Perturbed inputs that wait for the model: of which test and which place each is."""

    configurations: Ids
    places: Places
    inputs: Held

    def __len__(self) -> int:
        return len(self.places)

    def split(self, size: int) -> tuple[Waiting[Held], Waiting[Held]]:
        """The first so many, and the others."""
        parts = (slice(size), slice(size, None))
        first, rest = (Waiting(self.configurations[p], self.places[p], self.inputs[p]) for p in parts)
        return first, rest


class TreeWalk(ABC, Generic[Held]):
    """One chunk's walk through the tree, collecting perturbed inputs into full batches for the model.

    It goes depth first, so that a batch per depth is in memory, and takes neighbouring branches together as long as
    their trials are no more than a chunk.
    """

    def __init__(self, executor: Executor, work: Work, paths: TreePaths, piece: Piece) -> None:
        self.executor = executor
        self.subject = executor.subject
        self.work = work
        self.paths = paths
        self.places, self.table = piece
        self.trials = np.count_nonzero(self.table, axis=1)
        self.complete = bool(self.table.all())
        self.together = executor.chunk  # trials of different branches that are perturbed together, at most
        self.pending: list[Waiting[Held]] = []

    @abstractmethod
    def inputs(self, rows: Rows) -> Held:
        """The clean inputs at some rows of the chunk."""

    @abstractmethod
    def take(self, batch: Held, rows: Rows) -> Held:
        """Some rows of a batch."""

    @abstractmethod
    def roomy(self, batch: Held, size: int) -> Held:
        """The batch with room behind it, for so many inputs in all."""

    @abstractmethod
    def concat(self, batches: Sequence[Held]) -> Held:
        """Batches one after the other."""

    @abstractmethod
    def perturb(self, batch: Held, places: Places, axis: int, severity: int) -> Held:
        """One step of a composite."""

    @abstractmethod
    def measure(self, asked: Waiting[Held]) -> Iterator[BatchOutcome]:
        """Ask the model about a batch and judge it; outcomes may come with those of a later batch."""

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
        """The branches with trials, as many at a time as have no more trials than are taken together, at least one."""
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
        """Perturb for all trials of some tests at once."""
        which, wanted = np.divmod(np.flatnonzero(self.table[tests]), self.table.shape[1])  # as nonzero, but quicker
        test = np.array(tests)[which]
        composites = self.paths.gather(node, depth, test, np.searchsorted(rows, wanted), len(rows))
        places = self.places[rows]

        def perturb(inputs: Held, step: PerturbationStep) -> Held:
            return self.perturb(inputs, places[step.rows], step.axis, step.severity)

        self._wait(test, wanted, composites.make(batch, perturb, take=self.take, roomy=self.roomy))

    def _narrow(self, tests: list[int], rows: Rows, batch: Held) -> tuple[Rows, Held]:
        """The rows of the batch that some of the tests still need."""
        if self.complete:
            return rows, batch
        asked = self.table[tests[0]] if len(tests) == 1 else self.table[tests].any(axis=0)
        wanted = np.flatnonzero(asked)
        return (rows, batch) if len(wanted) == len(rows) else (wanted, self.take(batch, np.searchsorted(rows, wanted)))

    def _wait(self, tests: Rows, rows: Rows, inputs: Held) -> None:
        self.pending.append(Waiting(self.work.configurations[tests], self.places[rows], inputs))

    def _flush(self, *, everything: bool) -> Iterator[BatchOutcome]:
        """Feed the model full batches while there are enough inputs; or all that wait, the last batch as it is."""
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
    """A walk over arrays and lists of texts."""

    def __init__(self, executor: Executor, work: Work, paths: TreePaths, piece: Piece) -> None:
        super().__init__(executor, work, paths, piece)
        self.judge = ArrayJudge(executor, self.places)

    def inputs(self, rows: Rows) -> Batch:
        return self.subject.batch(self.places[rows])

    def take(self, batch: Batch, rows: Rows) -> Batch:
        return take(batch, rows)

    def roomy(self, batch: Batch, size: int) -> Batch:
        made: Batch = roomy(batch, size)
        return made

    def concat(self, batches: Sequence[Batch]) -> Batch:
        return concat(batches)

    def perturb(self, batch: Batch, places: Places, axis: int, severity: int) -> Batch:
        return self.subject.perturb(batch, places, axis, severity)

    def measure(self, asked: Waiting[Batch]) -> Iterator[BatchOutcome]:
        begin = time.perf_counter()
        outputs = self.subject.infer(asked.inputs, int(asked.configurations[0]))
        results = self.judge.outcomes(outputs, asked.configurations, asked.places)
        # What comes with every batch counts too: the smaller batches are, the more of it there is.
        self.executor.batch_size.note(len(asked), time.perf_counter() - begin)
        yield from results


class ArrayJudge:
    """From a chunk's outputs to outcomes; it remembers what the oracle needs of the clean ones."""

    def __init__(self, executor: Executor, places: Places) -> None:
        self.subject = executor.subject
        self.references = executor.references
        self.places = places
        self.fresh: Array | None = None

    def outcomes(self, outputs: Array, configurations: Ids, places: Places) -> list[BatchOutcome]:
        """What becomes of a batch that holds inputs of some configurations, one after the other."""
        subject = self.subject
        expected = None if subject.labels is None else subject.labels[subject.order[places]]
        reference = clean = None
        if subject.oracle.needs_clean:
            # The clean test is in no batch with others.
            if configurations[0] == 0:
                reference = clean = subject.reference(outputs)
                self._remember(places, clean)
            else:
                clean = self._clean(places)
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

    def _remember(self, places: Places, clean: Array) -> None:
        if self.fresh is None:
            known = self.references.get(self.places)
            shape = (len(self.places), *clean.shape[1:])
            self.fresh = np.zeros(shape, clean.dtype) if known is None else known
        self.fresh[np.searchsorted(self.places, places)] = clean

    def _clean(self, places: Places) -> Array:
        """Clean outputs of this chunk, measured just now or in an earlier run."""
        if self.fresh is None:
            known = self.references.get(self.places)
            assert known is not None, "work with a comparing oracle includes the clean test"
            self.fresh = known
        return self.fresh[np.searchsorted(self.places, places)]


def by_configuration(configurations: Ids, batch: BatchOutcome) -> list[BatchOutcome]:
    """What became of a batch, for each of its configurations; where there is a reference, the clean one is alone."""
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
