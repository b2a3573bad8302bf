"""The figures of each view, drawn when it is looked at and remembered."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from testifai.app.state import EVERYTHING, Runs
from testifai.report import curves, distribution, dots, heatmaps, theme, voxels
from testifai.report.projection import project

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST_CUBES = 20_000  # in a voxel view; more would make the browser slow
MOST_PAIRS = 15

Drawn = list[tuple[str, dict[str, Any]]]  # a figure's name and what plotly.js draws


def of_view(runs: Runs, run: int, view: str, query: str, axes: Sequence[str], *, against: int, dark: bool) -> Drawn:
    """All figures of a view, each with a name of its own."""
    makers: dict[str, Callable[[], dict[str, Any]]] = {
        "space": lambda: _space(runs, run, query, axes),
        "pairs": lambda: _pairs(runs, run, query),
        "curves": lambda: _curves(runs, run),
        "tests": lambda: _tests(runs, run, query),
        "compare": lambda: _compare(runs, run, against, query, axes),
    }
    key = (view, run, against if view == "compare" else None, _asked(view, query), tuple(axes))
    found = runs.views.get(key, lambda: [(name, plain(drawn)) for name, drawn in makers[view]().items() if drawn])
    return [(name, _dressed(figure, dark)) for name, figure in found]


def _asked(view: str, query: str) -> str:
    return EVERYTHING if view == "curves" else query


def plain(figure: Any) -> dict[str, Any]:
    """A figure as plain data, in which a clicked test's number can be found.

    Plotly packs numbers into text, and of packed `customdata` a click tells nothing.
    """
    packed: dict[str, Any] = figure.to_dict()
    for trace, source in zip(packed["data"], figure.data, strict=True):
        if getattr(source, "customdata", None) is not None:
            trace["customdata"] = np.asarray(source.customdata).tolist()
    return packed


def _dressed(figure: dict[str, Any], dark: bool) -> dict[str, Any]:
    layout = theme.dressed(figure["layout"], dark=dark)
    # What was turned or zoomed stays as it is when the query changes.
    return {"data": figure["data"], "layout": {**layout, "template": None, "uirevision": "kept"}}


def _space(runs: Runs, run: int, query: str, axes: Sequence[str]) -> dict[str, Any]:
    tomogram = runs.tomogram(run)
    chosen = tomogram.select(query)
    mask = None if chosen.all() else chosen
    figures: dict[str, Any] = {}
    # The flat one first: it is drawn at once, cubes take a second.
    if len(axes) >= 2:
        figures["heatmap"] = heatmaps.heatmap(tomogram, axes[0], axes[1], chosen=mask)
    else:
        figures["curve"] = curves.severity_curves(tomogram, alone=True)
    if len(axes) == 3 and np.prod([len(a.severities) for a in tomogram.space.axes if a.name in axes]) <= MOST_CUBES:
        figures["voxels"] = voxels.voxels(tomogram, axes, chosen=mask)
        # From a little further away: beside other figures there is less room for the axes' names.
        figures["voxels"].layout.scene.camera.eye = {"x": 1.6, "y": -1.75, "z": 0.9}
    return figures


def _pairs(runs: Runs, run: int, query: str) -> dict[str, Any]:
    tomogram = runs.tomogram(run)
    chosen = tomogram.select(query)
    pairs = itertools.islice(itertools.combinations(tomogram.space.names, 2), MOST_PAIRS)
    return {
        f"pair {number}": heatmaps.heatmap(tomogram, x, y, chosen=None if chosen.all() else chosen)
        for number, (y, x) in enumerate(pairs)
    }


def _curves(runs: Runs, run: int) -> dict[str, Any]:
    tomogram = runs.tomogram(run)
    several = len(tomogram.space.names) > 1
    return {
        "alone": curves.severity_curves(tomogram, alone=True),
        "orders": distribution.by_order(tomogram),
        "others": curves.severity_curves(tomogram) if several else None,
        "sum": curves.severity_sum_curve(tomogram) if several else None,
    }


def _tests(runs: Runs, run: int, query: str) -> dict[str, Any]:
    tomogram = runs.tomogram(run)
    return {
        "worst": dots.worst_tests(tomogram, chosen=tomogram.select(query)),
        "classes": runs.answers.get(("classes", run), lambda: dots.classes(tomogram)),
    }


def _compare(runs: Runs, run: int, against: int, query: str, axes: Sequence[str]) -> dict[str, Any]:
    if len(axes) < 2:
        return {}
    chosen = runs.tomogram(run).select(query)
    mask = None if chosen.all() else chosen
    figures: dict[str, Any] = {}
    for letter, number in (("A", run), ("B", against)):
        figure = heatmaps.heatmap(runs.tomogram(number), axes[0], axes[1], chosen=mask)
        figure.layout.title.text = f"{letter}: {theme.plain(runs.names[number])}"
        figures[letter] = figure
    figures["difference"] = difference(runs, run, against, axes[0], axes[1], mask)
    return figures


def difference(runs: Runs, run: int, against: int, x: str, y: str, chosen: Any = None) -> Figure:
    """B − A for each pair of severities of two axes: blue where B is more robust."""
    a, b = (project(runs.tomogram(number), (y, x), chosen=chosen) for number in (run, against))
    values = b.estimate - a.estimate
    largest = max(0.05, float(np.nanmax(np.abs(values), initial=0.0)))
    text = [["" if np.isnan(value) else f"{value:+.2f}" for value in row] for row in values.tolist()]
    trace = {
        "type": "heatmap",
        "x": list(range(len(a.levels[1]))),
        "y": list(range(len(a.levels[0]))),
        "z": values,
        "customdata": a.first,
        "text": text,
        "texttemplate": "%{text}" if max(map(len, a.levels)) <= heatmaps.MOST_WRITTEN else "",
        "hovertemplate": f"{theme.plain(x)} %{{x}}, {theme.plain(y)} %{{y}}: %{{z:+.3f}}<extra></extra>",
        "coloraxis": "coloraxis",
        "xgap": 2,
        "ygap": 2,
    }
    colours = {**theme.robustness_colours(), "cmin": -largest, "cmax": largest}
    colours["colorbar"] = {**colours["colorbar"], "title": {"text": "B − A", "side": "right"}}
    places = [
        {"tickvals": list(range(len(levels))), "ticktext": list(map(str, levels)), "showgrid": False, "zeroline": False}
        for levels in a.levels
    ]
    return theme.figure(
        [trace],
        title={"text": "B − A", "subtitle": {"text": "estimates; blue: B is more robust"}},
        xaxis={"title": {"text": x}, **places[1]},
        yaxis={"title": {"text": y}, **places[0]},
        coloraxis=colours,
        margin={"l": 60, "r": 20, "t": 70, "b": 50},
    )
