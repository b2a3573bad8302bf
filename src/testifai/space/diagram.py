"""A condition as a decision diagram over the axes: the number of tests it selects, and each of them by its rank.

Axes are fixed one after the other. The rest of the condition is then a state: for every comparison, the sum so far or
whether it holds. Equal states are one node, so a layer has few nodes for any number of tests. After the last axis every
state is true or false.

Every comparison of the language is a comparison of a sum over the axes, since an axis, `order`, `severity` and the
difference of any two of them are such sums: each axis adds a number that depends on its level alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.space import query as queries
from testifai.space.numbering import Ints, Whole
from testifai.space.query import And, Before, ColumnName, Condition, Inequality, Not, Operand, Query
from testifai.support.types import Bools

LARGEST = 20_000_000  # numbers in the states of a layer before equal ones are joined: 1 to 2 seconds
TRUE, OPEN, FALSE = 1, 0, -1  # a conjunction is the least of its parts, a disjunction the greatest
_HELD, _FAILED = 2**30, -(2**30)  # in a state, in place of a sum

States = NDArray[np.int64]  # a row for each node, a column for each comparison


@dataclass(frozen=True)
class _Sum:
    """A comparison of a sum over the axes, tabulated over all values that the sum can have."""

    adds: tuple[Ints, ...]  # for each axis, what each of its levels adds
    held: Ints  # cumulative number of values, starting at `least`, for which the comparison holds
    least: int

    def decide(self, sums: Ints, depth: int) -> Ints:
        """Return the sums after `depth` axes, or that the comparison holds or fails for any levels of the others."""
        rest = self.adds[depth:]
        first = sums - self.least + sum(int(one.min()) for one in rest)
        last = sums - self.least + sum(int(one.max()) for one in rest)
        holding = self.held[last + 1] - self.held[first]
        return np.where(holding == 0, _FAILED, np.where(holding == last - first + 1, _HELD, sums))


@dataclass(frozen=True)
class _Tree:
    """A conjunction or disjunction; negations are inside the comparisons, which are numbered from left to right."""

    combine: Callable[[Any, Any], Any]
    parts: tuple[_Tree | int, ...]
    span: slice  # the comparisons below


_Layer = tuple[int, NDArray[np.intp]]  # an axis; for each node and level of it, the node of the next layer


class Diagram:
    """The tests that a query selects, of all products of levels; None selects all."""

    def __init__(self, query: Query | None, names: Sequence[str], levels: Sequence[Sequence[int]]) -> None:
        nodes = [] if query is None else [one for one in queries.comparisons(query.tree) if isinstance(one, Inequality)]
        columns = [one.name for node in nodes for one in node.operands if isinstance(one, ColumnName)]
        # Axes that are compared with each other are next to each other.
        mentioned = [names.index(name) for name in columns if name in names]
        self._order = [*dict.fromkeys([*mentioned, *range(len(names))])]
        self._names = [names[axis] for axis in self._order]
        self._levels = [np.array(levels[axis]) for axis in self._order]
        self._sums: list[_Sum] = []
        self._tree = _Tree(np.minimum, (), slice(0, 0)) if query is None else self._read(query.tree, False)
        self._asked = "" if query is None else queries.printable(query.text, 200)
        self._layers, self._ends = self._build()

    def _read(self, node: Condition, negated: bool) -> _Tree:
        start = len(self._sums)
        parts: list[_Tree | int] = []
        if isinstance(node, Not):
            return self._read(node.part, not negated)
        assert not isinstance(node, Before), "a selection replaces precedences by its cases"
        if isinstance(node, Inequality):
            conjunction = not negated
            for sign, left, right in zip(node.operators, node.operands, node.operands[1:], strict=False):
                parts.append(len(self._sums))
                self._sums.append(self._sum(left, sign, right, negated))
        else:
            conjunction = isinstance(node, And) is not negated
            parts += [self._read(part, negated) for part in node.parts]
        return _Tree(np.minimum if conjunction else np.maximum, tuple(parts), slice(start, len(self._sums)))

    def _sum(self, left: Operand, sign: str, right: Operand, negated: bool) -> _Sum:
        columns = [one.name for one in (left, right) if isinstance(one, ColumnName)]
        adds = self._adds(columns[0])
        if len(columns) == 2:
            adds = tuple(a - b for a, b in zip(adds, self._adds(columns[1]), strict=True))
        least, most = sum(int(one.min()) for one in adds), sum(int(one.max()) for one in adds)
        known = {columns[-1]: np.array(0), columns[0]: np.arange(least, most + 1)}
        found = queries.holds(sign, queries.operand_values(left, known), queries.operand_values(right, known))
        return _Sum(adds, np.concatenate([[0], np.cumsum(np.asarray(found) != negated)]), least)

    def _adds(self, name: str) -> tuple[Ints, ...]:
        if name == "severity":
            return tuple(self._levels)
        if name == "order":
            return tuple((levels != 0).astype(np.int64) for levels in self._levels)
        if name not in self._names:
            raise InputError(f"query: {name} is not known of every test; accepted here: axes, order and severity")
        return tuple(
            levels if axis == name else np.zeros_like(levels)
            for axis, levels in zip(self._names, self._levels, strict=True)
        )

    def _build(self) -> tuple[list[_Layer], Bools]:
        states = np.zeros((1, len(self._sums)), np.int64)
        self._settle(states, 0)
        layers = []
        for depth, levels in enumerate(self._levels):
            if len(states) * len(levels) * max(1, len(self._sums)) > LARGEST:
                raise InputError(
                    f'query: "{self._asked}" leaves too many cases to tell apart in a space of this size; '
                    "ask for its parts one by one"
                )
            adds = np.array([one.adds[depth] for one in self._sums], np.int64).reshape(-1, len(levels)).T
            reached = np.where(_decided(states)[:, None], states[:, None], states[:, None] + adds)
            reached = reached.reshape(len(states) * len(levels), len(self._sums))
            self._settle(reached, depth + 1)
            states, node = _distinct(reached)
            layers.append((self._order[depth], node.reshape(-1, len(levels))))
        return layers, np.asarray(self._value(self._tree, states) == TRUE)

    def _settle(self, states: States, depth: int) -> None:
        """Decide comparisons after `depth` axes, and make states equal whose rest of the condition is the same."""
        for column, one in enumerate(self._sums):
            sums = states[:, column]
            is_open = ~_decided(sums)
            sums[is_open] = one.decide(sums[is_open], depth)
        self._value(self._tree, states)

    def _value(self, node: _Tree | int, states: States) -> NDArray[np.int8]:
        """The value of a part of the condition in each state; once it is decided, its comparisons do not matter."""
        if isinstance(node, int):
            held, failed = ((states[:, node] == decided).astype(np.int8) for decided in (_HELD, _FAILED))
            return np.asarray(held - failed)
        nothing = np.full(len(states), TRUE, np.int8)
        value = reduce(node.combine, [self._value(part, states) for part in node.parts]) if node.parts else nothing
        states[value == TRUE, node.span] = _HELD
        states[value == FALSE, node.span] = _FAILED
        return np.asarray(value, np.int8)

    @cached_property
    def counts(self) -> list[int]:
        return [int(count) for count in self._ways[0][0, :-1]]

    @cached_property
    def _ways(self) -> list[Whole]:
        """Per layer and after the last: ways from each node to true by levels other than 0; the last column is 0."""
        total = int(np.prod([len(levels) for levels in self._levels], dtype=object))
        whole = np.int64 if total <= np.iinfo(np.int64).max else object
        ways: list[Whole] = [np.zeros((len(self._ends), len(self._levels) + 2), whole)]
        ways[0][self._ends, 0] = 1
        for _, after in reversed(self._layers):
            found = ways[0][after[:, 0]]
            for level in range(1, after.shape[1]):
                found[:, 1:-1] += ways[0][after[:, level], :-2]
            ways.insert(0, found)
        return ways

    def unrank(self, orders: Ints, ranks: Whole) -> Ints:
        """Return positions (axis, rank) of selected products by their number of levels other than 0 and their rank."""
        positions = np.zeros((len(self._levels), len(ranks)), np.int64)
        node, every = np.zeros(len(ranks), np.intp), np.arange(len(ranks))
        for (axis, layer), ways in zip(self._layers, self._ways[1:], strict=True):
            after = layer[node]
            on = np.arange(after.shape[1]) > 0
            upto = np.cumsum(ways[after, orders[:, None] - on], axis=1)
            level = np.count_nonzero(upto <= ranks[:, None], axis=1)
            ranks = ranks - np.where(level > 0, upto[every, level - 1], 0)
            orders = orders - (level > 0)
            node = after[every, level]
            positions[axis] = level
        return positions


def _decided(sums: Ints) -> Bools:
    return np.asarray((sums == _HELD) | (sums == _FAILED))


def _distinct(states: States) -> tuple[States, NDArray[np.intp]]:
    factors = np.random.default_rng(0).integers(1, 2**63, states.shape[1], np.int64)
    with np.errstate(over="ignore"):
        keys = (states * factors).sum(axis=1)  # which wraps around
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    if (states[first][which] != states).any():  # two states share a key
        found, which = np.unique(states, axis=0, return_inverse=True)
        return found, which
    return states[first], which
