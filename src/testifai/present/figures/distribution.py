"""How robustness is distributed over the tests of each order (TestifAI, Figure 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from testifai.present import theme
from testifai.present.figures.heatmaps import MEASURED, PART, PREDICTED, SOURCES, sources
from testifai.runs.outcomes import Ids
from testifai.space import Selection, Space
from testifai.support.types import Floats, Record
from testifai.tomogram import Tomogram
from testifai.tomogram.answers import RateTable

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST_POINTS = 2000  # tests that are drawn one by one
EACH = 200  # tests of an order, where they are more than are listed
WIDTH = 0.6  # of a violin, in orders
GOLDEN = 0.6180339887498949
SYMBOLS = {MEASURED: "circle", PART: "circle", PREDICTED: "circle-open"}
COLOURS = {MEASURED: theme.SERIES[0], PART: theme.SERIES[2], PREDICTED: theme.SERIES[1]}


def by_order(tomogram: Tomogram, *, dark: bool = False) -> Figure:
    """A violin of the tests' robustness for each order, the tests themselves, and each order's mean with its interval.

    >>> import testifai as ta
    >>> rows = np.linspace(0, 1, 40)[:, None]
    >>> shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1, 0.5])
    >>> model = lambda x: (x[:, 0] > 0.5).astype(int)
    >>> tomogram = ta.scan(model, (rows, model(rows)), ta.Space({"up": shift, "on": shift}), strategy="full")
    >>> list(by_order(tomogram).data[-1].x)
    [0, 1, 2]
    """
    space = tomogram.space
    ids, found = _by_order(tomogram)
    orders, estimate = np.count_nonzero(space.matrix(ids)[:, : len(space.axes)], axis=1), found.estimate
    known = ~np.isnan(estimate)
    traces = [
        _violin(order, estimate[known & (orders == order)])
        for order in np.unique(orders).tolist()
        if np.count_nonzero(known & (orders == order)) > 4
    ]
    if np.count_nonzero(known) <= MOST_POINTS:
        kinds = sources(found)
        for kind in SYMBOLS:
            traces.append(_points(space, orders[kinds == kind], kind, ids[kinds == kind], found.at(kinds == kind)))
    traces.append(_means(tomogram))
    return theme.figure(
        [trace for trace in traces if len(trace["y"])],
        dark=dark,
        title={
            "text": f"{theme.plain(tomogram.settings.quantity)} by order",
            "subtitle": {"text": "order: how many perturbations act at once"},
        },
        xaxis={"title": {"text": "order"}, "dtick": 1, "zeroline": False, "showgrid": False},
        yaxis=theme.rate_axis(tomogram.settings.quantity),
        violingap=0,
        legend={"orientation": "h", "y": -0.22},
        margin={"l": 60, "r": 20, "t": 70, "b": 50},
    )


def _violin(order: int, values: Floats) -> Record:
    return {
        "type": "violin",
        "x0": order,
        "y": values,
        "width": WIDTH,
        "points": False,
        "spanmode": "hard",
        "line": {"color": theme.NEUTRAL, "width": 1},
        "fillcolor": theme.translucent(theme.NEUTRAL, 0.25),
        "hoverinfo": "skip",
        "showlegend": False,
    }


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
    estimate, low, high = found.estimate, found.low, found.high
    aside = ((ids * GOLDEN) % 1 - 0.5) * WIDTH * 0.7
    words = [
        f"{space.words(tuple(sigma))}<br>{theme.estimate_text(*numbers)}"
        for sigma, *numbers in zip(space.matrix(ids).tolist(), estimate, low, high, strict=True)
    ]
    return {
        "type": "scatter",
        "name": SOURCES[kind],
        "mode": "markers",
        "x": (orders + np.where(orders > 0, aside, 0)).round(3),
        "y": estimate,
        "customdata": ids,
        "hovertext": words,
        "hoverinfo": "text",
        "marker": {"symbol": SYMBOLS[kind], "size": 5, "color": COLOURS[kind], "opacity": 0.75},
        "showlegend": True,
    }


def _means(tomogram: Tomogram) -> Record:
    found = tomogram.by_order()
    answers = list(found.values())
    return {
        "type": "scatter",
        "name": "mean of the order, 95 % interval",
        "mode": "lines+markers",
        "x": list(found),
        "y": [answer.robustness for answer in answers],
        "error_y": error_bars(
            [(answer.robustness, answer.low, answer.high) for answer in answers], theme.NEUTRAL, width=6
        ),
        "hovertext": [
            f"order {order}, {answer.tests:,} tests<br>"
            f"{theme.estimate_text(answer.robustness, answer.low, answer.high)}"
            for order, answer in found.items()
        ],
        "hoverinfo": "text",
        "line": {"color": theme.NEUTRAL, "dash": "dot", "width": 1.5},
        "marker": {"symbol": "diamond", "size": 10, "color": theme.NEUTRAL, "line": {"color": "white", "width": 1}},
    }


def error_bars(estimates: list[tuple[float, float, float]], colour: str, width: int = 4) -> Record:
    """Bars from (estimate, low, high); none where there is no interval."""
    table = np.array(estimates, np.float64).reshape(-1, 3)
    above, below = table[:, 2] - table[:, 0], table[:, 0] - table[:, 1]
    return {
        "type": "data",
        "symmetric": False,
        "array": above.clip(0),
        "arrayminus": below.clip(0),
        "color": colour,
        "thickness": 1.5,
        "width": width,
    }
