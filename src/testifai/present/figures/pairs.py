"""Every pair of axes in one figure: estimates below the diagonal, how sure they are above it, each axis on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from testifai.present import theme
from testifai.present.figures.curves import band
from testifai.present.figures.heatmaps import Projection, project
from testifai.support.types import Floats, Record
from testifai.tomogram import Answer, Tomogram
from testifai.tomogram.lowest_tests import Mask

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST_AXES = 6  # that a page has room for
FEW_AXES = 3  # up to which every cell has its number written in
MOST_WRITTEN = 8  # levels per axis, likewise
HEIGHT = {1: 420, 2: 560, 3: 680}  # of more axes that of most
TALLEST = 860
GAP = 0.012  # between panels, as a share of the figure
BARS = 92  # pixels below the panels, for the names of the axes and the two bars of colours


def pairs(
    tomogram: Tomogram,
    axes: Sequence[str] | None = None,
    *,
    query: str | None = None,
    chosen: Mask | None = None,
    dark: bool = False,
) -> Figure:
    """A panel for each pair of axes, of all tests or of those that a query selects, which `chosen` are.

    Below the diagonal the mean over the other axes, above it half the width of its 95 % interval, on it the mean over
    all other axes with its interval. Of more than six axes, those along which the estimates differ most. `customdata`
    of a cell is the id of its first test.

    >>> import testifai as ta
    >>> rows = np.linspace(0, 1, 40)[:, None]
    >>> shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1, 0.5])
    >>> model = lambda x: (x[:, 0] > 0.5).astype(int)
    >>> tomogram = ta.scan(model, (rows, model(rows)), ta.Space({"up": shift, "on": shift}), strategy="full")
    >>> [trace.type for trace in pairs(tomogram).data]
    ['scatter', 'scatter', 'heatmap', 'heatmap', 'scatter', 'scatter']
    """
    by_axis = tomogram.by_severity(query)
    names = steepest(by_axis) if axes is None else [tomogram.space[name].name for name in axes]
    matrix = _Matrix(tomogram, names)
    traces: list[Record] = []
    widest = 0.0
    for row, y in enumerate(names):
        for column, x in enumerate(names[: row + 1]):
            if row == column:
                traces += matrix.curve(row, by_axis[y])
                continue
            seen = project(tomogram, (y, x), chosen=chosen)
            half = (seen.high - seen.low) / 2
            widest = max(widest, float(np.nanmax(half, initial=0.0)))
            traces += [matrix.cells(row, column, seen, seen.estimate), matrix.cells(column, row, seen, half)]
    return theme.figure(
        traces,
        dark=dark,
        title={
            "text": f"{theme.plain(tomogram.settings.quantity)} over pairs of axes",
            "subtitle": {"text": _subtitle(tomogram, names, chose=axes is None, whole=chosen is None)},
        },
        showlegend=False,
        height=matrix.height,
        margin={"l": 60, "r": 20, "t": 70, "b": BARS + 40},
        **matrix.layout(widest),
    )


def steepest(by_axis: Record, most: int = MOST_AXES) -> list[str]:
    """The axes along which estimates differ most, as many as there is room for, in their own order."""

    def fall(name: str) -> float:
        rates = [answer.robustness for answer in by_axis[name].values() if not math.isnan(answer.robustness)]
        return max(rates) - min(rates) if rates else 0.0

    shown = set(sorted(by_axis, key=fall, reverse=True)[:most])
    return [name for name in by_axis if name in shown]


def _subtitle(tomogram: Tomogram, names: Sequence[str], *, chose: bool, whole: bool) -> str:
    space = tomogram.space
    parts = ["the mean over all other axes, with its 95 % interval"]
    if len(names) > 1:
        parts = [
            "below the diagonal: the mean over all other axes", "above it: half the width of its 95 % interval",
            "on it: each axis",
        ]  # fmt: skip
    if chose and len(names) < len(space.names):
        parts.append(f"the {len(names)} of {len(space.names)} axes that matter most")
    if space.order_sensitive:
        parts.append("mean over the orders of application")
    if not whole:
        parts.append("selected tests only")
    if not space.listed:
        parts.append("from a sample of the tests")
    return "; ".join(parts)


@dataclass(frozen=True)
class _Matrix:
    """Where the panels are: rows from top to bottom, columns from left to right, an axis of the space for each."""

    tomogram: Tomogram
    names: Sequence[str]

    @property
    def count(self) -> int:
        return len(self.names)

    @property
    def height(self) -> int:
        return HEIGHT.get(self.count, TALLEST)

    def levels(self, place: int) -> tuple[int, ...]:
        return self.tomogram.space[self.names[place]].severities

    def suffix(self, row: int, column: int) -> str:
        """Of the panel's own two axes, as plotly numbers them."""
        number = row * self.count + column + 1
        return "" if number == 1 else str(number)

    def on(self, row: int, column: int) -> dict[str, str]:
        suffix = self.suffix(row, column)
        return {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}

    def curve(self, place: int, answers: dict[int, Answer]) -> list[Record]:
        """The mean for each severity of an axis, with its interval."""
        levels = self.levels(place)
        x = [float(levels.index(severity)) for severity in answers]
        found = list(answers.values())
        colour = theme.SERIES[0]
        shaded = band(x, [one.low for one in found], [one.high for one in found], colour, self.names[place])
        line = {
            "type": "scatter", "mode": "lines+markers", "x": x, "y": [one.robustness for one in found],
            "line": {"color": colour, "width": 2}, "marker": {"size": 6}, "hoverinfo": "text",
            "hovertext": [
                f"{self.names[place]} {severity}<br>{theme.estimate_text(one.robustness, one.low, one.high)}"
                f"<br>mean of {one.tests:,} tests"
                for severity, one in answers.items()
            ],
        }  # fmt: skip
        return [{**trace, **self.on(place, place)} for trace in (shaded, line)]

    def cells(self, row: int, column: int, seen: Projection, values: Floats) -> Record:
        """A panel of cells; above the diagonal the axes have changed places."""
        above = column > row
        shape = values.shape
        words = [
            [seen.describe((i, j)) if seen.tests[i, j] else "not selected" for j in range(shape[1])]
            for i in range(shape[0])
        ]
        kept = [values, seen.first, np.array(words, object)]
        shown, first, hover = (one.T if above else one for one in kept)
        written = self.count <= FEW_AXES and max(shape) <= MOST_WRITTEN
        form = "±%.2f" if above else "%.2f"
        return {
            "type": "heatmap",
            "x": list(range(shown.shape[1])),
            "y": list(range(shown.shape[0])),
            "z": shown,
            "customdata": first,
            "hovertext": hover.tolist(),
            "hoverinfo": "text",
            "text": [["" if math.isnan(value) else form % value for value in line] for line in shown.tolist()],
            "texttemplate": "%{text}" if written else "",
            "coloraxis": "coloraxis2" if above else "coloraxis",
            "xgap": 1,
            "ygap": 1,
            **self.on(row, column),
        }

    def layout(self, widest: float) -> Record:
        """Axes of the panels, and the bars of colours below them."""
        axes: Record = {}
        for row in range(self.count):
            for column in range(self.count):
                suffix = self.suffix(row, column)
                axes[f"xaxis{suffix}"] = self._side(column, column, suffix, "y", named=row == self.count - 1)
                vertical = self._side(self.count - 1 - row, row, suffix, "x", named=column == 0)
                if row == column:
                    vertical = {**vertical, **self._rates(vertical["title"])}
                elif row == 0 and column == self.count - 1:
                    # At the left of the first row stand rates.
                    vertical = {**vertical, "side": "right", "showticklabels": True}
                axes[f"yaxis{suffix}"] = vertical
        if self.count == 1:
            return axes
        robustness = theme.robustness_colours(self.tomogram.settings.quantity)
        doubt = theme.uncertainty_colours(max(widest, 0.01))
        return {
            **axes,
            "coloraxis": {**robustness, "colorbar": self._bar(robustness, 0.0, self.tomogram.settings.quantity)},
            "coloraxis2": {**doubt, "colorbar": self._bar(doubt, 0.54, "± (95 % interval)")},
        }

    def _side(self, slot: int, place: int, suffix: str, anchor: str, *, named: bool) -> Record:
        """One side of a panel; names and severities stand at the edges of the figure only."""
        each = (1 - GAP * (self.count - 1)) / self.count
        levels = self.levels(place)
        start = slot * (each + GAP)
        return {
            "domain": [start, min(1.0, start + each)],
            "anchor": f"{anchor}{suffix}",
            "tickvals": list(range(len(levels))),
            "ticktext": list(map(str, levels)),
            "range": [-0.5, len(levels) - 0.5],
            "showgrid": False,
            "zeroline": False,
            "showticklabels": named,
            "title": self._title(self.names[place] if named else ""),
        }

    def _rates(self, title: Record) -> Record:
        """What differs of an upright side along which rates stand: the numbers are inside."""
        return {
            **theme.rate_axis(), "title": title, "tickvals": [0, 0.5, 1], "ticktext": ["0", ".5", "1"],
            "showticklabels": True, "ticklabelposition": "inside", "tickfont": {"size": 9}, "showgrid": True,
            "range": [-0.05, 1.05],
        }  # fmt: skip

    def _bar(self, colours: Record, start: float, title: str) -> Record:
        return {
            **colours["colorbar"], "orientation": "h", "x": start, "xanchor": "left", "len": 0.46, "nticks": 5,
            "y": 0, "yref": "container", "yanchor": "bottom",
            "title": {"text": theme.plain(title), "side": "bottom"},
        }  # fmt: skip

    def _title(self, name: str) -> Record:
        """The name of an axis, smaller and on several lines where there is little room."""
        text = theme.plain(name)
        if self.count <= FEW_AXES:
            return {"text": text, "standoff": 6}
        return {"text": text.replace("_", "_<br>"), "standoff": 6, "font": {"size": 11}}
