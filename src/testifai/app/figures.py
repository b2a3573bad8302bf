"""The figures of each view, drawn when it is looked at and remembered."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from testifai.app.state import MOST_CLASSES, Runs
from testifai.present import theme
from testifai.present.figures import curves, distribution, dots, heatmaps, quality, voxels
from testifai.present.figures.heatmaps import project
from testifai.present.theme import DARK, LIGHT, NEUTRAL, SCALE
from testifai.support.bits import pack
from testifai.support.formatting import in_html as escape
from testifai.support.types import Floats, Record
from testifai.tomogram import Tomogram
from testifai.tomogram.lowest_tests import Mask
from testifai.tomogram.region_estimator import raw_mean

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 30  # pixels


def heatmap(tomogram: Tomogram) -> Figure | None:
    """The mean pass rate of every class under every axis alone, over its severities; None where there are no classes.

    Unlike local robustness (`testifai errors`), inputs that are wrong already when clean count as failures.
    """
    labels = tomogram.labels
    if labels is None or labels.ndim != 1 or labels.dtype.kind not in "iub":
        return None
    classes = np.unique(labels)
    if len(classes) > MOST_CLASSES:
        return None
    names = [tomogram.classes[int(one)] if tomogram.classes else str(one) for one in classes.tolist()]
    by_class = [pack(labels[tomogram.order] == one) for one in classes]
    alone = _alone(tomogram)
    cells = [[raw_mean(tomogram.outcomes, ids, among) for ids in alone] for among in by_class]
    words = [[theme.estimate_text(cell.estimate, cell.low, cell.high) for cell in row] for row in cells]
    axes = tomogram.space.names
    trace = {
        "type": "heatmap",
        "x": list(range(len(axes))),
        "y": list(range(len(names))),
        "z": [[cell.estimate for cell in row] for row in cells],
        "text": [["?" if cell.estimate != cell.estimate else f"{cell.estimate:.2f}" for cell in row] for row in cells],
        "texttemplate": "%{text}",
        "hovertext": [
            [f"{theme.plain(name)} under {axis}<br>{cell}" for axis, cell in zip(axes, row, strict=True)]
            for name, row in zip(names, words, strict=True)
        ],
        "hoverinfo": "text",
        "coloraxis": "coloraxis",
        "xgap": 2,
        "ygap": 2,
    }
    places = {"showgrid": False, "zeroline": False}
    return theme.figure(
        [trace],
        title={
            "text": "classes under each axis alone",
            "subtitle": {"text": "mean over its severities, from the tests' own trials"},
        },
        xaxis={"tickvals": list(range(len(axes))), "ticktext": list(axes), **places},
        yaxis={
            "tickvals": list(range(len(names))),
            "ticktext": list(map(theme.plain, names)),
            "autorange": "reversed",
            "title": {"text": "class"},
            **places,
        },
        coloraxis=theme.robustness_colours(),
        height=max(430, 150 + ROW * len(names)),
        margin={"l": 60, "r": 20, "t": 70, "b": 50},
    )


def _alone(tomogram: Tomogram) -> list[list[int]]:
    """For each axis, the tests in which no other is on."""
    space = tomogram.space
    return [
        [
            space.id(tuple(severity if other is axis else 0 for other in space.axes))
            for severity in axis.severities
            if severity
        ]
        for axis in space.axes
    ]


CELL, LEFT, TOP, BELOW = 52, 78, 46, 52
MOST_LEVELS = 30  # beyond which cells would be too small to tell apart
MOST_TESTS = 1_000_000


def draw(tomogram: Tomogram) -> str | None:
    """The pass rate of trials for each pair of severities of the first two axes, as SVG; None where that is too much.

    >>> import testifai as ta
    >>> rows = np.linspace(0, 1, 40)[:, None]
    >>> shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1, 0.5])
    >>> model = lambda x: (x[:, 0] > 0.5).astype(int)
    >>> tomogram = ta.scan(model, (rows, model(rows)), ta.Space({"up": shift, "on": shift}), strategy="full")
    >>> draw(tomogram).count("<rect")
    9
    """
    axes = tomogram.space.axes[:2]
    if max(len(axis.severities) for axis in axes) > MOST_LEVELS or len(tomogram.estimator.measured_ids) > MOST_TESTS:
        return None
    rates = _rates(tomogram)
    rows, columns = rates.shape
    names = [escape(axis.name) for axis in axes]
    levels = [axis.severities for axis in axes]
    bottom = TOP + rows * CELL
    parts = [
        f'<text x="{LEFT}" y="16" class="title">pass rate of the trials so far</text>',
        f'<text x="{LEFT}" y="34" class="soft">mean over the other axes; estimates are being made …</text>',
        f'<text x="{LEFT + columns * CELL / 2}" y="{bottom + 40}" class="middle">{names[0]}</text>',
    ]
    parts += [
        f'<text x="{LEFT + (place + 0.5) * CELL}" y="{bottom + 20}" class="middle">{level}</text>'
        for place, level in enumerate(levels[0])
    ]
    if len(axes) > 1:
        parts += [
            f'<text x="{LEFT - 10}" y="{_top(row, rows) + CELL / 2 + 4}" class="end">{level}</text>'
            for row, level in enumerate(levels[1])
        ]
        middle = TOP + rows * CELL / 2
        parts.append(f'<text transform="translate(18 {middle}) rotate(-90)" class="middle">{names[1]}</text>')
    for row, column in np.ndindex(rows, columns):
        parts.append(_cell(float(rates[row, column]), LEFT + column * CELL, _top(row, rows)))
    width, height = LEFT + max(columns * CELL, 370) + 12, bottom + BELOW
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f"<style>text{{font:13px system-ui,sans-serif;fill:{LIGHT.ink}}}.title{{font-size:16px}}.soft{{fill:{NEUTRAL}}}"
        f".middle{{text-anchor:middle}}.end{{text-anchor:end}}.on{{fill:#fff}}.off{{fill:#111}}"
        f"@media(prefers-color-scheme:dark){{text{{fill:{DARK.ink}}}.on{{fill:#fff}}.off{{fill:#111}}}}</style>"
        + "".join(parts)
        + "</svg>"
    )


def _top(row: int, rows: int) -> int:
    """The first severity is at the bottom."""
    return TOP + (rows - 1 - row) * CELL


def _rates(tomogram: Tomogram) -> Floats:
    """The mean of tests' pass rates, rows by the second axis and columns by the first; NaN where none was tried."""
    axes = tomogram.space.axes[:2]
    ids = tomogram.estimator.measured_ids
    passes, trials = tomogram.outcomes.counts(ids)
    severities = tomogram.space.matrix(ids)
    places = [np.searchsorted(axis.severities, severities[:, number]) for number, axis in enumerate(axes)]
    at = (places[1] if len(axes) > 1 else np.zeros(len(ids), np.intp), places[0])
    shape = (len(axes[1].severities) if len(axes) > 1 else 1, len(axes[0].severities))
    total, tests = np.zeros(shape), np.zeros(shape)
    np.add.at(total, at, passes / trials)
    np.add.at(tests, at, 1)
    return np.asarray(np.divide(total, tests, out=np.full(shape, np.nan), where=tests > 0))


