"""Local and global robustness in figures: a heat map, from local to global, and from class to confusion."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from testifai.locality.compose import Prediction
from testifai.locality.local import Local, Rates
from testifai.locality.summary import Explanation, Trend, gain_text, no_trend
from testifai.present import theme
from testifai.support.types import Floats, Record

ROW = 34  # pixels of a row of cells or a node
MOST_WRITTEN = 60  # classes up to which every cell has its numbers written in
MOST_CLASSES = 30  # drawn in a graph, the weakest first
MOST_TRENDS = 20
BEND = 24  # points of a curve between two columns
LANE = 0.16  # rows between trends that pass the same property
SEVERAL = "several"


def heatmap(local: Local, *, dark: bool = False) -> theme.Figure:
    """The local robustness of every class under every property, the mean over severities, with 95 % intervals."""
    rates = local.by_class_and_property()
    names, columns = list(map(theme.plain, local.classes)), list(map(theme.plain, local.properties))
    cells = [[_at(rates, (row, column)) for column in range(len(columns))] for row in range(len(names))]
    hover = [
        [f"{name} under {column}<br>{_words(one)}" for column, one in zip(columns, row, strict=True)]
        for name, row in zip(names, cells, strict=True)
    ]
    text = [
        ["?" if np.isnan(one.rate) else f"<b>{one.rate:.2f}</b>  {one.low:.2f} … {one.high:.2f}" for one in row]
        for row in cells
    ]
    return theme.figure(
        [theme.cells(rates.rate, text, hover, written=len(names) <= MOST_WRITTEN)],
        "local robustness",
        "mean over severities, with 95 % intervals",
        dark=dark,
        xaxis={**theme.positions(columns), "side": "bottom"},
        yaxis={**theme.positions(names, "class"), "autorange": "reversed"},
        coloraxis=theme.robustness_colours(),
        height=150 + ROW * len(names),
    )


def local_to_global(local: Local, composed: Prediction | None = None, *, dark: bool = False) -> theme.Figure:
    """The robustness of classes, of properties, and of the system, or of all if there is none."""
    cells, classes, properties = local.by_class_and_property(), local.by_class(), local.by_property()
    weakest = np.argsort(classes.rate, kind="stable")[:MOST_CLASSES]
    shown = sorted(map(int, weakest))
    height = max(len(shown), len(local.properties))
    left = dict(zip(shown, _spread(len(shown), height), strict=True))
    middle = _spread(len(local.properties), height)
    edges = [
        _edge((0, left[place]), (1, middle[which]), cells.rate[place, which],
              f"{local.classes[place]} under {local.properties[which]}: {_words(_at(cells, (place, which)))}")
        for place in shown for which in range(len(local.properties)) if not np.isnan(cells.rate[place, which])
    ]  # fmt: skip
    nodes = [(0, left[place], local.classes[place], _at(classes, place)) for place in shown]
    nodes += [(1, at, local.properties[which], _at(properties, which)) for which, at in enumerate(middle)]
    columns = ["class (LR_c)", "property (LR_p)"]
    if composed is None:
        nodes.append((2, height / 2, "overall", local.overall()))
        edges += [_edge((1, at), (2, height / 2), properties.rate[which], "") for which, at in enumerate(middle)]
        columns.append("overall")
    else:
        right = _spread(len(composed.conditions), height)
        for which, at in enumerate(right):
            nodes.append((2, at, composed.conditions[which], _at(composed.by_condition, which)))
            for part in dict.fromkeys(composed.setting.conditions[which]):
                edges.append(_edge((1, middle[part]), (2, at), properties.rate[part], ""))
            edges.append(_edge((2, at), (3, height / 2), composed.by_condition.rate[which], ""))
        nodes.append((3, height / 2, "system", composed.overall))
        columns += ["system under it (GR)", "system overall"]
    some = f"the {MOST_CLASSES} weakest of {len(local.classes)} classes; " if len(shown) < len(local.classes) else ""
    return _graph(
        [*edges, _nodes(nodes)], columns, height, "from local to global robustness", f"{some}thicker lines fail more",
        dark=dark, coloraxis=theme.robustness_colours(),
    )  # fmt: skip


def confusions(found: Explanation, *, dark: bool = False) -> theme.Figure:
    """The trends as paths from class to property to the class it is confused with (Figure 4 of the framework).

    A path is thicker the more fixing it would give; `customdata` of a path is the trend's rank.
    """
    trends = found.trends[:MOST_TRENDS]
    paths = [(one, answer) for one in trends for answer in _read_as(one)]
    names = [
        _ordered((name for one, _ in paths for name in one.classes), found.local.classes),
        _ordered((one.property for one, _ in paths), found.local.properties),
        _ordered((answer for _, answer in paths), (*found.local.outputs, SEVERAL)),
    ]
    height = max([1, *map(len, names)])
    places = [dict(zip(column, _spread(len(column), height), strict=True)) for column in names]
    lanes = _lanes(trends)
    largest = max([one.gain.rate for one in trends], default=0.0)
    traces = []
    for rank, one in enumerate(trends, start=1):
        for name in one.classes:
            for answer in _read_as(one):
                through = places[1][one.property] + lanes[rank - 1]
                stops = [(0, places[0][name]), (1, through), (2, places[2][answer])]
                share = one.gain.rate / len(one.classes) / largest if largest > 0 else 0.0
                traces.append(_path(stops, one, rank, 2 + 14 * max(0.0, share)))
    # A property is a bar as high as the paths that pass it, its name above it.
    half = {name: LANE * (sum(one.property == name for one in trends) - 1) / 2 for name in names[1]}
    bars = [
        _stroke([1, 1], [places[1][name] - reach, places[1][name] + reach], theme.NEUTRAL, 14)
        for name, reach in half.items()
    ]
    nodes = [
        (column, at - (half[name] if column == 1 else 0), name, None)
        for column, listed in enumerate(places)
        for name, at in listed.items()
    ]
    some = f"the first {MOST_TRENDS} of {len(found.trends)} trends; " if len(found.trends) > MOST_TRENDS else ""
    subtitle = f"{some}thicker lines would give more if fixed" if trends else no_trend(found)
    return _graph(
        [*traces, *bars, _nodes(nodes)], ["class", "under", "read as"], height, "what is confused with what", subtitle,
        dark=dark,
    )  # fmt: skip


def _lanes(trends: Sequence[Trend]) -> list[float]:
    """How far from its property's mark each trend passes: side by side, so that a path can be followed."""
    listed = [one.property for one in trends]
    return [LANE * (listed[:rank].count(name) - (listed.count(name) - 1) / 2) for rank, name in enumerate(listed)]


