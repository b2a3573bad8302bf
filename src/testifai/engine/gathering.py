"""Composites of different prefixes made together: a step is taken once for all the inputs that wait for it.

Where every test has a few inputs of its own, a perturbation would be called for a few inputs at a time. What it does to
an input depends on nothing but that input, so one call may serve inputs that have come different ways.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from testifai.engine.plan import Node
from testifai.support.batches import roomy, take

Numbers = NDArray[np.intp]
Held = TypeVar("Held", bound=Any)  # a batch where it lives


@dataclass(frozen=True)
class Step:
    """A perturbation at one severity: from which composites it makes new ones, and of which inputs they are."""

    axis: int
    severity: int
    sources: Numbers
    rows: Numbers


@dataclass(frozen=True)
class Gathering:
    """How to make the composites of some trials; they are numbered, first the given ones, then as steps make them."""

    rows: Numbers  # the inputs of the given composites
    steps: list[Step]
    ends: Numbers  # for each trial, its composite

    def make(
        self,
        given: Held,
        perturb: Callable[[Held, Step], Held],
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


class Trails:
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

    def gather(self, node: Node, depth: int, tests: Numbers, rows: Numbers, inputs: int) -> Gathering:
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
            steps.append(Step(axis, severity, sources[begin:end], of[begin:end]))
        return Gathering(of[:given], steps, np.searchsorted(keys, self._ends[tests] * inputs + rows))


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