def _cell(rate: float, x: float, y: float) -> str:
    if np.isnan(rate):
        return f'<rect x="{x + 1}" y="{y + 1}" width="{CELL - 2}" height="{CELL - 2}" fill="none" stroke="{NEUTRAL}"/>'
    ink = "off" if 0.2 < rate < 0.85 else "on"
    return (
        f'<rect x="{x + 1}" y="{y + 1}" width="{CELL - 2}" height="{CELL - 2}" fill="{_colour(rate)}"/>'
        f'<text x="{x + CELL / 2}" y="{y + CELL / 2 + 4}" class="middle {ink}">{rate:.2f}</text>'
    )


def _colour(rate: float) -> str:
    """The colour of the scale at a rate."""
    stops = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for _, colour in SCALE], float)
    channels = [np.interp(rate, [stop for stop, _ in SCALE], stops[:, channel]) for channel in range(3)]
    return "#" + "".join(f"{round(float(channel)):02x}" for channel in channels)


MOST_CUBES = 20_000  # in a voxel view; more would make the browser slow
MOST_PAIRS = 15

Drawn = list[tuple[str, Record]]  # a figure's name and what plotly.js draws


@dataclass(frozen=True)
class FigureRequest:
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
    def key(self) -> tuple[object, ...]:
        """What the view looks like: equal for views that look alike."""
        if self.view in ("curves", "errors"):
            return self.view, self.run
        if self.view in ("pairs", "tests"):
            return self.view, self.run, self.query
        against = self.against if self.view == "compare" else None
        return self.view, self.run, self.query, tuple(self.axes), against, tuple(self.others.items())


def of_view(runs: Runs, wanted: FigureRequest, *, dark: bool) -> Drawn:
    """All figures of a view, each with a name of its own. The cubes of a region are a view by themselves."""
    found = runs.views.get(
        (runs.revision, *wanted.key),
        lambda: [(name, plain(drawn)) for name, drawn in MAKERS[wanted.view](runs, wanted).items() if drawn],
    )
    return [(name, _dressed(figure, dark)) for name, figure in found]


def plain(figure: Figure) -> Record:
    """A figure as plain data, in which a clicked test's number can be found.

    Plotly packs numbers into text, and of packed `customdata` a click tells nothing.
    """
    packed: Record = figure.to_dict()
    for trace, source in zip(packed["data"], figure.data, strict=True):
        if getattr(source, "customdata", None) is not None:
            trace["customdata"] = np.asarray(source.customdata).tolist()
    return packed