def _read_as(trend: Trend) -> list[str]:
    return [SEVERAL] if trend.kind == "class" else [trend.answers[0]]


def _path(stops: list[tuple[int, float]], trend: Trend, rank: int, width: float) -> Record:
    x, y = (
        np.concatenate(ends)
        for ends in zip(*(_bend(start, end) for start, end in itertools.pairwise(stops)), strict=True)
    )
    words = f"{rank}. {theme.plain(trend.text)}<br>if fixed {gain_text(trend.gain)}"
    colour = theme.SERIES[(rank - 1) % len(theme.SERIES)]
    return {**_stroke(x, y, colour, width, words), "opacity": 0.75, "customdata": [rank] * len(x)}


def _edge(start: tuple[int, float], end: tuple[int, float], rate: float, words: str) -> Record:
    return {
        **_stroke(*_bend(start, end), theme.colour_of(rate), 1 + 8 * (1 - rate), theme.plain(words)),
        "opacity": 0.6,
    }


def _stroke(x: object, y: object, colour: str, width: float, words: str = "") -> Record:
    return {
        "type": "scatter", "mode": "lines", "x": x, "y": y, "hovertext": words,
        "hoverinfo": "text" if words else "skip", "line": {"color": colour, "width": width},
    }  # fmt: skip


def _nodes(nodes: Sequence[tuple[int, float, str, Rates | None]]) -> Record:
    sides = {0: "middle left", max((node[0] for node in nodes), default=0): "middle right"}
    known = [rates.rate for *_, rates in nodes if rates is not None]
    marks: Record = {"size": 14, "color": theme.NEUTRAL}
    if known:
        marks = {"size": 16, "color": known, "coloraxis": "coloraxis"}
    names = [theme.plain(name) for _, _, name, _ in nodes]
    found = [("", "") if one is None else (f"  {one.rate:.3f}", f"<br>{_words(one)}") for *_, one in nodes]
    return {
        "type": "scatter", "mode": "markers+text", "x": [node[0] for node in nodes], "y": [node[1] for node in nodes],
        "text": [name + rate for name, (rate, _) in zip(names, found, strict=True)],
        "textposition": [sides.get(node[0], "top center") for node in nodes],
        "hovertext": [name + words for name, (_, words) in zip(names, found, strict=True)],
        "hoverinfo": "text", "marker": marks, "cliponaxis": False,
    }  # fmt: skip


def _graph(
    traces: list[Record], columns: Sequence[str], height: float, title: str, subtitle: str, **options: Any
) -> theme.Figure:
    hidden = {"showgrid": False, "zeroline": False, "showline": False}
    return theme.figure(
        traces,
        title,
        subtitle,
        xaxis={**theme.positions(columns), "side": "top", "range": [-0.4, len(columns) - 0.6], "showline": False},
        yaxis={"showticklabels": False, "range": [height + 0.1, -0.6], **hidden},
        showlegend=False,
        hovermode="closest",
        height=180 + ROW * height,
        margin={"l": 20, "r": 20, "t": 110, "b": 20},
        **options,
    )


def _bend(start: tuple[int, float], end: tuple[int, float]) -> tuple[Floats, Floats]:
    along = np.linspace(0, 1, BEND)
    return start[0] + (end[0] - start[0]) * along, start[1] + (end[1] - start[1]) * (1 - np.cos(np.pi * along)) / 2


def _spread(count: int, height: float) -> list[float]:
    return [(place + 0.5) * height / count for place in range(count)]


def _ordered(names: Any, order: Sequence[str]) -> list[str]:
    return sorted(set(names), key=list(order).index)


def _at(rates: Rates, place: int | tuple[int, int]) -> Rates:
    return Rates(float(rates.rate[place]), float(rates.low[place]), float(rates.high[place]))


def _words(one: Rates) -> str:
    return theme.estimate_text(one.rate, one.low, one.high)
