"""Every pair of axes in one figure: estimates below the diagonal, how sure they are above it, each axis on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from testifai.present import theme
from testifai.present.figures.curves import band
from testifai.present.figures.heatmaps import Projection, project
from testifai.support.types import Floats, Record
from testifai.tomogram import Answer, Tomogram
from testifai.tomogram.lowest_tests import Mask

MOST_AXES = 6  # that a page has room for
FEW_AXES = 3  # up to which every cell has its number written in
MOST_WRITTEN = 8  # levels per axis, likewise
HEIGHT = {1: 420, 2: 560, 3: 680}  # of more axes that of most
TALLEST = 860
GAP = 0.012  # between panels, as a share of the figure
BARS = 92  # pixels below the panels, for the names of the axes and the two bars of colours
# An upright axis of rates, its numbers inside the panel.
RATES = {
    "range": [-0.05, 1.05], "tickformat": ".1f", "zeroline": False, "tickvals": [0, 0.5, 1],
    "ticktext": ["0", ".5", "1"], "showticklabels": True, "ticklabelposition": "inside", "tickfont": {"size": 9},
    "showgrid": True,
}  # fmt: skip


def pairs(
    tomogram: Tomogram,
    axes: Sequence[str] | None = None,
    *,
    query: str | None = None,
    chosen: Mask | None = None,
    dark: bool = False,
) -> theme.Figure:
    """A panel for each pair of axes, of all tests or of those that a query selects, which `chosen` are.

    Below the diagonal the mean over the other axes, above it half the width of its 95 % interval, on it each axis. Of
    more than six axes, those along which the estimates differ most. `customdata` of a cell is its first test's id.
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
        f"{theme.plain(tomogram.settings.quantity)} over pairs of axes",
        _subtitle(tomogram, names, chose=axes is None, whole=chosen is None),
        dark=dark,
        showlegend=False,
        height=HEIGHT.get(len(names), TALLEST),
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
    """A square of panels: rows from top to bottom, columns from left to right, an axis of the space for each."""

    tomogram: Tomogram
    names: Sequence[str]

    def levels(self, place: int) -> tuple[int, ...]:
        return self.tomogram.space[self.names[place]].severities

    def on(self, row: int, column: int) -> dict[str, str]:
        """The axes of a panel, as plotly names them."""
        number = row * len(self.names) + column + 1
        suffix = "" if number == 1 else str(number)
        return {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}

    def curve(self, place: int, answers: dict[int, Answer]) -> list[Record]:
        """The mean for each severity of an axis, with its interval."""
        name, levels, colour = self.names[place], self.levels(place), theme.SERIES[0]
        x = [float(levels.index(severity)) for severity in answers]
        estimates = [(one.robustness, one.low, one.high) for one in answers.values()]
        middle, low, high = zip(*estimates, strict=True)
        words = [
            f"{name} {severity}<br>{theme.estimate_text(*numbers)}<br>mean of {one.tests:,} tests"
            for (severity, one), numbers in zip(answers.items(), estimates, strict=True)
        ]
        line = theme.line(x, middle, words, colour, size=6, width=2)
        return [{**trace, **self.on(place, place)} for trace in (band(x, low, high, colour, name), line)]

    def cells(self, row: int, column: int, seen: Projection, values: Floats) -> Record:
        """A panel of cells; above the diagonal the axes are swapped."""
        above = column > row
        kept = [values, seen.first, np.array(seen.hovertext(), object)]
        shown, first, hover = (one.T if above else one for one in kept)
        form = "±%.2f" if above else "%.2f"
        return theme.cells(
            shown,
            [["" if math.isnan(value) else form % value for value in line] for line in shown.tolist()],
            hover.tolist(),
            written=len(self.names) <= FEW_AXES and max(values.shape) <= MOST_WRITTEN,
            customdata=first,
            coloraxis="coloraxis2" if above else "coloraxis",
            xgap=1,
            ygap=1,
            **self.on(row, column),
        )

    def layout(self, widest: float) -> Record:
        """Axes of the panels, and the colour bars below them."""
        from plotly.subplots import make_subplots

        spacing = {"horizontal_spacing": GAP, "vertical_spacing": GAP}
        axes: Record = make_subplots(len(self.names), len(self.names), **spacing).layout.to_plotly_json()
        del axes["template"]
        for row in range(len(self.names)):
            for column in range(len(self.names)):
                x, y = (name.replace("x", "xaxis").replace("y", "yaxis") for name in self.on(row, column).values())
                axes[x] |= self._side(column, named=row == len(self.names) - 1)
                axes[y] |= self._side(row, named=column == 0)
                if row == column:
                    axes[y] |= RATES
                elif row == 0 and column == len(self.names) - 1:
                    axes[y] |= {"side": "right", "showticklabels": True}  # the first row has rates on its left
        if len(self.names) == 1:
            return axes
        quantity = self.tomogram.settings.quantity
        return {
            **axes,
            "coloraxis": self._colours(theme.robustness_colours(quantity), 0.0, quantity),
            "coloraxis2": self._colours(theme.uncertainty_colours(max(widest, 0.01)), 0.54, "± (95 % interval)"),
        }

    def _side(self, place: int, *, named: bool) -> Record:
        levels = self.levels(place)
        text = theme.plain(self.names[place] if named else "")
        title: Record = {"text": text, "standoff": 6}
        if len(self.names) > FEW_AXES:  # little room: smaller, on several lines
            title |= {"text": text.replace("_", "_<br>"), "font": {"size": 11}}
        range_ = [-0.5, len(levels) - 0.5]
        return {**theme.positions(levels), "range": range_, "showticklabels": named, "title": title}

    def _colours(self, colours: Record, start: float, title: str) -> Record:
        bar = {
            **colours["colorbar"], "orientation": "h", "x": start, "xanchor": "left", "len": 0.46, "nticks": 5,
            "y": 0, "yref": "container", "yanchor": "bottom",
            "title": {"text": theme.plain(title), "side": "bottom"},
        }  # fmt: skip
        return {**colours, "colorbar": bar}
