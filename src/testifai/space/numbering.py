"""Numbers for configurations and back, computed without enumerating any other configuration."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.support.types import Array, Bools

Ints = NDArray[np.int64]
Whole = Array  # int64, or Python integers (dtype object) in a space too large for int64


class Numbering:
    """Configurations without places numbered as `configurations` yields them: by order, axes, severities.

    `choices[j][r]` counts the configurations of r of the axes j, j+1, … that use axis j: the ranks to skip if axis j is
    not used. So no other choice of axes is ever enumerated. Configurations of more than `most` axes have no number.
    """

    def __init__(self, sizes: list[int], most: int | None = None) -> None:
        degrees = len(sizes) if most is None else most
        tails = [[1] + [0] * degrees]  # the last: elementary symmetric polynomials of the sizes so far, by degree
        choices: list[list[int]] = []
        for size in reversed(sizes):
            choices.append([0, *(size * ways for ways in tails[-1][:-1])])
            tails.append([a + b for a, b in zip(tails[-1], choices[-1], strict=True)])
        self.sizes = sizes
        self.choices = choices[::-1]
        self.counts = tails[-1]

    def unrank(self, ranks: Whole) -> Ints:
        """Positions (axis, rank) of the configurations with these ranks."""
        starts = first_ranks(self.counts, ranks.dtype)
        left = np.searchsorted(starts, ranks, side="right") - 1
        rest, weight = ranks - starts[left], np.ones_like(ranks)
        taken = []
        for size, choices in zip(self.sizes, self.choices, strict=True):
            block = weight * np.array(choices, dtype=ranks.dtype)[left]
            take = rest < block
            rest = np.where(take, rest, rest - block)
            weight = np.where(take, weight * size, weight)
            left = left - take
            taken.append(take)
        positions = np.zeros((len(self.sizes), len(ranks)), dtype=np.int64)
        for j in reversed(range(len(self.sizes))):  # the last axis taken is the fastest to change
            quotient = rest // self.sizes[j]
            positions[j] = np.where(taken[j], rest - quotient * self.sizes[j] + 1, 0)
            rest = np.where(taken[j], quotient, rest)
        return positions

    def rank(self, positions: Ints, whole: Any) -> Whole:
        """The inverse of `unrank`."""
        left = np.count_nonzero(positions, axis=0)
        ranks: Whole = first_ranks(self.counts, whole)[left]
        weight, digits = np.ones_like(ranks), np.zeros_like(ranks)
        for row, size, choices in zip(positions, self.sizes, self.choices, strict=True):
            take = row > 0
            ranks = np.where(take, ranks, ranks + weight * np.array(choices, dtype=whole)[left])
            digits = np.where(take, digits * size + (row - 1), digits)
            weight = np.where(take, weight * size, weight)
            left = left - take
        return np.add(ranks, digits)


def first_ranks(counts: list[int], whole: Any) -> Whole:
    return np.array([0, *itertools.accumulate(counts)][:-1], dtype=whole)


def mixed_radix(positions: Ints, levels: Sequence[int], whole: Any) -> Whole:
    ids: Whole = np.zeros(positions.shape[1], dtype=whole)
    for row, radix in zip(positions, levels, strict=True):
        ids = ids * radix + row
    return ids


def rank_places(places: Ints, factorials: Whole) -> Whole:
    """Lexicographic ranks of permutations (columns; 0 = not part of it) by their Lehmer codes."""
    ranks = np.zeros(places.shape[1], dtype=factorials.dtype)
    for j in range(len(places)):
        later = places[j + 1 :]
        smaller = np.count_nonzero((later > 0) & (later < places[j]), axis=0)
        ranks = ranks + smaller * factorials[np.count_nonzero(later, axis=0)]
    return ranks


def unrank_places(ranks: Whole, active: Bools, factorials: Whole) -> Ints:
    """The inverse of `rank_places`, given which entries are part of each permutation."""
    places = np.zeros(active.shape, dtype=np.int64)
    for j in range(len(active)):
        radix = factorials[np.count_nonzero(active[j + 1 :], axis=0)]
        places[j] = ranks // radix + active[j]  # the digit is 0 where j is not active
        ranks = ranks % radix
    for j in reversed(range(len(active))):
        places[j + 1 :] += active[j] & (places[j + 1 :] >= places[j])
    return places
