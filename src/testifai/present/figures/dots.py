"""Estimates with their intervals: tests by order (TestifAI, Figure 2), the worst tests, classes, differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testifai.present import theme
from testifai.present.figures.heatmaps import MEASURED, PART, PREDICTED, SOURCES, sources
from testifai.runs.outcomes import Ids
from testifai.space import Selection, Space
from testifai.support.types import Record, RecordLike
from testifai.tomogram import Answer, Tomogram
from testifai.tomogram.answers import RateTable
from testifai.tomogram.comparison import Comparison, RegionDifference
from testifai.tomogram.lowest_tests import Mask, lowest_tests

MOST_POINTS = 2000  # tests that are drawn one by one
EACH = 200  # tests of an order, where they are more than are listed
WIDTH = 0.6  # of a violin, in orders
GOLDEN = 0.6180339887498949
ORDER_SYMBOLS = {MEASURED: "circle", PART: "circle", PREDICTED: "circle-open"}
COLOURS = {MEASURED: theme.SERIES[0], PART: theme.SERIES[2], PREDICTED: theme.SERIES[1]}

SYMBOLS = {MEASURED: "circle", PART: "diamond", PREDICTED: "circle-open"}
PIXELS = 26  # a line's height
LONGEST = 46  # letters of a name, which would else leave no room for the estimates


@dataclass(frozen=True)
class Style:
    """What estimates of one kind look like; kinds differ in shape as well as in colour."""

    name: str
    symbol: str
    colour: str


STYLES = {kind: Style(SOURCES[kind], symbol, COLOURS[kind]) for kind, symbol in SYMBOLS.items()}


@dataclass(frozen=True)
class Line:
    """One estimate with its name; without a style it is not drawn."""

    name: str
    estimate: float
    low: float
    high: float
    style: Style | None
    test: int | None = None
    note: str = ""


def worst_tests(tomogram: Tomogram, *, count: int = 15, chosen: Mask | None = None, dark: bool = False) -> theme.Figure:
    """The tests with the lowest estimates, of all or of the chosen ones; `customdata` is the test's id."""
    ids, found = lowest_tests(tomogram.estimator, count, chosen)
    space = tomogram.space
    columns = (found.estimate, found.low, found.high, sources(found), found.trials)
    lines = [
        Line(space.words(space.configuration(test)), e, lo, hi, STYLES.get(source), test, f"{tried:,} trials")
        for test, e, lo, hi, source, tried in zip(ids.tolist(), *(column.tolist() for column in columns), strict=True)
    ]
    subtitle = "lowest estimates first, with 95 % intervals"
    axis = theme.rate_axis(tomogram.settings.quantity)
    return one_to_a_line(lines, "the worst tests", subtitle, axis=axis, mark=tomogram.base, dark=dark)


def classes(
    tomogram: Tomogram, by_class: Mapping[str, Answer] | None = None, *, count: int = 30, dark: bool = False
) -> theme.Figure | None:
    """The mean robustness of each class over the tests tried, lowest first; None if there are no classes."""
    listed = tomogram.by_class() if by_class is None else by_class
    found = sorted(listed.items(), key=lambda item: item[1].robustness)
    if not found:
        return None
    shown = [
        Line(name, answer.robustness, answer.low, answer.high, STYLES[MEASURED], note=f"drop {answer.drop:+.3f}")
        for name, answer in found[:count]
    ]
    some = f"the {count} lowest of {len(found)}, " if len(found) > count else ""
    title, subtitle = f"{theme.plain(tomogram.settings.quantity)} by class", f"{some}mean over the tests tried"
    return one_to_a_line(shown, title, subtitle, axis=theme.rate_axis(tomogram.settings.quantity), dark=dark)