def _dressed(figure: Record, dark: bool) -> Record:
    layout = theme.dressed(figure["layout"], dark=dark)
    # What was turned or zoomed stays as it is when the query changes.
    return {"data": figure["data"], "layout": {**layout, "template": None, "uirevision": "kept"}}


def _chosen(runs: Runs, wanted: FigureRequest) -> Mask | None:
    """The selected tests; None for all of them."""
    tomogram = runs.tomogram(wanted.run)
    if not tomogram.space.listed:
        selection = tomogram.query_engine.selection(wanted.query)
        return None if selection.count == tomogram.space.size else selection
    chosen = tomogram.query_engine.select(wanted.query)
    return None if chosen.all() else chosen


def _space(runs: Runs, wanted: FigureRequest) -> Record:
    tomogram, axes = runs.tomogram(wanted.run), wanted.axes
    if len(axes) < 2:
        return {"curve": curves.severity_curves(tomogram, alone=True)}
    drawn = heatmaps.heatmap(tomogram, axes[0], axes[1], at=wanted.others, chosen=_chosen(runs, wanted))
    # Beside the cubes there is no room for a long line.
    drawn.layout.title.subtitle.text = (drawn.layout.title.subtitle.text or "").replace(" · ", "<br>")
    drawn.layout.margin.t = 90
    return {"heatmap": drawn}


def _voxels(runs: Runs, wanted: FigureRequest) -> Record:
    tomogram, axes = runs.tomogram(wanted.run), wanted.axes
    if len(axes) < 3 or np.prod([len(a.severities) for a in tomogram.space.axes if a.name in axes]) > MOST_CUBES:
        return {}
    drawn = voxels.voxels(tomogram, axes, at=wanted.others, chosen=_chosen(runs, wanted))
    # From a little further away: beside other figures there is less room for the axes' names.
    drawn.layout.scene.camera.eye = {"x": 1.6, "y": -1.75, "z": 0.9}
    return {"voxels": drawn}


def _pairs(runs: Runs, wanted: FigureRequest) -> Record:
    tomogram, chosen = runs.tomogram(wanted.run), _chosen(runs, wanted)
    pairs = itertools.islice(itertools.combinations(tomogram.space.names, 2), MOST_PAIRS)
    return {f"pair {number}": heatmaps.heatmap(tomogram, x, y, chosen=chosen) for number, (y, x) in enumerate(pairs)}


def _curves(runs: Runs, wanted: FigureRequest) -> Record:
    tomogram = runs.tomogram(wanted.run)
    several = len(tomogram.space.names) > 1
    drawn: Record = {
        "alone": curves.severity_curves(tomogram, alone=True),
        "orders": distribution.by_order(tomogram),
        "others": curves.severity_curves(tomogram) if several else None,
        "sum": curves.severity_sum_curve(tomogram) if several else None,
    }
    for figure in drawn.values():
        if figure is not None:
            figure.layout.legend.y = -0.32  # figures are lower here than in a report: clear of the axis's title
    return {**drawn, "quality": None if tomogram.quality is None else quality.quality_curves(tomogram)}


def _tests(runs: Runs, wanted: FigureRequest) -> Record:
    run, tomogram = wanted.run, runs.tomogram(wanted.run)
    return {
        "worst": dots.worst_tests(tomogram, chosen=_chosen(runs, wanted)),
        "classes": runs.answers.get(("classes", runs.revision, run), lambda: dots.classes(tomogram)),
        "class and axis": runs.answers.get(("class and axis", runs.revision, run), lambda: heatmap(tomogram)),
    }


def _errors(runs: Runs, wanted: FigureRequest) -> Record:
    from testifai.present.figures import locality as figures

    found = runs.errors(wanted.run)
    drawn = figures.confusions(found)
    for trace in drawn.data:
        trace.customdata = None  # ranks, which a click would take for tests
    return {"confusions": drawn, "local": figures.heatmap(found.local)}


def _compare(runs: Runs, wanted: FigureRequest) -> Record:
    axes = wanted.axes
    if len(axes) < 2:
        return {}
    chosen = _chosen(runs, wanted)
    figures: Record = {}
    for letter, number in (("A", wanted.run), ("B", wanted.against)):
        figure = heatmaps.heatmap(runs.tomogram(number), axes[0], axes[1], at=wanted.others, chosen=chosen)
        figure.layout.title.text = f"{letter}: {theme.plain(runs.names[number])}"
        figures[letter] = figure
    figures["difference"] = difference(runs, wanted, chosen)
    return figures


MAKERS: dict[str, Callable[[Runs, FigureRequest], Record]] = {
    "space": _space,
    "voxels": _voxels,
    "pairs": _pairs,
    "curves": _curves,
    "tests": _tests,
    "errors": _errors,
    "compare": _compare,
}


def difference(runs: Runs, wanted: FigureRequest, chosen: Mask | None = None) -> Figure:
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
