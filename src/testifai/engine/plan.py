"""Work, configurations with inputs, and the prefix tree that lets configurations share their first steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from testifai.runs.outcomes import Ids, Outcomes, Places
from testifai.space import Space
from testifai.support.types import Bools

# Places, and a table (configurations x places) of those still needed.
Piece = tuple[Places, Bools]

CELLS = 64 << 20  # most bytes of such a table


def most_inputs(tests: int) -> int:
    return max(1, CELLS // max(1, tests))


@dataclass(frozen=True)
class Work:
    """Configurations and the places of the inputs to run them on: one set for all, or one for each."""

    configurations: Ids
    places: Places | list[Places]

    def union(self) -> Places:
        """Return the places of all configurations, ascending."""
        if isinstance(self.places, list):
            return np.unique(np.concatenate([*self.places, np.zeros(0, np.intp)]))
        return np.sort(self.places)

    def asked(self) -> int:
        if isinstance(self.places, list):
            return sum(map(len, self.places))
        return len(self.configurations) * len(self.places)

    def among(self, configurations: Ids) -> Work:
        """Return this as work of these ascending configurations, those not in it on no inputs."""
        at = np.searchsorted(configurations, self.configurations)
        if not isinstance(self.places, list) and len(at) == len(configurations):
            return Work(configurations, self.places)
        places = [np.zeros(0, np.intp)] * len(configurations)
        for row, goal in enumerate(at.tolist()):
            own = self.places[row] if isinstance(self.places, list) else self.places
            places[goal] = np.union1d(places[goal], own) if len(places[goal]) else own
        return Work(configurations, places)

    def wanted(self, places: Places) -> Bools:
        """Return which of these ascending places each configuration needs, (configurations x places)."""
        if not isinstance(self.places, list):
            row = np.isin(places, self.places, assume_unique=True)
            return np.broadcast_to(row, (len(self.configurations), len(places))).copy()
        table = np.zeros((len(self.configurations), len(places)), bool)
        # Vectorised: a loop over tens of thousands of tests would take longer than their inferences.
        row = np.repeat(np.arange(len(self.places)), [len(asked) for asked in self.places])
        asked = np.concatenate([*self.places, np.zeros(0, np.intp)])
        column = np.searchsorted(places, asked)
        here = column < len(places)
        here[here] = places[column[here]] == asked[here]
        table[row[here], column[here]] = True
        return table

    def missing(self, outcomes: Outcomes, places: Places) -> Bools:
        """Return which of these ascending places each configuration needs and has not been tried on."""
        table = self.wanted(places)
        for number in np.flatnonzero(table.any(axis=1)).tolist():
            configuration = int(self.configurations[number])
            if configuration in outcomes:
                wanted = np.flatnonzero(table[number])
                table[number, wanted] = ~outcomes.attempted(configuration, places[wanted])
        return table

    def pieces(self, outcomes: Outcomes, size: int) -> Iterator[Piece]:
        everything = self.union()
        for start in range(0, len(everything), size):
            places = everything[start : start + size]
            table = self.missing(outcomes, places)
            if table.any():
                yield places, table

    def with_clean(self) -> Work:
        everything = self.union()
        rest = self.configurations != 0
        if not isinstance(self.places, list) and not rest.all():
            return self
        places = self.places if isinstance(self.places, list) else [self.places] * len(rest)
        kept = [asked for asked, keep in zip(places, rest, strict=True) if keep]
        return Work(np.concatenate([[0], self.configurations[rest]]), [everything, *kept])


@dataclass
class Node:
    """A partial composite; `tests` are the rows of the work that end here, `rows` those that pass through."""

    tests: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    children: dict[tuple[int, int], Node] = field(default_factory=dict)


def prefix_tree(space: Space, configurations: ArrayLike) -> Node:
    """Return the tree of configurations by their steps (axis, severity), the clean one at the root."""
    root = Node()
    for row, path in enumerate(space.paths(configurations)):
        node = root
        node.rows.append(row)
        for step in path:
            node = node.children.setdefault(step, Node())
            node.rows.append(row)
        node.tests.append(row)
    return root