def one_to_a_line(
    lines: Sequence[Line],
    title: str,
    subtitle: str,
    *,
    axis: RecordLike,
    mark: float = float("nan"),
    dark: bool = False,
) -> theme.Figure:
    """Estimates from top to bottom along an axis, with an upright line at a mark."""
    styles = dict.fromkeys(line.style for line in lines if line.style is not None and not np.isnan(line.estimate))
    upright = {
        "type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": mark, "x1": mark,
        "line": {"color": theme.NEUTRAL, "width": 1, "dash": "dot"},
    }  # fmt: skip
    names = [line.name if len(line.name) <= LONGEST else f"{line.name[: LONGEST - 1]}…" for line in lines]
    return theme.figure(
        [_trace(lines, style) for style in styles],
        title,
        subtitle,
        dark=dark,
        xaxis=dict(axis),
        yaxis={
            "tickvals": list(range(len(lines))), "ticktext": list(map(theme.plain, names)), "autorange": False,
            "range": [len(lines) - 0.5, -0.5], "zeroline": False,
        },
        shapes=[] if np.isnan(mark) else [upright],
        height=130 + PIXELS * len(lines) + (30 if len(styles) > 1 else 0),
        showlegend=len(styles) > 1,
        legend={"orientation": "h", "y": 0, "yref": "container", "yanchor": "bottom"},
        margin={"l": 20, "r": 20, "t": 70, "b": 60},
    )  # fmt: skip


def _trace(lines: Sequence[Line], style: Style) -> Record:
    some = [(place, line) for place, line in enumerate(lines) if line.style == style and not np.isnan(line.estimate)]
    estimates = [(line.estimate, line.low, line.high) for _, line in some]
    words = [
        "<br>".join(filter(None, (theme.plain(line.name), theme.estimate_text(*numbers), line.note)))
        for (_, line), numbers in zip(some, estimates, strict=True)
    ]
    return {
        "type": "scatter", "name": style.name, "mode": "markers", "x": [estimate for estimate, _, _ in estimates],
        "y": [place for place, _ in some], "error_x": error_bars(estimates, style.colour),
        "customdata": [line.test for _, line in some], "hovertext": words, "hoverinfo": "text",
        "marker": {"symbol": style.symbol, "size": 9, "color": style.colour},
    }  # fmt: skip


DIFFERENCE_STYLES = {
    "better": Style("B is better", "circle", theme.SERIES[0]),
    "worse": Style("B is worse", "square", theme.SERIES[1]),
    "equal": Style("equal", "diamond", theme.SERIES[2]),
    "undecided": Style("undecided", "circle-open", theme.NEUTRAL),
}


def differences(found: Comparison, *, dark: bool = False) -> theme.Figure:
    """B − A of all tests together, of the regions asked for, and of those tests that lose and gain most."""
    lines = [_region(found.overall, "all tests run in both"), *(_region(one, one.query) for one in found.regions)]
    for test in (*found.worst, *reversed(found.best)):
        rates = f"{test.rate_a:.3f} → {test.rate_b:.3f}, {test.verdict}"
        name, style = found.space.words(test.configuration), DIFFERENCE_STYLES[test.verdict]
        lines.append(Line(name, test.difference, test.low, test.high, style, note=rates))
    ends = [abs(end) for line in lines for end in (line.estimate, line.low, line.high) if end == end]
    reach = max([0.02, *ends]) * 1.05
    counted = ", ".join(f"{verdict} in {count:,}" for verdict, count in found.counts.items() if count)
    return one_to_a_line(
        lines,
        "B − A" if found.names == ("A", "B") else theme.plain(f"B − A: {found.names[1]} less {found.names[0]}"),
        theme.plain(f"test by test B is {counted}; largest losses and gains, with 95 % intervals"),
        axis={"title": {"text": "B − A"}, "range": [-reach, reach], "zeroline": False},
        mark=0.0,
        dark=dark,
    )


def _region(one: RegionDifference, name: str) -> Line:
    note = f"{one.compared:,} of {one.tests:,} tests"
    return Line(name, one.difference, one.low, one.high, DIFFERENCE_STYLES[one.verdict], note=note)


