"""How robustness is distributed over the tests of each order (TestifAI, Figure 2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from testifai.present import theme
from testifai.present.figures.heatmaps import MEASURED, PART, PREDICTED, SOURCES, sources
from testifai.runs.outcomes import Ids
from testifai.space import Selection, Space
from testifai.support.types import Record
from testifai.tomogram import Tomogram
from testifai.tomogram.answers import RateTable

MOST_POINTS = 2000  # tests that are drawn one by one
EACH = 200  # tests of an order, where they are more than are listed
WIDTH = 0.6  # of a violin, in orders
GOLDEN = 0.6180339887498949
SYMBOLS = {MEASURED: "circle", PART: "circle", PREDICTED: "circle-open"}
COLOURS = {MEASURED: theme.SERIES[0], PART: theme.SERIES[2], PREDICTED: theme.SERIES[1]}


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
        for kind in SYMBOLS:
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
    """All tests or, of more than are listed, some of each order."""
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
        "marker": {"symbol": SYMBOLS[kind], "size": 5, "color": COLOURS[kind], "opacity": 0.75}, "showlegend": True,
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
