"""Regions of a space: the standard queries, and the worst regions found by a search."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from testifai.runs.outcomes import Ids
from testifai.space import Axis, Selection, Space
from testifai.space import query as queries
from testifai.statistics.multiplicity import confidence_each
from testifai.support.formatting import estimate_text
from testifai.support.progress import note
from testifai.support.types import Array, Bools, Floats, Record
from testifai.tomogram.answers import Answer
from testifai.tomogram.tomogram import Tomogram

MOST_AXES = 3  # axes with a condition in a region, at most
MOST_AXES_SAMPLED = 2  # the same if the tests are sampled, being too many to list
MOST_OCTANTS = 32
MOST_LEVELS = 12  # of an axis, up to which all its ranges are tried and not only those from an end
OVERLAP = 1 / 3  # largest part of their union that two regions of the list may share

Chosen = tuple[int, ...]  # axes
Ranges = tuple[tuple[int, int], ...]  # first and last position


@dataclass(frozen=True)
class RegionAnswer:
    """A region and its answer, whose interval allows for the search."""

    query: str
    answer: Answer

    def __repr__(self) -> str:
        return f"<{self.query}: {estimate_text(self.answer.robustness, self.answer.low, self.answer.high)}>"

    def as_dict(self) -> Record:
        return {"query": self.query, **self.answer.as_dict()}


@dataclass(frozen=True)
class RegionSearch:
    regions: tuple[RegionAnswer, ...]
    searched: int
    most_axes: int = MOST_AXES

    def __repr__(self) -> str:
        return "\n".join([f"<{len(self.regions)} of {self.searched:,} regions searched>", *map(repr, self.regions)])

    @property
    def axes(self) -> str:
        return {1: "one axis", 2: "two axes"}.get(self.most_axes, "three axes")


def standard_queries(space: Space) -> dict[str, str]:
    """Return octants, then cubes that grow from the mildest severities: for three axes, those of TestifAI's Table 2.

    An octant is the lower or the upper half of the severities of every axis. If there would be too many of them, the
    upper half of each axis is used alone.
    """
    axes = space.axes
    halves = [
        (_range_text(axis, 0, half - 1), _range_text(axis, half, len(axis.severities) - 1))
        for axis in axes
        for half in [(len(axis.severities) + 1) // 2]
    ]
    if 2 ** len(axes) <= MOST_OCTANTS:
        listed = [" and ".join(octant) for octant in itertools.product(*halves)]
    else:
        listed = [upper for _, upper in halves]
    for most in range(1, max(len(axis.severities) for axis in axes)):
        cube = " and ".join(_range_text(axis, 0, min(most, len(axis.severities) - 1)) for axis in axes)
        alike = len({axis.severities for axis in axes}) == 1
        # If only single perturbations are allowed, the sum of severities describes the cube.
        listed.append(f"severity <= {axes[0].severities[most]}" if alike and space.max_order == 1 else cube)
    some = [one for one in dict.fromkeys(listed) if space.max_order == len(axes) or Selection(space, one).count]
    return {f"Q{number}": query for number, query in enumerate(some, start=1)}


def worst_regions(tomogram: Tomogram, count: int = 5) -> RegionSearch:
    """Search all regions with ranges of severities on up to three axes for the lowest robustness.

    In a space with more tests than are listed, regions on up to two axes are searched in a sample of the tests; a
    region that is found is then answered from a separate sample.

    Large regions far below the mean come first: the quality of a region of n of N tests is √(n/N) times the difference
    between the mean of all tests and its own (Klösgen, "Explora", 1996, with exponent 1/2). Regions that mostly repeat
    another one are omitted. Intervals are valid for all regions together (Bonferroni), so choosing the lowest cannot
    invalidate them, though the estimate tends to be slightly too low.

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
    rows, known = space.matrix(ids), ~np.isnan(seen.estimate)
    if not known.any():
        return RegionSearch((), 0)
    values = np.stack([np.ones(len(known)), known, np.where(known, seen.estimate, 0)])
    positions = [np.searchsorted(axis.severities, rows[:, number]) for number, axis in enumerate(space.axes)]
    ranges = [_ranges(len(axis.severities)) for axis in space.axes]
    most = min(MOST_AXES if space.listed else MOST_AXES_SAMPLED, space.max_order)
    qualities = {
        chosen: _quality(space, chosen, positions, ranges, values)
        for size in range(1, most + 1)
        for chosen in itertools.combinations(range(len(space.axes)), size)
    }
    searched = sum(quality.size for quality in qualities.values())
    found: list[RegionAnswer] = []
    masks: list[Bools] = []
    columns = space.columns_of(rows)
    for query in _best_first(space, ranges, qualities):
        mask = queries.compile(query, space.column_names).evaluate(columns)
        if all(np.count_nonzero(mask & other) <= OVERLAP * np.count_nonzero(mask | other) for other in masks):
            masks.append(mask)
            found.append(RegionAnswer(query, tomogram.query(query, confidence=confidence_each(searched))))
        if len(found) == count:
            break
    return RegionSearch(tuple(found), searched, most)


def _quality(
    space: Space, chosen: Chosen, positions: Sequence[Ids], ranges: Sequence[Ranges], values: Floats
) -> Floats:
    """Quality of all products of ranges over the chosen axes; -inf if one of its tests has no estimate.

    The rows of `values` are 1, whether the estimate is known, and the estimate, for each test.
    """
    shape = tuple(len(space.axes[number].severities) for number in chosen)
    cell = np.ravel_multi_index([positions[number] for number in chosen], shape)
    sums: Array = np.stack([np.bincount(cell, row, math.prod(shape)) for row in values]).reshape(-1, *shape)
    for axis, number in enumerate(chosen, start=1):
        places = np.arange(shape[axis - 1])
        inside = np.array([(first <= places) & (places <= last) for first, last in ranges[number]], np.float64)
        sums = np.moveaxis(np.tensordot(inside, sums, (1, axis)), 0, axis)
    tests, known, total = sums
    mean = values[2].sum() / values[1].sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        quality = np.sqrt(tests / values.shape[1]) * (mean - total / known)
    return np.where(known == tests, quality, -np.inf)


def _ranges(levels: int) -> Ranges:
    listed = itertools.combinations_with_replacement(range(levels), 2)
    return tuple(
        (first, last)
        for first, last in listed
        if last - first + 1 < levels and (levels <= MOST_LEVELS or first == 0 or last == levels - 1)
    )


def _best_first(space: Space, ranges: Sequence[Ranges], qualities: Mapping[Chosen, Floats]) -> Iterator[str]:
    quality = np.concatenate([one.reshape(-1) for one in qualities.values()])
    starts = np.cumsum([0, *(one.size for one in qualities.values())])
    boxes = list(qualities.items())
    for place in np.argsort(-quality.round(12), kind="stable"):
        if quality[place] <= 1e-12:
            return
        which = int(np.searchsorted(starts, place, side="right")) - 1
        chosen, own = boxes[which]
        at = np.unravel_index(int(place - starts[which]), own.shape)
        yield " and ".join(
            _range_text(space.axes[number], *ranges[number][int(position)])
            for number, position in zip(chosen, at, strict=True)
        )


def _range_text(axis: Axis, first: int, last: int) -> str:
    levels, name = axis.severities, axis.name
    if first == last:
        return f"{name} == {levels[first]}"
    if first == 0:
        return f"{name} <= {levels[last]}"
    return f"{name} >= {levels[first]}" if last == len(levels) - 1 else f"{levels[first]} <= {name} <= {levels[last]}"