def by_order(tomogram: Tomogram, *, dark: bool = False) -> theme.Figure:
    """A violin of the tests' robustness for each order, the tests, and each order's mean with its interval."""
    space = tomogram.space
    ids, found = _by_order(tomogram)
    orders, estimate = np.count_nonzero(space.matrix(ids)[:, : len(space.axes)], axis=1), found.estimate
    known = ~np.isnan(estimate)
    values = {order: estimate[known & (orders == order)] for order in np.unique(orders).tolist()}
    traces: list[Record] = [
        {
            "type": "violin", "x0": order, "y": some, "width": WIDTH, "points": False, "spanmode": "hard",
            "line": {"color": theme.NEUTRAL, "width": 1}, "fillcolor": theme.translucent(theme.NEUTRAL, 0.25),
            "hoverinfo": "skip", "showlegend": False,
        }
        for order, some in values.items() if len(some) > 4
    ]  # fmt: skip
    if np.count_nonzero(known) <= MOST_POINTS:
        kinds = sources(found)
        for kind in ORDER_SYMBOLS:
            traces.append(_points(space, orders[kinds == kind], kind, ids[kinds == kind], found.at(kinds == kind)))
    traces.append(_means(tomogram))
    return theme.figure(
        [trace for trace in traces if len(trace["y"])],
        f"{theme.plain(tomogram.settings.quantity)} by order",
        "order: how many perturbations act at once",
        dark=dark,
        xaxis={"title": {"text": "order"}, "dtick": 1, "zeroline": False, "showgrid": False},
        yaxis=theme.rate_axis(tomogram.settings.quantity),
        violingap=0,
        legend=theme.LEGEND_BELOW,
    )


def _by_order(tomogram: Tomogram) -> tuple[Ids, RateTable]:
    space = tomogram.space
    if space.listed or not tomogram.estimator.predicts():
        return tomogram.estimator.sample
    generator = np.random.default_rng(tomogram.settings.seed)
    orders = [Selection(space, f"order == {order}") for order in range(len(space.axes) + 1)]
    ids = np.concatenate([one.sample(EACH, generator) for one in orders])
    return ids, tomogram.estimator.table(ids)


def _points(space: Space, orders: NDArray[np.intp], kind: int, ids: Ids, found: RateTable) -> Record:
    """Tests one by one, spread sideways so that they do not cover each other, always in the same way."""
    aside = ((ids * GOLDEN) % 1 - 0.5) * WIDTH * 0.7
    words = [
        f"{space.words(tuple(sigma))}<br>{theme.estimate_text(*numbers)}"
        for sigma, *numbers in zip(space.matrix(ids).tolist(), found.estimate, found.low, found.high, strict=True)
    ]
    return {
        "type": "scatter", "name": SOURCES[kind], "mode": "markers", "y": found.estimate, "customdata": ids,
        "x": (orders + np.where(orders > 0, aside, 0)).round(3), "hovertext": words, "hoverinfo": "text",
        "marker": {"symbol": ORDER_SYMBOLS[kind], "size": 5, "color": COLOURS[kind], "opacity": 0.75},
        "showlegend": True,
    }  # fmt: skip


def _means(tomogram: Tomogram) -> Record:
    found = tomogram.by_order()
    estimates = [(answer.robustness, answer.low, answer.high) for answer in found.values()]
    words = [
        f"order {order}, {answer.tests:,} tests<br>{theme.estimate_text(*numbers)}"
        for (order, answer), numbers in zip(found.items(), estimates, strict=True)
    ]
    line = theme.line(
        list(found), [estimate for estimate, _, _ in estimates], words, theme.NEUTRAL, dash="dot", width=1.5,
        name="mean of the order, 95 % interval", error_y=error_bars(estimates, theme.NEUTRAL, width=6),
    )  # fmt: skip
    marker = {"symbol": "diamond", "size": 10, "color": theme.NEUTRAL, "line": {"color": "white", "width": 1}}
    return {**line, "marker": marker}


def error_bars(estimates: list[tuple[float, float, float]], colour: str, width: int = 4) -> Record:
    """Bars from (estimate, low, high); none if there is no interval."""
    middle, low, high = np.array(estimates, np.float64).reshape(-1, 3).T
    return {
        "type": "data", "symmetric": False, "array": (high - middle).clip(0), "arrayminus": (middle - low).clip(0),
        "color": colour, "thickness": 1.5, "width": width,
    }  # fmt: skip
