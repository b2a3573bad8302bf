"""Which probabilities the surrogate `bayes_net` has, and how they are learned."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.surrogates.base import Floats

Ints = NDArray[np.int64]

MOST_CELLS = 4_000  # probabilities to learn; severities are binned until there are no more
MOST_BINS = 8  # of an axis, that for "off" among them
ALONE = (0.5, 0.5)  # trials survived and not, of the Dirichlet prior of the clean test and of one perturbation
PAIR = (2.0, 0.1)  # of a pair: what it adds to the harm of each alone is likely little
SETTLED = 1e-7  # largest step in a probability at which learning ends
STEPS = (60, 2_000)  # of learning, at least and at most
MOST_WORK = 200_000_000  # probabilities looked at while learning, but for the least number of steps


@dataclass(frozen=True)
class Group:
    """One or two axes and where their probabilities begin: one for every combination of bins but all off."""

    axes: tuple[int, ...]
    start: int
    bins: tuple[int, ...]  # of each axis, "off" among them

    @property
    def count(self) -> int:
        return math.prod(self.bins) - 1

    @property
    def cells(self) -> Ints:
        """The numbers of the probabilities, shaped as the bins; that of "all off" means nothing."""
        return self.start - 1 + np.arange(1 + self.count).reshape(self.bins)


@dataclass(frozen=True)
class Structure:
    """The hidden variables: number 0 is the clean test's, then those of groups; the last, `size`, is certain."""

    levels: tuple[Ints, ...]
    bins: tuple[Ints, ...]  # of each level of an axis, 0 for off
    groups: tuple[Group, ...]
    size: int

    @classmethod
    def over(cls, levels: Sequence[Sequence[int]]) -> Structure:
        """All axes and all pairs of axes, severities binned as finely as MOST_CELLS allows."""
        for most in range(MOST_BINS, 1, -1):
            bins = [_binned(len(axis), most) for axis in levels]
            counts = [1 + int(numbers.max()) for numbers in bins]
            groups, start = [], 1
            pairs = itertools.combinations(range(len(levels)), 2)
            for axes in itertools.chain(((j,) for j in range(len(levels))), pairs):
                group = Group(axes, start, tuple(counts[j] for j in axes))
                groups.append(group)
                start += group.count
            if start <= MOST_CELLS:
                return cls(tuple(np.array(axis, np.int64) for axis in levels), tuple(bins), tuple(groups), start)
        raise InputError(
            f"surrogate: 'bayes_net' of {len(levels)} axes has more than {MOST_CELLS:,} probabilities; "
            "accepted: fewer axes, or another surrogate"
        )

    @property
    def axes(self) -> int:
        return len(self.levels)

    def cells(self, rows: Ints) -> Ints:
        """For each configuration the number of its probability in each variable; `size` where one is not concerned."""
        columns = [self._bin(j, column) for j, column in enumerate(rows.T)]
        found = [np.zeros(len(rows), np.int64)]
        for group in self.groups:
            at = tuple(columns[j] for j in group.axes)
            on = np.logical_or.reduce(at)
            found.append(np.where(on, group.cells[at], self.size))
        return np.stack(found, axis=1)

    def design(self, cells: Ints) -> Any:
        """(configuration, probability): 1 where it takes part."""
        from scipy.sparse import csr_array

        row, column = np.nonzero(cells < self.size)
        ones = np.ones(len(row))
        return csr_array((ones, (row, cells[row, column])), shape=(len(cells), self.size))

    def prior(self) -> tuple[Floats, Floats]:
        """Trials survived and not, for every probability."""
        survived, failed = (np.full(self.size + 1, value) for value in ALONE)
        for group in self.groups:
            if len(group.axes) == 2:
                survived[group.start : group.start + group.count] = PAIR[0]
                failed[group.start : group.start + group.count] = PAIR[1]
        return survived, failed

    def _bin(self, j: int, values: Ints) -> Ints:
        place = np.minimum(np.searchsorted(self.levels[j], values), len(self.levels[j]) - 1)
        wrong = self.levels[j][place] != values
        if wrong.any():
            accepted = ", ".join(map(str, self.levels[j].tolist()))
            raise InputError(f"features: severity {values[wrong][0]} on axis {j}; accepted: {accepted}")
        return self.bins[j][place]


def _binned(levels: int, most: int) -> Ints:
    """The bin of each level: 0 for itself, the others in equal shares."""
    if levels == 1:
        return np.zeros(1, np.int64)
    parts = np.array_split(np.arange(1, levels), min(levels - 1, most - 1))
    return np.concatenate([[0], *(np.full(len(part), number) for number, part in enumerate(parts, start=1))])


# -- expectation maximisation ---------------------------------------------------------------------------------------


def learn(structure: Structure, cells: Ints, won: Floats, tried: Floats) -> Floats:
    """The most probable survival probabilities given the counts: the last is that of what is not concerned, 1.

    Of a pass every variable survived; of a failure variable m survived with probability (p_m - r) / (1 - r). Steps are
    taken in pairs and drawn out where that makes the counts more probable (SQUAREM: Varadhan and Roland, Scandinavian
    Journal of Statistics 35 (2008) 335-353).
    """
    survived, failed = structure.prior()
    size, lost = structure.size, tried - won
    # Only what is concerned: of many axes, few are on.
    row, column = np.nonzero(cells < size)
    flat = cells[row, column]
    total = np.bincount(flat, tried[row], size + 1) + survived + failed

    def rates(theta: Floats) -> Floats:
        return np.clip(np.exp(np.bincount(row, np.log(theta[flat]), len(cells))), 1e-300, 1 - 1e-12)

    def step(theta: Floats) -> Floats:
        rate = rates(theta)
        share = won[row] + (lost / (1 - rate))[row] * (theta[flat] - rate[row])
        new = (np.bincount(flat, share, size + 1) + survived) / total
        new[size] = 1
        return np.clip(new, 1e-12, 1)

    def score(theta: Floats) -> float:
        rate, inner = rates(theta), np.clip(theta[:size], 1e-12, 1 - 1e-12)
        prior = survived[:size] @ np.log(inner) + failed[:size] @ np.log1p(-inner)
        return float(won @ np.log(rate) + lost @ np.log1p(-rate) + prior)

    theta = (survived + 1.0) / (survived + failed + 1.0)
    theta[size] = 1
    for _ in range(int(np.clip(MOST_WORK // len(flat), *STEPS)) // 3):
        once = step(theta)
        twice = step(once)
        first, second = once - theta, twice - 2 * once + theta
        if np.abs(twice - once).max() < SETTLED:
            return twice
        length = math.sqrt(float(first @ first) / max(float(second @ second), 1e-300))
        drawn = np.clip(theta + 2 * length * first + length**2 * second, 1e-12, 1 - 1e-12)
        drawn[size] = 1
        drawn = step(drawn)
        theta = drawn if score(drawn) > score(twice) else twice
    return theta
