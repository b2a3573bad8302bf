"""Robustness over two axes as a heat map: a slice, or the mean over the axes that are not shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from testifai.errors import InputError
from testifai.present import theme
from testifai.present.figures.projection import MARKS, MEASURED, SOURCES, Mask, Projection, others_text, project
from testifai.tomogram import Tomogram

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST_WRITTEN = 12  # levels per axis up to which every cell has its number written in


def heatmap(
    tomogram: Tomogram,
    x: str,
    y: str,
    *,
    at: Mapping[str, int] | None = None,
    chosen: Mask | None = None,
    dark: bool = False,
) -> Figure:
    """The mean robustness for each pair of severities of two axes.

    Other axes are fixed by `at` or averaged over; `chosen` are the tests to look at. Cells that were not measured, or
    in part only, are marked. `customdata` of a cell is the id of its first test.

    >>> import testifai as ta
    >>> rows = np.linspace(0, 1, 40)[:, None]
    >>> shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1, 0.5])
    >>> model = lambda x: (x[:, 0] > 0.5).astype(int)
    >>> tomogram = ta.scan(model, (rows, model(rows)), ta.Space({"up": shift, "on": shift}), strategy="full")
    >>> heatmap(tomogram, "up", "on").data[0].z[0].tolist()
    [1.0, 0.9, 0.525]
    """
    if x == y:
        raise InputError(f"axis: a heat map needs two different axes, got {x!r} twice")
    seen = project(tomogram, (y, x), at=at, chosen=chosen)
    cells = [[(row, column) for column in range(len(seen.levels[1]))] for row in range(len(seen.levels[0]))]
    written = max(map(len, seen.levels)) <= MOST_WRITTEN
    trace = {
        "type": "heatmap",
        "x": list(range(len(seen.levels[1]))),
        "y": list(range(len(seen.levels[0]))),
        "z": seen.estimate,
        "customdata": seen.first,
        "text": [[_label(seen, cell) for cell in row] for row in cells],
        "hovertext": [[seen.describe(cell) if seen.tests[cell] else "not selected" for cell in row] for row in cells],
        "hoverinfo": "text",
        "texttemplate": "%{text}" if written else "",
        "coloraxis": "coloraxis",
        "xgap": 2,
        "ygap": 2,
    }
    return theme.figure(
        [trace],
        dark=dark,
        title={"text": f"{y} and {x}", "subtitle": {"text": _subtitle(tomogram, seen, at, chosen)}},
        xaxis={"title": {"text": x}, **_ticks(seen.levels[1])},
        yaxis={"title": {"text": y}, **_ticks(seen.levels[0])},
        coloraxis=theme.robustness_colours(tomogram.quantity),
        margin={"l": 60, "r": 20, "t": 70, "b": 50},
    )


def _label(seen: Projection, cell: tuple[int, int]) -> str:
    """A cell's number, marked where it was not measured and that is not so of all."""
    if np.isnan(seen.estimate[cell]):
        return "" if seen.tests[cell] == 0 else "?"
    mark = MARKS[seen.source[cell]] if len(_sources(seen)) > 1 else ""
    return f"{seen.estimate[cell]:.2f} {mark}".rstrip()


def _sources(seen: Projection) -> list[int]:
    found: list[int] = np.unique(seen.source[seen.tests > 0]).tolist()
    return found


def _subtitle(tomogram: Tomogram, seen: Projection, at: Mapping[str, int] | None, chosen: Mask | None) -> str:
    found = _sources(seen)
    if len(found) > 1:
        legend = ", ".join(f"{MARKS[source]} {SOURCES[source]}" for source in found if MARKS[source])
    else:
        legend = "" if found == [MEASURED] else f"every cell {SOURCES[found[0]]}" if found else "no test selected"
    others = others_text(tomogram.space, seen.axes, at, whole=chosen is None)
    return " · ".join(part for part in (others, legend) if part)


def _ticks(levels: tuple[int, ...]) -> dict[str, object]:
    """Places stand for severities, which need not be evenly spaced."""
    return {
        "tickvals": list(range(len(levels))),
        "ticktext": list(map(str, levels)),
        "showgrid": False,
        "zeroline": False,
        "constrain": "domain",
    }
