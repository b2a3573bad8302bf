"""The figures of each view, drawn when it is looked at and remembered."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from testifai.app.state import MOST_CLASSES, FigureRequest, Runs
from testifai.present import theme
from testifai.present.figures import curves, dots, heatmaps, voxels
from testifai.present.figures.heatmaps import project
from testifai.present.theme import DARK, LIGHT, NEUTRAL
from testifai.support.bits import pack
from testifai.support.formatting import in_html as escape
from testifai.support.types import Floats, Record
from testifai.tomogram import Tomogram
from testifai.tomogram.lowest_tests import Mask
from testifai.tomogram.region_estimator import raw_mean

ROW = 30  # pixels


def heatmap(tomogram: Tomogram) -> theme.Figure | None:
    """The mean pass rate of every class under every axis alone; None if there are no classes.

    Unlike local robustness (`testifai errors`), inputs that are wrong when clean count as failures.
    """
    labels = tomogram.labels
    if labels is None or labels.ndim != 1 or labels.dtype.kind not in "iub":
        return None
    classes = np.unique(labels)
    if len(classes) > MOST_CLASSES:
        return None
    names = [theme.plain(tomogram.classes[int(one)] if tomogram.classes else one) for one in classes.tolist()]
    by_class = [pack(labels[tomogram.order] == one) for one in classes]
    space = tomogram.space
    alone = [
        [space.id(tuple(severity if other is axis else 0 for other in space.axes)) for severity in axis.severities[1:]]
        for axis in space.axes
    ]
    cells = [[raw_mean(tomogram.outcomes, ids, among) for ids in alone] for among in by_class]
    hover = [
        [
            f"{name} under {axis}<br>{theme.estimate_text(cell.estimate, cell.low, cell.high)}"
            for axis, cell in zip(space.names, row, strict=True)
        ]
        for name, row in zip(names, cells, strict=True)
    ]
    rates = [[cell.estimate for cell in row] for row in cells]
    return theme.figure(
        [theme.cells(rates, [["?" if rate != rate else f"{rate:.2f}" for rate in row] for row in rates], hover)],
        "classes under each axis alone",
        "mean over its severities, from the tests' own trials",
        xaxis=theme.positions(space.names),
        yaxis={**theme.positions(names, "class"), "autorange": "reversed"},
        coloraxis=theme.robustness_colours(),
        height=max(430, 150 + ROW * len(names)),
    )


CELL, LEFT, TOP, BELOW = 52, 78, 46, 52
MOST_LEVELS = 30  # beyond which cells would be too small to tell apart
MOST_TESTS = 1_000_000


def draw(tomogram: Tomogram) -> str | None:
    """The pass rate of trials for each pair of severities of the first two axes, as SVG; None if there are too many."""
    axes = tomogram.space.axes[:2]
    if max(len(axis.severities) for axis in axes) > MOST_LEVELS or len(tomogram.estimator.measured_ids) > MOST_TESTS:
        return None
    rates = _rates(tomogram)
    rows, columns = rates.shape
    bottom = TOP + rows * CELL
    tops = [bottom - (row + 1) * CELL for row in range(rows)]  # the first severity is at the bottom

    def text(x: float, y: float, style: str, words: object) -> str:
        return f'<text x="{x}" y="{y}" class="{style}">{escape(str(words))}</text>'

    parts = [
        text(LEFT, 16, "title", "pass rate of the trials so far"),
        text(LEFT, 34, "soft", "mean over the other axes; estimates are being made …"),
        text(LEFT + columns * CELL / 2, bottom + 40, "middle", axes[0].name),
    ]
    for column, level in enumerate(axes[0].severities):
        parts.append(text(LEFT + (column + 0.5) * CELL, bottom + 20, "middle", level))
    for axis in axes[1:]:
        for top, level in zip(tops, axis.severities, strict=True):
            parts.append(text(LEFT - 10, top + CELL / 2 + 4, "end", level))
        turned = f"translate(18 {TOP + rows * CELL / 2}) rotate(-90)"
        parts.append(f'<text transform="{turned}" class="middle">{escape(axis.name)}</text>')
    for (row, column), rate in np.ndenumerate(rates):
        x, y = LEFT + column * CELL, tops[row]
        fill = f'fill="none" stroke="{NEUTRAL}"' if np.isnan(rate) else f'fill="{theme.colour_of(rate)}"'
        parts.append(f'<rect x="{x + 1}" y="{y + 1}" width="{CELL - 2}" height="{CELL - 2}" {fill}/>')
        if not np.isnan(rate):
            ink = "off" if 0.2 < rate < 0.85 else "on"
            parts.append(text(x + CELL / 2, y + CELL / 2 + 4, f"middle {ink}", f"{rate:.2f}"))
    width, height = LEFT + max(columns * CELL, 370) + 12, bottom + BELOW
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f"<style>text{{font:13px system-ui,sans-serif;fill:{LIGHT.ink}}}.title{{font-size:16px}}.soft{{fill:{NEUTRAL}}}"
        f".middle{{text-anchor:middle}}.end{{text-anchor:end}}.on{{fill:#fff}}.off{{fill:#111}}"
        f"@media(prefers-color-scheme:dark){{text{{fill:{DARK.ink}}}.on{{fill:#fff}}.off{{fill:#111}}}}</style>"
        + "".join(parts)
        + "</svg>"
    )


def _rates(tomogram: Tomogram) -> Floats:
    """The mean of tests' pass rates, rows by the second axis and columns by the first; NaN where none was tried."""
    axes = tomogram.space.axes[:2]
    ids = tomogram.estimator.measured_ids
    passes, trials = tomogram.outcomes.counts(ids)
    shape = tuple(len(axis.severities) for axis in axes)
    severities = tomogram.space.matrix(ids)
    places = [np.searchsorted(axis.severities, severities[:, number]) for number, axis in enumerate(axes)]
    cells, size = np.ravel_multi_index(places, shape), int(np.prod(shape))
    with np.errstate(invalid="ignore"):
        means = np.bincount(cells, passes / trials, size) / np.bincount(cells, minlength=size)
    return np.atleast_2d(means.reshape(shape).T)


