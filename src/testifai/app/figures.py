"""The figures of each view, drawn when it is looked at and remembered."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from testifai.app import classes
from testifai.app.state import Runs
from testifai.present import theme
from testifai.present.figures import curves, distribution, dots, heatmaps, quality, voxels
from testifai.present.figures.projection import project

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST_CUBES = 20_000  # in a voxel view; more would make the browser slow
MOST_PAIRS = 15

Drawn = list[tuple[str, dict[str, Any]]]  # a figure's name and what plotly.js draws


@dataclass(frozen=True)
class Wanted:
    """What is to be drawn. Axes that are not shown stand at a severity where `at` has one, else for their mean."""

    run: int
    view: str
    query: str
    axes: Sequence[str]
    against: int = 0
    at: Mapping[str, int] = field(default_factory=dict)

    @property
    def others(self) -> dict[str, int]:
        """The severities of axes that are not shown."""
        return {name: severity for name, severity in self.at.items() if name not in self.axes}

    @property
    def key(self) -> tuple[Any, ...]:
        """What the view looks like: equal for views that look alike."""
        if self.view in ("curves", "errors"):
            return self.view, self.run
        if self.view in ("pairs", "tests"):
            return self.view, self.run, self.query
        against = self.against if self.view == "compare" else None
        return self.view, self.run, self.query, tuple(self.axes), against, tuple(self.others.items())


def of_view(runs: Runs, wanted: Wanted, *, dark: bool) -> Drawn:
    """All figures of a view, each with a name of its own. The cubes of a region are a view by themselves."""
    found = runs.views.get(
        (runs.revision, *wanted.key),
        lambda: [(name, plain(drawn)) for name, drawn in MAKERS[wanted.view](runs, wanted).items() if drawn],
    )
    return [(name, _dressed(figure, dark)) for name, figure in found]


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


def _chosen(runs: Runs, wanted: Wanted) -> Any:
    """The selected tests; None for all of them."""
    tomogram = runs.tomogram(wanted.run)
    if not tomogram.space.listed:
        selection = tomogram.selection(wanted.query)
        return None if selection.count == tomogram.space.size else selection
    chosen = tomogram.select(wanted.query)
    return None if chosen.all() else chosen


def _space(runs: Runs, wanted: Wanted) -> dict[str, Any]:
    tomogram, axes = runs.tomogram(wanted.run), wanted.axes
    if len(axes) < 2:
        return {"curve": curves.severity_curves(tomogram, alone=True)}
    drawn = heatmaps.heatmap(tomogram, axes[0], axes[1], at=wanted.others, chosen=_chosen(runs, wanted))
    # Beside the cubes there is no room for a long line.
    drawn.layout.title.subtitle.text = (drawn.layout.title.subtitle.text or "").replace(" · ", "<br>")
    drawn.layout.margin.t = 90
    return {"heatmap": drawn}


def _voxels(runs: Runs, wanted: Wanted) -> dict[str, Any]:
    tomogram, axes = runs.tomogram(wanted.run), wanted.axes
    if len(axes) < 3 or np.prod([len(a.severities) for a in tomogram.space.axes if a.name in axes]) > MOST_CUBES:
        return {}
    drawn = voxels.voxels(tomogram, axes, at=wanted.others, chosen=_chosen(runs, wanted))
    # From a little further away: beside other figures there is less room for the axes' names.
    drawn.layout.scene.camera.eye = {"x": 1.6, "y": -1.75, "z": 0.9}
    return {"voxels": drawn}


def _pairs(runs: Runs, wanted: Wanted) -> dict[str, Any]:
    tomogram, chosen = runs.tomogram(wanted.run), _chosen(runs, wanted)
    pairs = itertools.islice(itertools.combinations(tomogram.space.names, 2), MOST_PAIRS)
    return {f"pair {number}": heatmaps.heatmap(tomogram, x, y, chosen=chosen) for number, (y, x) in enumerate(pairs)}


def _curves(runs: Runs, wanted: Wanted) -> dict[str, Any]:
    tomogram = runs.tomogram(wanted.run)
    several = len(tomogram.space.names) > 1
    drawn: dict[str, Any] = {
        "alone": curves.severity_curves(tomogram, alone=True),
        "orders": distribution.by_order(tomogram),
        "others": curves.severity_curves(tomogram) if several else None,
        "sum": curves.severity_sum_curve(tomogram) if several else None,
    }
    for figure in drawn.values():
        if figure is not None:
            figure.layout.legend.y = -0.32  # figures are lower here than in a report: clear of the axis's title
    return {**drawn, "quality": None if tomogram.quality is None else quality.quality_curves(tomogram)}


def _tests(runs: Runs, wanted: Wanted) -> dict[str, Any]:
    run, tomogram = wanted.run, runs.tomogram(wanted.run)
    return {
        "worst": dots.worst_tests(tomogram, chosen=_chosen(runs, wanted)),
        "classes": runs.answers.get(("classes", runs.revision, run), lambda: dots.classes(tomogram)),
        "class and axis": runs.answers.get(("class and axis", runs.revision, run), lambda: classes.heatmap(tomogram)),
    }


def _errors(runs: Runs, wanted: Wanted) -> dict[str, Any]:
    from testifai.present.figures import locality as figures

    found = runs.errors(wanted.run)
    drawn = figures.confusions(found)
    for trace in drawn.data:
        trace.customdata = None  # ranks, which a click would take for tests
    return {"confusions": drawn, "local": figures.heatmap(found.local)}


def _compare(runs: Runs, wanted: Wanted) -> dict[str, Any]:
    axes = wanted.axes
    if len(axes) < 2:
        return {}
    chosen = _chosen(runs, wanted)
    figures: dict[str, Any] = {}
    for letter, number in (("A", wanted.run), ("B", wanted.against)):
        figure = heatmaps.heatmap(runs.tomogram(number), axes[0], axes[1], at=wanted.others, chosen=chosen)
        figure.layout.title.text = f"{letter}: {theme.plain(runs.names[number])}"
        figures[letter] = figure
    figures["difference"] = difference(runs, wanted, chosen)
    return figures


MAKERS: dict[str, Callable[[Runs, Wanted], dict[str, Any]]] = {
    "space": _space,
    "voxels": _voxels,
    "pairs": _pairs,
    "curves": _curves,
    "tests": _tests,
    "errors": _errors,
    "compare": _compare,
}


def difference(runs: Runs, wanted: Wanted, chosen: Any = None) -> Figure:
    """B − A for each pair of severities of the first two axes: blue where B is more robust."""
    x, y = wanted.axes[:2]
    a, b = (
        project(runs.tomogram(number), (y, x), at=wanted.others, chosen=chosen)
        for number in (wanted.run, wanted.against)
    )
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
