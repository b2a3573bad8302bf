"""Robustness over two axes as a heat map: a slice, or the mean over the axes that are not shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.present import theme
from testifai.space import Space
from testifai.support.types import Floats
from testifai.tomogram import Tomogram
from testifai.tomogram.answers import RateTable
from testifai.tomogram.lowest_tests import Mask, selected_tests

# Where the estimate of a cell comes from.
MEASURED, PART, PREDICTED, UNKNOWN = range(4)
SOURCES = ("measured", "predicted with own trials", "predicted", "unknown")
MARKS = ("", "◐", "○", "")


@dataclass(frozen=True)
class Projection:
    """Mean estimates and bounds of the selected tests in each cell; NaN in cells that have none."""

    axes: tuple[str, ...]
    levels: tuple[tuple[int, ...], ...]
    estimate: Floats
    low: Floats
    high: Floats
    tests: NDArray[np.int64]
    trials: NDArray[np.int64]
    source: NDArray[np.int64]  # an index into `SOURCES`
    first: NDArray[np.int64]  # the lowest id of the selected tests of each cell, -1 where there are none

    def describe(self, cell: tuple[int, ...]) -> str:
        """Text for hovering over a cell."""
        where = ", ".join(
            f"{name} {levels[place]}" for name, levels, place in zip(self.axes, self.levels, cell, strict=True)
        )
        found = theme.estimate_text(float(self.estimate[cell]), float(self.low[cell]), float(self.high[cell]))
        tests = int(self.tests[cell])
        count = "" if tests == 1 else f"mean of {tests:,} tests, "
        return f"{where}<br>{found}<br>{count}{int(self.trials[cell]):,} trials, {SOURCES[self.source[cell]]}"

    def each(self, word: Callable[[tuple[int, ...]], str]) -> list[list[str]]:
        """A text for every cell of a projection along two axes."""
        rows, columns = self.estimate.shape
        return [[word((row, column)) for column in range(columns)] for row in range(rows)]

    def hovertext(self) -> list[list[str]]:
        return self.each(lambda cell: self.describe(cell) if self.tests[cell] else "not selected")


def project(
    tomogram: Tomogram, axes: Sequence[str], *, at: Mapping[str, int] | None = None, chosen: Mask | None = None
) -> Projection:
    """Project a tomogram onto some axes. Others are fixed by `at` (axis -> severity) or averaged over.

    `chosen` are the tests to include; if they are not listed, a sample is taken. The bounds of a cell are the mean
    bounds of its tests: conservative, since tests share inputs.
    """
    space, fixed = tomogram.space, dict(at or {})
    numbers = [space.names.index(space[name].name) for name in axes]
    levels = tuple(space.axes[number].severities for number in numbers)
    for name, severity in fixed.items():
        allowed = space[name].severities
        if severity not in allowed:
            raise InputError(f"at: {name} = {severity!r} is not a severity; accepted: {', '.join(map(str, allowed))}")
    ids, found = selected_tests(tomogram.estimator, chosen, fixed)
    rows = space.matrix(ids)
    places = [np.searchsorted(level, rows[:, number]) for number, level in zip(numbers, levels, strict=True)]
    shape = tuple(map(len, levels))
    cell = np.ravel_multi_index(places, shape) if len(ids) else np.zeros(0, np.intp)
    size = math.prod(shape)

    def total(values: NDArray[np.generic]) -> Floats:
        sums: Floats = np.bincount(cell, values.astype(np.float64), size).astype(np.float64)
        return sums.reshape(shape)

    tests = np.bincount(cell, minlength=size).reshape(shape)
    with np.errstate(invalid="ignore"):
        estimate, low, high = (total(values) / tests for values in (found.estimate, found.low, found.high))
    first = np.full(size, -1, np.int64)
    first[cell[::-1]] = ids[::-1]
    own, tried = total(found.alone), total(found.trials > 0)
    source = np.where(own == tests, MEASURED, np.where(tried == 0, PREDICTED, PART))
    source = np.where(np.isnan(estimate), UNKNOWN, source)
    trials = total(found.trials).astype(np.int64)
    return Projection(tuple(axes), levels, estimate, low, high, tests, trials, source, first.reshape(shape))


def sources(found: RateTable) -> NDArray[np.int64]:
    """Where the estimates of tests come from: an index into `SOURCES` for each."""
    source = np.where(found.alone, MEASURED, np.where(found.trials > 0, PART, PREDICTED))
    return np.where(np.isnan(found.estimate), UNKNOWN, source)


def others_text(space: Space, axes: Sequence[str], at: Mapping[str, int] | None, *, whole: bool) -> str:
    """The treatment of the axes that are not shown, in words."""
    fixed = [f"{name} = {severity}" for name, severity in (at or {}).items()]
    free = [name for name in space.names if name not in axes and name not in (at or {})]
    mean = f"mean over {', '.join(free)}" + ("" if space.listed else ", from a sample of the tests")
    parts = [*fixed, *([mean] if free else []), *([] if whole else ["selected tests only"])]
    return "; ".join(parts)


MOST_WRITTEN = 12  # levels per axis up to which every cell has its number written in


def heatmap(
    tomogram: Tomogram,
    x: str,
    y: str,
    *,
    at: Mapping[str, int] | None = None,
    chosen: Mask | None = None,
    dark: bool = False,
) -> theme.Figure:
    """The mean robustness for each pair of severities of two axes; other axes as in `project`.

    Cells that were not entirely measured are marked. `customdata` of a cell is the id of its first test.
    """
    if x == y:
        raise InputError(f"axis: a heat map needs two different axes, got {x!r} twice")
    seen = project(tomogram, (y, x), at=at, chosen=chosen)
    sources = np.unique(seen.source[seen.tests > 0]).tolist()
    marks = MARKS if len(sources) > 1 else [""] * len(MARKS)  # only if cells differ

    def label(cell: tuple[int, ...]) -> str:
        if np.isnan(seen.estimate[cell]):
            return "" if seen.tests[cell] == 0 else "?"
        return f"{seen.estimate[cell]:.2f} {marks[seen.source[cell]]}".rstrip()

    written = max(map(len, seen.levels)) <= MOST_WRITTEN
    trace = theme.cells(seen.estimate, seen.each(label), seen.hovertext(), written=written, customdata=seen.first)
    if len(sources) > 1:
        legend = ", ".join(f"{MARKS[source]} {SOURCES[source]}" for source in sources if MARKS[source])
    elif sources:
        legend = "" if sources == [MEASURED] else f"every cell {SOURCES[sources[0]]}"
    else:
        legend = "no test selected"
    others = others_text(tomogram.space, seen.axes, at, whole=chosen is None)
    return theme.figure(
        [trace],
        f"{y} and {x}",
        " · ".join(part for part in (others, legend) if part),
        dark=dark,
        xaxis={**theme.positions(seen.levels[1], x), "constrain": "domain"},
        yaxis={**theme.positions(seen.levels[0], y), "constrain": "domain"},
        coloraxis=theme.robustness_colours(tomogram.settings.quantity),
    )
