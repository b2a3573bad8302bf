"""Curves with bands for the intervals: robustness and quality against severity, failures against inferences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from testifai.present import theme
from testifai.present.figures.heatmaps import PREDICTED, SOURCES, sources
from testifai.session.hunting import Hunt
from testifai.support.types import Record
from testifai.tomogram import Answer, Tomogram

QUALITY_HEIGHT = 540


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
) -> theme.Figure:
    """A curve for each axis: the mean over all tests with each severity of it, or if `alone`, with other axes off."""
    space = tomogram.space
    chosen = [space[name].name for name in axes or space.names]
    if alone:
        points = {name: _alone(tomogram, name) for name in chosen}
    else:
        points = {name: _points(answers) for name, answers in tomogram.by_severity().items()}
    traces = []
    for place, name in enumerate(chosen):
        traces += _curve(name, points[name], place)
    others = "all other axes off" if alone else "mean over the severities of the other axes"
    title = f"{theme.plain(tomogram.settings.quantity)} along {'an axis' if len(chosen) == 1 else 'each axis'}"
    return _figure(tomogram, traces, "severity", title, others if len(space.axes) > 1 else "", dark=dark)


def severity_sum_curve(tomogram: Tomogram, *, dark: bool = False) -> theme.Figure:
    """The mean robustness of all tests with the same sum of severities."""
    traces = _curve("severity sum", _points(tomogram.query_engine.by("severity")), 0)
    title = f"{theme.plain(tomogram.settings.quantity)} against total severity"
    subtitle = "mean over all tests with the same sum"
    return _figure(tomogram, traces, "sum of severities", title, subtitle, dark=dark)


def _points(answers: Mapping[int, Answer]) -> list[Point]:
    return [Point(float(at), found.robustness, found.low, found.high) for at, found in answers.items()]


def _alone(tomogram: Tomogram, name: str) -> list[Point]:
    space = tomogram.space
    place = space.names.index(name)
    severities = space.axes[place].severities
    rows = np.zeros((len(severities), len(space.axes)), np.int64)
    rows[:, place] = severities
    found = tomogram.estimator.table(space.ids(rows))
    columns = (np.array(severities, float), found.estimate, found.low, found.high, sources(found))
    return [Point(*point) for point in zip(*(column.tolist() for column in columns), strict=True)]


def _curve(name: str, points: Sequence[Point], colour: int) -> list[Record]:
    place = colour % len(theme.SERIES)
    x, symbol = [point.at for point in points], theme.SYMBOLS[place]
    words = [
        f"{name} {one.at:g}<br>{theme.estimate_text(one.estimate, one.low, one.high)}"
        + ("" if one.source is None else f"<br>{SOURCES[one.source]}")
        for one in points
    ]
    line = theme.line(
        x, [point.estimate for point in points], words, theme.SERIES[place], dash=theme.DASHES[place],
        symbol=[f"{symbol}-open" if point.source == PREDICTED else symbol for point in points],
        name=name, legendgroup=name,
    )  # fmt: skip
    low, high = [point.low for point in points], [point.high for point in points]
    return [band(x, low, high, theme.SERIES[place], name), line]


def band(x: Sequence[float], low: Sequence[float], high: Sequence[float], colour: str, group: str) -> Record:
    """An area between bounds, with gaps where there are none."""
    edge_x: list[float | None] = []
    edge_y: list[float | None] = []
    known = [not (math.isnan(a) or math.isnan(b)) for a, b in zip(low, high, strict=True)]
    edges = np.flatnonzero(np.diff([False, *known, False])).tolist()
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        edge_x += [*x[start:stop], *reversed(x[start:stop]), None]
        edge_y += [*low[start:stop], *reversed(high[start:stop]), None]
    return {
        "type": "scatter", "mode": "lines", "x": edge_x, "y": edge_y, "fill": "toself",
        "fillcolor": theme.translucent(colour, 0.2), "line": {"width": 0}, "hoverinfo": "skip", "legendgroup": group,
        "showlegend": False,
    }  # fmt: skip


def _figure(
    tomogram: Tomogram, traces: list[Record], x_title: str, title: str, subtitle: str, *, dark: bool
) -> theme.Figure:
    ends = [min(traces[1]["x"]), max(traces[1]["x"])]
    clean = theme.reference(f"clean {tomogram.base:.3f}", ends, [tomogram.base] * 2)
    return theme.figure(
        [*([] if math.isnan(tomogram.base) else [clean]), *traces],
        title,
        subtitle,
        dark=dark,
        xaxis={"title": {"text": x_title}, "zeroline": False, "dtick": 1 if x_title == "severity" else None},
        yaxis=theme.rate_axis(tomogram.settings.quantity),
        legend=theme.LEGEND_BELOW,
    )


def hunt_curve(hunt: Hunt, *, dark: bool = False) -> theme.Figure:
    """Failures, and inputs that failed, against the inferences spent: counts, which have no interval."""
    spent, failures, failed = zip((0, 0, 0), *hunt.curve, strict=True)
    lines = [
        theme.line(
            spent, found, [f"{n:,} {name}<br>after {at:,} inferences" for at, n in zip(spent, found, strict=True)],
            theme.SERIES[place], symbol=theme.SYMBOLS[place], size=7, dash=theme.DASHES[place], name=name,
        )
        for place, (name, found) in enumerate({"failures": failures, "inputs that failed": failed}.items())
    ]  # fmt: skip
    if hunt.inferences:
        lines.insert(0, theme.reference("if every trial failed", [0, hunt.inferences], [0, hunt.inferences]))
    inputs = len(hunt.failing_inputs)
    return theme.figure(
        lines,
        f"{len(hunt.tests):,} failures in {hunt.inferences:,} inferences",
        f"on {inputs:,} inputs; trials were chosen for failing: no rate of all inputs",
        dark=dark,
        xaxis={"title": {"text": "inferences"}, "rangemode": "tozero", "zeroline": False},
        yaxis={"title": {"text": "found"}, "rangemode": "tozero", "zeroline": False},
        legend=theme.LEGEND_BELOW,
    )


def quality_curves(tomogram: Tomogram, *, dark: bool = False) -> theme.Figure | None:
    """The quality of the inputs above, the accuracy they cost below, each the mean over the tests of a severity sum.

    Clean accuracy is taken as known in the band of the drop. None if quality was not measured.
    """
    quality = tomogram.quality
    if quality is None:
        return None
    totals = np.broadcast_to(tomogram.space.columns()["severity"], tomogram.space.shape)
    base, bounds = tomogram.base, (quality.estimate, quality.low, quality.high)
    scores, drops = [], []
    for total in np.unique(totals).tolist():
        mean, low, high = (float(values[totals == total].mean()) for values in bounds)
        scores.append(Point(float(total), mean, low, high))
        found = tomogram.query(f"severity == {total}")
        # The more robust, the smaller the drop.
        drops.append(Point(float(total), base - found.robustness, base - found.high, base - found.low))
    better = "higher is better" if quality.higher_is_better else "lower is better"
    name = theme.plain(quality.name)
    measured = f"{name} ({better}) was measured on {len(quality.measured):,} of {tomogram.space.size:,}"
    return theme.figure(
        [*_sum_curve(quality.name, scores, 0, "y"), *_sum_curve("drop", drops, 1, "y2")],
        "quality and accuracy drop against total severity",
        f"mean over all tests with the same sum; {measured}",
        dark=dark,
        xaxis={"title": {"text": "sum of severities"}, "anchor": "y2", "zeroline": False},
        yaxis={"title": {"text": name}, "domain": [0.54, 1], "zeroline": False},
        yaxis2={"title": {"text": "accuracy drop"}, "domain": [0, 0.46], "zeroline": True, "tickformat": ".2f"},
        showlegend=False,
        height=QUALITY_HEIGHT,
    )


def _sum_curve(name: str, points: Sequence[Point], place: int, axis: str) -> list[Record]:
    x, middle, low, high = zip(*((one.at, one.estimate, one.low, one.high) for one in points), strict=True)
    words = [
        f"sum {one.at:g}<br>{theme.plain(name)} {one.estimate:.3f} ({one.low:.3f} … {one.high:.3f})" for one in points
    ]
    colour, symbol = theme.SERIES[place], theme.SYMBOLS[place]
    line = theme.line(x, middle, words, colour, symbol=symbol, size=7, name=theme.plain(name), yaxis=axis)
    return [{**band(x, low, high, colour, name), "yaxis": axis}, line]
