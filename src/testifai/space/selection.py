"""Tests that a query selects in a space too large to list: their number, random samples, and membership."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from testifai.errors import InputError
from testifai.space import query as queries
from testifai.space.diagram import Diagram
from testifai.space.numbering import Ints, Whole, first_ranks, unrank_places
from testifai.space.query import And, Before, Condition, Inequality, Not, Or, Query, comparisons, printable
from testifai.space.space import ENUMERABLE, Space
from testifai.support.types import Bools

MOST_AXES = 5  # named by `before`: 326 cases


def cases(query: Query | None) -> Iterator[tuple[tuple[str, ...], Query | None]]:
    """Yield cases of axes that are on and applied in a sequence, each with what the query then asks of severities."""
    nodes = [] if query is None else [one for one in comparisons(query.tree) if isinstance(one, Before)]
    named = list(dict.fromkeys(name for one in nodes for name in (one.first, one.second)))
    if query is None or not named:
        yield (), query
        return
    if len(named) > MOST_AXES:
        raise InputError(
            f'query: "{printable(query.text, 200)}" says of {len(named)} axes when they are applied; '
            f"accepted: before with up to {MOST_AXES} axes at once; ask for its parts one by one"
        )
    for count in range(len(named) + 1):
        for sequence in itertools.permutations(named, count):
            left = _assigned(query.tree, {*itertools.combinations(sequence, 2)})
            if left is not False:
                signs = {name: ">" if name in sequence else "==" for name in named}
                on = [
                    Inequality((queries.ColumnName(name), queries.Constant(0)), (sign,)) for name, sign in signs.items()
                ]
                tree = And((*on, *(() if left is True else (left,))))
                yield sequence, Query(query.text, tree, query.names)


def _assigned(node: Condition, precedences: set[tuple[str, str]]) -> Condition | bool:
    """The rest of a condition once it is known which axes are applied before which."""
    if isinstance(node, Inequality):
        return node
    if isinstance(node, Before):
        return (node.first, node.second) in precedences
    if isinstance(node, Not):
        part = _assigned(node.part, precedences)
        return not part if isinstance(part, bool) else Not(part)
    decisive = isinstance(node, Or)  # one such part decides
    parts = [_assigned(part, precedences) for part in node.parts]
    left = tuple(part for part in parts if not isinstance(part, bool))
    if any(part is decisive for part in parts):
        return decisive
    if not left:
        return not decisive
    return left[0] if len(left) == 1 else type(node)(left)


class Selection:
    """The tests of a space that a query selects; all of them without one.

    >>> from testifai.perturb import Perturbation
    >>> fade = Perturbation("fade", lambda batch, parameter, rng: batch, (0, 1, 2, 3, 4, 5))
    >>> space = Space({name: fade for name in "abcdefghijklmno"})
    >>> chosen = Selection(space, "order <= 3 and severity >= 10 and a > b")
    >>> space.size, chosen.count
    (470184984576, 4420)
    >>> chosen.sample(2, np.random.default_rng(0)).tolist(), bool(chosen.contains([0])[0])
    ([391820820720, 392123151384], False)
    """

    def __init__(self, space: Space, query: str | Query | None = None) -> None:
        self.space = space
        self.query = self._compiled(query) if isinstance(query, str) else query
        self._parts = [_Part(space, *case) for case in cases(self.query)]

    def __repr__(self) -> str:
        return f"<Selection of {self.count:,} of {self.space.size:,} tests: {self.query or 'all'}>"

    @cached_property
    def counts(self) -> tuple[int, ...]:
        return tuple(sum(part.counts[t] for part in self._parts) for t in range(self.space.max_order + 1))

    @cached_property
    def count(self) -> int:
        return sum(self.counts)

    def narrowed(self, text: str) -> Selection:
        other = self._compiled(text)
        if self.query is None:
            return Selection(self.space, other)
        tree = queries.And((self.query.tree, other.tree))
        return Selection(self.space, Query(str(tree), tree, self.query.names | other.names))

    def _compiled(self, text: str) -> Query:
        return queries.compile(text, self.space.column_names, self.space.levels, self.space.sequenced)

    def by(self, column: str) -> dict[int, int]:
        """Return the number of selected tests, if any, for each value of an axis, of `order` or of `severity`."""
        if column == "order":
            return {order: count for order, count in enumerate(self.counts) if count}
        found = {value: self.narrowed(f"{column} == {value}").count for value in values_of(self.space, column)}
        return {value: count for value, count in found.items() if count}

    def ids(self) -> Ints:
        """Return all selected tests, ascending; InputError if they are too many to list."""
        if self.count > ENUMERABLE:
            raise InputError(f"query: {self.count:,} tests are too many to list (at most {ENUMERABLE:,}); use sample")
        return np.sort(self.space.ids(self._unrank(np.arange(self.count, dtype=self._whole))))

    def sample(self, n: int, generator: np.random.Generator) -> Ints:
        """Return n different tests, all equally likely, ascending; all tests if there are no more."""
        return np.sort(self.space.ids(self.rows(n, generator)))

    def rows(self, n: int, generator: np.random.Generator) -> Ints:
        """Return a sample as unordered rows of `Space.matrix`, even if ids do not fit in 64 bits."""
        return self._unrank(_different(self.count, n, generator, self._whole))

    def contains(self, ids: ArrayLike) -> Bools:
        return self.holds(self.space.matrix(ids))

    def holds(self, rows: ArrayLike) -> Bools:
        columns = self.space.columns_of(rows)
        found = np.array(True) if self.query is None else self.query.evaluate(columns)
        return np.broadcast_to(found, len(columns["order"]))

    @property
    def _whole(self) -> type:
        return np.int64 if self.count <= np.iinfo(np.int64).max else object

    def _unrank(self, ranks: Whole) -> Ints:
        """The tests with these ranks, from 0 to the count, as rows of severities (and places)."""
        ends: Whole = np.cumsum(np.array([part.count for part in self._parts], self._whole))
        which = np.searchsorted(ends, ranks, side="right")
        rows = np.empty((len(ranks), self.space.width), np.int64)
        for number in np.unique(which).tolist():
            part, at = self._parts[number], which == number
            rows[at] = part.unrank(ranks[at] - (ends[number] - part.count), self._whole)
        return rows


class _Part:
    """The tests of one case: some axes applied in a fixed sequence."""

    def __init__(self, space: Space, sequence: tuple[str, ...], query: Query | None) -> None:
        self._space = space
        self._fixed = [space.names.index(name) for name in sequence]
        self._diagram = Diagram(query, space.names, [axis.severities for axis in space.axes])

    @cached_property
    def counts(self) -> tuple[int, ...]:
        counts = self._diagram.counts[: self._space.max_order + 1]
        return tuple(n * self._sequences(t) for t, n in enumerate(counts))

    @cached_property
    def count(self) -> int:
        return sum(self.counts)

    def _sequences(self, order: int) -> int:
        if not self._space.order_sensitive:
            return 1
        return math.factorial(order) // math.factorial(min(len(self._fixed), order))

    def unrank(self, ranks: Whole, whole: type) -> Ints:
        starts = first_ranks(list(self.counts), whole)
        orders = np.searchsorted(np.cumsum(np.array(self.counts, whole)), ranks, side="right")
        # None for orders without tests: their number may be beyond 64 bits.
        sequences: Whole = np.array([self._sequences(t) if n else 0 for t, n in enumerate(self.counts)], whole)
        within, each = ranks - starts[orders], sequences[orders]
        positions = self._diagram.unrank(orders, within // each)
        rows = [np.array(axis.severities)[row] for axis, row in zip(self._space.axes, positions, strict=True)]
        if self._space.order_sensitive:
            rows += list(self._places(within % each, positions > 0))
        return np.stack(rows, axis=1)

    def _places(self, ranks: Whole, active: Bools) -> Ints:
        most = int(active.sum(axis=0).max())
        whole = np.int64 if math.factorial(most) <= np.iinfo(np.int64).max else object
        factorials: Whole = np.array([math.factorial(t) for t in range(most + 1)], whole)
        # The axes of the case come last: the ranks that keep their order are multiples.
        last = [axis for axis in range(len(active)) if axis not in self._fixed] + self._fixed
        places = np.empty(active.shape, np.int64)
        places[last] = unrank_places(ranks.astype(whole) * factorials[len(self._fixed)], active[last], factorials)
        return places


def values_of(space: Space, column: str) -> tuple[int, ...]:
    levels = {axis.name: axis.severities for axis in space.axes}
    if column in levels:
        return levels[column]
    if column == "order":
        return tuple(range(space.max_order + 1))
    sums = {(0, 0)}  # with how many axes are on
    for severities in levels.values():
        ways = itertools.product(sums, severities)
        sums = {(total + severity, on + (severity > 0)) for (total, on), severity in ways}
        sums = {(total, on) for total, on in sums if on <= space.max_order}
    return tuple(sorted({total for total, _ in sums}))


def _different(count: int, n: int, generator: np.random.Generator, whole: type) -> Whole:
    """A set of n different integers below `count`, all sets equally likely."""
    if n >= count:
        return np.arange(count, dtype=whole)
    if count <= 4 * n:
        return generator.permutation(count)[:n].astype(whole)
    found: Whole = np.empty(0, whole)
    while len(found) < n:
        drawn = np.concatenate([found, _below(count, n - len(found), generator, whole)])
        found = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return found


def _below(count: int, n: int, generator: np.random.Generator, whole: type) -> Whole:
    if whole is not object:
        return generator.integers(count, size=n)
    size, excess = (count.bit_length() + 7) // 8, -count.bit_length() % 8
    found: list[int] = []
    while len(found) < n:
        drawn = int.from_bytes(generator.bytes(size)) >> excess
        if drawn < count:
            found.append(drawn)
    return np.array(found, dtype=object)
