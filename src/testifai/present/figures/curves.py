"""Robustness against severity: along each axis, and against the sum of all severities, with bands for the intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from testifai.present import theme
from testifai.present.figures.heatmaps import PREDICTED, SOURCES, sources
from testifai.session.hunting import Hunt
from testifai.support.types import Record
from testifai.tomogram import Tomogram

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass(frozen=True)
class Point:
    """An estimate at a severity."""

    at: float
    estimate: float
    low: float
    high: float
    source: int | None = None  # of a single test


def severity_curves(
    tomogram: Tomogram, axes: Sequence[str] | None = None, *, alone: bool = False, dark: bool = False
) -> Figure:
    """A curve for each axis, or for those named: the mean over all tests with each severity of it.

    With `alone`, the tests in which all other axes are off; those that were predicted have hollow marks.

    >>> import testifai as ta
    >>> rows = np.linspace(0, 1, 40)[:, None]
    >>> shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1, 0.5])
    >>> model = lambda x: (x[:, 0] > 0.5).astype(int)
    >>> tomogram = ta.scan(model, (rows, model(rows)), ta.Space({"up": shift, "on": shift}), strategy="full")
    >>> [trace.name for trace in severity_curves(tomogram, alone=True).data if trace.name]
    ['clean 1.000', 'up', 'on']
    """
    space = tomogram.space
    chosen = [space[name].name for name in axes or space.names]
    points = _alone(tomogram, chosen) if alone else _over_others(tomogram, chosen)
    traces = []
    for place, name in enumerate(chosen):
        traces += _curve(name, points[name], place)
    others = "all other axes off" if alone else "mean over the severities of the other axes"
    title = f"{theme.plain(tomogram.settings.quantity)} along {'an axis' if len(chosen) == 1 else 'each axis'}"
    return _figure(tomogram, traces, "severity", title, others if len(space.axes) > 1 else "", dark=dark)


def severity_sum_curve(tomogram: Tomogram, *, dark: bool = False) -> Figure:
    """The mean robustness of all tests with the same sum of severities.

    >>> import testifai as ta
    >>> rows = np.linspace(0, 1, 40)[:, None]
    >>> shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1, 0.5])
    >>> model = lambda x: (x[:, 0] > 0.5).astype(int)
    >>> tomogram = ta.scan(model, (rows, model(rows)), ta.Space({"up": shift, "on": shift}), strategy="full")
    >>> list(severity_sum_curve(tomogram).data[-1].x)
    [0.0, 1.0, 2.0, 3.0, 4.0]
    """
    points = [
        Point(float(total), found.robustness, found.low, found.high)
        for total, found in tomogram.query_engine.by("severity").items()
    ]
    traces = _curve("severity sum", points, 0)
    title = f"{theme.plain(tomogram.settings.quantity)} against total severity"
    subtitle = "mean over all tests with the same sum"
    return _figure(tomogram, traces, "sum of severities", title, subtitle, dark=dark)


def _alone(tomogram: Tomogram, names: Sequence[str]) -> dict[str, list[Point]]:
    space = tomogram.space
    points: dict[str, list[Point]] = {}
    for name in names:
        place = space.names.index(name)
        severities = space.axes[place].severities
        rows = np.zeros((len(severities), len(space.axes)), np.int64)
        rows[:, place] = severities
        found = tomogram.estimator.table(space.ids(rows))
        columns = (np.array(severities, float), found.estimate, found.low, found.high, sources(found))
        points[name] = [Point(*point) for point in zip(*(column.tolist() for column in columns), strict=True)]
    return points


def _over_others(tomogram: Tomogram, names: Sequence[str]) -> dict[str, list[Point]]:
    table = tomogram.by_severity()
    return {
        name: [Point(float(s), found.robustness, found.low, found.high) for s, found in table[name].items()]
        for name in names
    }


def _curve(name: str, points: Sequence[Point], colour: int) -> list[Record]:
    """A line with its band; a point without an interval has none."""
    place = colour % len(theme.SERIES)
    x = [point.at for point in points]
    symbol = theme.SYMBOLS[place]
    line = {
        "type": "scatter",
        "name": name,
        "mode": "lines+markers",
        "x": x,
        "y": [point.estimate for point in points],
        "line": {"color": theme.SERIES[place], "dash": theme.DASHES[place], "width": 2.2},
        "marker": {
            "symbol": [f"{symbol}-open" if point.source == PREDICTED else symbol for point in points],
            "size": 8,
        },
        "hovertext": [_hover(name, point) for point in points],
        "hoverinfo": "text",
        "legendgroup": name,
    }
    low, high = [point.low for point in points], [point.high for point in points]
    return [band(x, low, high, theme.SERIES[place], name), line]


def _hover(name: str, point: Point) -> str:
    source = "" if point.source is None else f"<br>{SOURCES[point.source]}"
    return f"{name} {point.at:g}<br>{theme.estimate_text(point.estimate, point.low, point.high)}{source}"


def band(x: Sequence[float], low: Sequence[float], high: Sequence[float], colour: str, group: str) -> Record:
    """An area between bounds, with gaps where there are none."""
    edge_x: list[float | None] = []
    edge_y: list[float | None] = []
    for start, stop in finite_runs(low, high):
        edge_x += [*x[start:stop], *reversed(x[start:stop]), None]
        edge_y += [*low[start:stop], *reversed(high[start:stop]), None]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": edge_x,
        "y": edge_y,
        "fill": "toself",
        "fillcolor": theme.translucent(colour, 0.2),
        "line": {"width": 0},
        "hoverinfo": "skip",
        "legendgroup": group,
        "showlegend": False,
    }


def finite_runs(low: Sequence[float], high: Sequence[float]) -> list[tuple[int, int]]:
    """The stretches of points that have both bounds, as (start, stop).

    >>> finite_runs([0, 0, math.nan, 0], [1, 1, math.nan, 1])
    [(0, 2), (3, 4)]
    """
    known = [not (math.isnan(a) or math.isnan(b)) for a, b in zip(low, high, strict=True)]
    edges = np.flatnonzero(np.diff([False, *known, False])).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


def _figure(tomogram: Tomogram, traces: list[Record], x_title: str, title: str, subtitle: str, *, dark: bool) -> Figure:
    ends = [min(traces[1]["x"]), max(traces[1]["x"])]
    clean = {
        "type": "scatter", "name": f"clean {tomogram.base:.3f}", "mode": "lines", "x": ends, "y": [tomogram.base] * 2,
        "line": {"color": theme.NEUTRAL, "width": 1.2, "dash": "dot"}, "hoverinfo": "skip",
    }  # fmt: skip
    return theme.figure(
        [*([] if math.isnan(tomogram.base) else [clean]), *traces],
        dark=dark,
        title={"text": title, "subtitle": {"text": subtitle}},
        xaxis={"title": {"text": x_title}, "zeroline": False, "dtick": 1 if x_title == "severity" else None},
        yaxis=theme.rate_axis(tomogram.settings.quantity),
        legend={"orientation": "h", "y": -0.22},
        margin={"l": 60, "r": 20, "t": 70, "b": 50},
    )


def hunt_curve(hunt: Hunt, *, dark: bool = False) -> Figure:
    """Failures, and inputs that failed, against the inferences spent: counts, which have no interval."""
    spent = [0, *(step[0] for step in hunt.curve)]
    counts = {
        "failures": [0, *(step[1] for step in hunt.curve)],
        "inputs that failed": [0, *(step[2] for step in hunt.curve)],
    }
    lines: list[Record] = [
        {
            "type": "scatter", "name": name, "mode": "lines+markers", "x": spent, "y": found, "hoverinfo": "text",
            "hovertext": [f"{n:,} {name}<br>after {at:,} inferences" for at, n in zip(spent, found, strict=True)],
            "line": {"color": theme.SERIES[place], "dash": theme.DASHES[place], "width": 2.2},
            "marker": {"symbol": theme.SYMBOLS[place], "size": 7},
        }
        for place, (name, found) in enumerate(counts.items())
    ]  # fmt: skip
    if hunt.inferences:
        lines.insert(0, {
            "type": "scatter", "name": "if every trial failed", "mode": "lines", "x": [0, hunt.inferences],
            "y": [0, hunt.inferences], "line": {"color": theme.NEUTRAL, "width": 1.2, "dash": "dot"},
            "hoverinfo": "skip",
        })  # fmt: skip
    inputs = len(hunt.failing_inputs)
    return theme.figure(
        lines,
        dark=dark,
        title={
            "text": f"{len(hunt.tests):,} failures in {hunt.inferences:,} inferences",
            "subtitle": {"text": f"on {inputs:,} inputs; trials were chosen for failing: no rate of all inputs"},
        },
        xaxis={"title": {"text": "inferences"}, "rangemode": "tozero", "zeroline": False},
        yaxis={"title": {"text": "found"}, "rangemode": "tozero", "zeroline": False},
        legend={"orientation": "h", "y": -0.22},
        margin={"l": 60, "r": 20, "t": 70, "b": 50},
    )