MOST_CUBES = 20_000  # in a voxel view; more would make the browser slow
MOST_PAIRS = 15

Drawn = list[tuple[str, Record]]  # a figure's name and what plotly.js draws


def of_view(runs: Runs, wanted: FigureRequest, *, dark: bool) -> Drawn:
    """All figures of a view by name. The cubes of a region are a separate view."""
    found = runs.views.get(
        (runs.revision, *wanted.key),
        lambda: [(name, plain(drawn)) for name, drawn in MAKERS[wanted.view](runs, wanted).items() if drawn],
    )
    # What was turned or zoomed stays as it is when the query changes.
    kept = {"template": None, "uirevision": "kept"}
    return [
        (name, {"data": figure["data"], "layout": {**theme.dressed(figure["layout"], dark=dark), **kept}})
        for name, figure in found
    ]


def plain(figure: theme.Figure) -> Record:
    """A figure as plain data; `customdata` is not packed into text, so that a click reports a test's number."""
    packed: Record = figure.to_dict()
    for trace, source in zip(packed["data"], figure.data, strict=True):
        if getattr(source, "customdata", None) is not None:
            trace["customdata"] = np.asarray(source.customdata).tolist()
    return packed


def _chosen(runs: Runs, wanted: FigureRequest) -> Mask | None:
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
        "orders": dots.by_order(tomogram),
        "others": curves.severity_curves(tomogram) if several else None,
        "sum": curves.severity_sum_curve(tomogram) if several else None,
    }
    for figure in drawn.values():
        if figure is not None:
            figure.layout.legend.y = -0.32  # figures are lower here than in a report: clear of the axis's title
    return {**drawn, "quality": None if tomogram.quality is None else curves.quality_curves(tomogram)}


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
    "space": _space, "voxels": _voxels, "pairs": _pairs, "curves": _curves, "tests": _tests, "errors": _errors,
    "compare": _compare,
}  # fmt: skip


def difference(runs: Runs, wanted: FigureRequest, chosen: Mask | None = None) -> theme.Figure:
    """B − A for each pair of severities of the first two axes: blue where B is more robust."""
    x, y = wanted.axes[:2]
    a, b = (
        project(runs.tomogram(number), (y, x), at=wanted.others, chosen=chosen)
        for number in (wanted.run, wanted.against)
    )
    values = b.estimate - a.estimate
    largest = max(0.05, float(np.nanmax(np.abs(values), initial=0.0)))
    text = [["" if np.isnan(value) else f"{value:+.2f}" for value in row] for row in values.tolist()]
    trace = theme.cells(values, text, written=max(map(len, a.levels)) <= heatmaps.MOST_WRITTEN, customdata=a.first)
    trace["hovertemplate"] = f"{theme.plain(x)} %{{x}}, {theme.plain(y)} %{{y}}: %{{z:+.3f}}<extra></extra>"
    colours = {**theme.robustness_colours("B − A"), "cmin": -largest, "cmax": largest}
    return theme.figure(
        [trace],
        "B − A",
        "estimates; blue: B is more robust",
        xaxis=theme.positions(a.levels[1], x),
        yaxis=theme.positions(a.levels[0], y),
        coloraxis=colours,
    )
