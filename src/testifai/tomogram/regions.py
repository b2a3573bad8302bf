"""Parts of a space worth asking about: the standard queries, and the worst regions found by a search."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testifai.space import Axis, Selection, Space
from testifai.space import query as queries
from testifai.statistics.multiplicity import confidence_each
from testifai.support.formatting import estimate_text
from testifai.support.progress import note
from testifai.support.types import Array, Bools, Floats, Record
from testifai.tomogram.answers import Answer
from testifai.tomogram.tomogram import Tomogram

MOST_AXES = 3  # with a condition in a region that is searched for
MOST_AXES_SAMPLED = 2  # where it is searched for in a sample of more tests than are listed
MOST_OCTANTS = 32
MOST_LEVELS = 12  # of an axis, up to which all its ranges are tried and not only those from an end
OVERLAP = 1 / 3  # the most that two regions of the list may share, as a part of their union


@dataclass(frozen=True)
class RegionAnswer:
    """A region and its answer, whose interval allows for the search."""

    query: str
    answer: Answer

    def __repr__(self) -> str:
        return f"<{self.query}: {estimate_text(self.answer.robustness, self.answer.low, self.answer.high)}>"

    def as_dict(self) -> Record:
        """Plain data for JSON."""
        return {"query": self.query, **self.answer.as_dict()}


@dataclass(frozen=True)
class RegionSearch:
    """The regions a search came up with, among how many it chose, and on how many axes these had conditions."""

    regions: tuple[RegionAnswer, ...]
    searched: int
    most_axes: int = MOST_AXES

    def __repr__(self) -> str:
        return "\n".join([f"<{len(self.regions)} of {self.searched:,} regions searched>", *map(repr, self.regions)])

    @property
    def axes(self) -> str:
        """How many axes, in words."""
        return {1: "one axis", 2: "two axes"}.get(self.most_axes, "three axes")


def standard_queries(space: Space) -> dict[str, str]:
    """Octants, then cubes that grow from the mildest severities: the twelve of TestifAI's Table 2 for three axes.

    An octant takes the lower or the upper half of the severities of every axis. Where there would be too many of them,
    the upper half of each axis by itself.

    >>> from testifai.perturb import Perturbation
    >>> fade = Perturbation("fade", lambda batch, parameter, rng: batch, (0, 1, 2, 3, 4, 5))
    >>> queries = standard_queries(Space({"a": fade, "b": fade, "c": fade}))
    >>> len(queries), queries["Q2"], queries["Q9"]
    (12, 'a <= 2 and b <= 2 and c >= 3', 'a <= 1 and b <= 1 and c <= 1')
    """
    axes = space.axes
    halves = [(len(axis.severities) + 1) // 2 for axis in axes]
    if 2 ** len(axes) <= MOST_OCTANTS:
        listed = [
            " and ".join(
                _range_text(axis, half, len(axis.severities) - 1) if upper else _range_text(axis, 0, half - 1)
                for axis, half, upper in zip(axes, halves, octant, strict=True)
            )
            for octant in itertools.product((False, True), repeat=len(axes))
        ]
    else:
        listed = [_range_text(axis, half, len(axis.severities) - 1) for axis, half in zip(axes, halves, strict=True)]
    for most in range(1, max(len(axis.severities) for axis in axes)):
        cube = " and ".join(_range_text(axis, 0, min(most, len(axis.severities) - 1)) for axis in axes)
        alike = len({axis.severities for axis in axes}) == 1
        # With one axis on at a time, the sum of severities says the same of fifteen axes as of one.
        listed.append(f"severity <= {axes[0].severities[most]}" if alike and space.max_order == 1 else cube)
    some = [one for one in dict.fromkeys(listed) if space.max_order == len(axes) or Selection(space, one).count]
    return {f"Q{number}": query for number, query in enumerate(some, start=1)}


def worst_regions(tomogram: Tomogram, count: int = 5) -> RegionSearch:
    """Search all regions with ranges of severities on up to three axes for those where robustness is lowest.

    Of a space with more tests than are listed, regions on up to two axes are searched for in a sample of the tests;
    what was found is then answered from a sample of its own.

    Large regions far below the mean come first: a region of n of N tests is worth √(n/N) times how far its mean lies
    below that of all tests (the quality of Klösgen, "Explora", 1996, with exponent 1/2). Regions that mostly repeat
    one already found are left out. Intervals hold for all regions that were looked at, at once (Bonferroni): choosing
    the lowest among them cannot make them wrong, though the estimate itself will tend to be a little too low.

    >>> from testifai.runs.outcomes import Outcomes
    >>> from testifai.perturb import Perturbation
    >>> fade = Perturbation("fade", lambda batch, parameter, rng: batch, (0, 1, 2, 3))
    >>> space, outcomes = Space({"a": fade, "b": fade}), Outcomes(10)
    >>> for test, (a, b) in enumerate(space.matrix(range(16)).tolist()):
    ...     outcomes.record(test, np.arange(10), np.arange(10) >= (5 if a >= 2 and b == 3 else 0))
    >>> found = worst_regions(Tomogram(space, outcomes, np.arange(10)), count=1)
    >>> found.regions[0].query, found.regions[0].answer.robustness, found.searched
    ('a >= 2 and b == 3', 0.5, 99)
    """
    space = tomogram.space
    note("searching for the worst regions")
    ids, seen = tomogram.estimator.sample
    rows, estimate = space.matrix(ids), seen.estimate
    known = ~np.isnan(estimate)
    if not known.any():
        return RegionSearch((), 0)
    mean = float(estimate[known].mean())
    most = min(MOST_AXES if space.listed else MOST_AXES_SAMPLED, space.max_order)
    boxes: list[_Boxes] = [
        _boxes(space, chosen, rows, estimate, known, mean)
        for size in range(1, most + 1)
        for chosen in itertools.combinations(range(len(space.axes)), size)
    ]
    searched = sum(one.quality.size for one in boxes)
    found: list[RegionAnswer] = []
    masks: list[Bools] = []
    columns = space.columns_of(rows)
    for query in _best_first(space, boxes):
        mask = queries.compile(query, space.column_names).evaluate(columns)
        if all(_shared(mask, other) <= OVERLAP for other in masks):
            masks.append(mask)
            found.append(RegionAnswer(query, tomogram.query(query, confidence=confidence_each(searched))))
        if len(found) == count:
            break
    return RegionSearch(tuple(found), searched, most)


@dataclass(frozen=True)
class _Boxes:
    """All products of ranges over some axes, with what each is worth."""

    axes: tuple[int, ...]
    ranges: tuple[tuple[tuple[int, int], ...], ...]  # per axis: first and last position
    quality: Floats


def _boxes(
    space: Space,
    chosen: tuple[int, ...],
    rows: NDArray[np.int64],
    estimate: Floats,
    known: Bools,
    mean: float,
) -> _Boxes:
    axes = [space.axes[number] for number in chosen]
    shape = tuple(len(axis.severities) for axis in axes)
    places = [np.searchsorted(axis.severities, rows[:, number]) for number, axis in zip(chosen, axes, strict=True)]
    cell = np.ravel_multi_index(places, shape)

    def table(values: Array) -> Floats:
        total = np.bincount(cell, values.astype(np.float64), math.prod(shape)).astype(np.float64)
        return total.reshape(shape)

    ranges = tuple(_ranges(levels) for levels in shape)
    inside = [
        np.array([[first <= place <= last for place in range(levels)] for first, last in listed], np.float64)
        for listed, levels in zip(ranges, shape, strict=True)
    ]

    def sums(values: Array) -> Floats:
        total = table(values)
        for axis, rows in enumerate(inside):
            total = np.moveaxis(np.tensordot(rows, total, (1, axis)), 0, axis)
        return total

    tests, seen = sums(np.ones(len(known))), sums(known)
    with np.errstate(invalid="ignore", divide="ignore"):
        below = mean - sums(np.where(known, estimate, 0)) / seen
    quality = np.sqrt(tests / len(known)) * below
    # A region with a test of which nothing is known has no mean.
    return _Boxes(chosen, ranges, np.where(seen == tests, quality, -np.inf))


def _ranges(levels: int) -> tuple[tuple[int, int], ...]:
    """First and last position of every range but the whole; of a long axis, those that begin or end at an end."""
    listed = itertools.combinations_with_replacement(range(levels), 2)
    return tuple(
        (first, last)
        for first, last in listed
        if last - first + 1 < levels and (levels <= MOST_LEVELS or first == 0 or last == levels - 1)
    )


def _best_first(space: Space, boxes: Sequence[_Boxes]) -> Iterator[str]:
    """The queries of regions below the mean, those worth most first; of equals, those with fewer conditions."""
    quality = np.concatenate([one.quality.reshape(-1) for one in boxes])
    starts = np.cumsum([0, *(one.quality.size for one in boxes)])
    for place in np.argsort(-quality.round(12), kind="stable"):
        if quality[place] <= 1e-12:
            return
        which = int(np.searchsorted(starts, place, side="right")) - 1
        one = boxes[which]
        at = np.unravel_index(int(place - starts[which]), one.quality.shape)
        yield " and ".join(
            _range_text(space.axes[number], *listed[int(position)])
            for number, listed, position in zip(one.axes, one.ranges, at, strict=True)
        )


def _range_text(axis: Axis, first: int, last: int) -> str:
    """A range of positions as a condition on severities."""
    levels, name = axis.severities, axis.name
    if first == last:
        return f"{name} == {levels[first]}"
    if first == 0:
        return f"{name} <= {levels[last]}"
    return f"{name} >= {levels[first]}" if last == len(levels) - 1 else f"{levels[first]} <= {name} <= {levels[last]}"


def _shared(one: Bools, other: Bools) -> float:
    return float(np.count_nonzero(one & other) / np.count_nonzero(one | other))
