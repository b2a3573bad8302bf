"""Colours, layout and traces that all figures share: safe for colour-blind readers, in light and dark.

Only text, lines and ground differ between the two, so that a page can switch a figure by its layout alone.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from testifai.support.formatting import estimate_text as estimate_text
from testifai.support.types import Record, RecordLike

if TYPE_CHECKING:
    from plotly.graph_objects import Figure as Figure

# From vermilion (fails) through sand to blue (passes): kinds of colour blindness that confuse red with green keep them
# apart.
SCALE = ((0.0, "#9c2a00"), (0.25, "#e0772c"), (0.5, "#f3d9a4"), (0.75, "#7fb2d6"), (1.0, "#1f5fa6"))
# After Okabe and Ito, "Color Universal Design" (2008), without those that are faint on white.
SERIES = ("#0072b2", "#d55e00", "#009e73", "#c7629b", "#8a6fc9", "#a6761d", "#4c9bd6", "#7a8288")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid", "dash")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down", "star")
NEUTRAL = "#7a8288"  # told apart from both grounds
# Plotly's options for whoever draws a figure. By default some versions have a button that sends the data away.
CONFIG = {"responsive": True, "displaylogo": False, "showSendToCloud": False, "plotlyServerURL": ""}

MARGIN = {"l": 60, "r": 20, "t": 70, "b": 50}
LEGEND_BELOW = {"orientation": "h", "y": -0.22}


@dataclass(frozen=True)
class Theme:
    """The colours of a page."""

    ink: str
    grid: str
    ground: str


LIGHT = Theme(ink="#22272e", grid="#dfe3e8", ground="#ffffff")
DARK = Theme(ink="#dde3ea", grid="#363d47", ground="#171b21")


def figure(traces: Iterable[Any], title: str, subtitle: str = "", *, dark: bool = False, **layout: Any) -> Figure:
    """A figure in the house style; further keywords are plotly's for the layout."""
    from plotly import graph_objects

    titled = {"title": {"text": title, "subtitle": {"text": subtitle}}, "margin": MARGIN, **layout}
    # Plotly's own template would add seven kilobytes to each figure of a page.
    return graph_objects.Figure(list(traces), {"template": None, **dressed(titled, dark=dark)})


def dressed(layout: RecordLike, *, dark: bool) -> Record:
    """A layout in the colours of a light or a dark page."""
    theme = DARK if dark else LIGHT
    line = {"gridcolor": theme.grid, "linecolor": theme.grid, "zerolinecolor": theme.grid}
    flat, solid = {**line, "automargin": True}, {**line, "showbackground": False, "showspikes": False}
    # Flat axes beside a scene would be drawn behind it.
    axes: Record = {"scene": {f"{side}axis": solid for side in "xyz"}}
    if "scene" not in layout:
        further = [name for name in layout if name.startswith(("xaxis", "yaxis"))]
        axes = dict.fromkeys(("xaxis", "yaxis", *further), flat)
    style = {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": theme.ink, "family": "system-ui, 'Segoe UI', Helvetica, Arial, sans-serif", "size": 13},
        "title": {"x": 0, "xref": "paper", "xanchor": "left"},
        "hoverlabel": {"bgcolor": theme.ground, "bordercolor": NEUTRAL, "font": {"color": theme.ink}},
        "legend": {"bgcolor": "rgba(0,0,0,0)"},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": NEUTRAL, "activecolor": theme.ink},
        **axes,
    }
    return _merged(layout, style)


def _merged(one: RecordLike, other: RecordLike) -> Record:
    inner = {key: _merged(one[key], other[key]) for key in one.keys() & other.keys() if isinstance(other[key], Mapping)}
    return {**one, **other, **inner}


def robustness_colours(title: str = "robustness") -> Record:
    """The colour axis of robustness: the same numbers have the same colour in every figure."""
    return {
        "colorscale": [list(stop) for stop in SCALE],
        "cmin": 0,
        "cmax": 1,
        "colorbar": {"title": {"text": plain(title), "side": "right"}, "thickness": 12, "outlinewidth": 0, "len": 0.9},
    }


def uncertainty_colours(largest: float) -> Record:
    """The colour axis of half widths of intervals: violet, which is not a colour of robustness."""
    return {
        "colorscale": [[0.0, "rgba(138,111,201,0.06)"], [1.0, "#5b3fa0"]],
        "cmin": 0,
        "cmax": largest,
        "colorbar": {"thickness": 12, "outlinewidth": 0},
    }


def rate_axis(title: str = "robustness") -> Record:
    """An axis from 0 to 1."""
    return {"title": {"text": plain(title)}, "range": [-0.02, 1.02], "tickformat": ".1f", "zeroline": False}


def cells(values: ArrayLike, text: object, hovertext: object = None, *, written: bool = True, **more: object) -> Record:
    """The trace of a heat map whose rows and columns are at positions 0, 1, …, with text in its cells if `written`."""
    rows, columns = np.shape(values)
    return {
        "type": "heatmap", "x": list(range(columns)), "y": list(range(rows)), "z": values, "text": text,
        "texttemplate": "%{text}" if written else "", "hovertext": hovertext, "hoverinfo": "text",
        "coloraxis": "coloraxis", "xgap": 2, "ygap": 2, **more,
    }  # fmt: skip


def positions(names: Iterable[object], title: str = "") -> Record:
    """An axis whose positions 0, 1, … have names: severities need not be evenly spaced, nor classes be numbers."""
    ticks = list(map(str, names))
    named = {"title": {"text": title}} if title else {}
    return {"tickvals": list(range(len(ticks))), "ticktext": ticks, "showgrid": False, "zeroline": False, **named}


def line(
    x: object, y: object, hovertext: object, colour: str, *,
    symbol: object = "circle", size: int = 8, dash: str = "solid", width: float = 2.2, **more: object,
) -> Record:  # fmt: skip
    """The trace of a curve with a mark at each point."""
    return {
        "type": "scatter", "mode": "lines+markers", "x": x, "y": y, "hovertext": hovertext, "hoverinfo": "text",
        "line": {"color": colour, "dash": dash, "width": width}, "marker": {"symbol": symbol, "size": size}, **more,
    }  # fmt: skip


def reference(name: str, x: object, y: object) -> Record:
    """The trace of a dotted line to compare others with."""
    return {
        "type": "scatter", "name": name, "mode": "lines", "x": x, "y": y, "hoverinfo": "skip",
        "line": {"color": NEUTRAL, "width": 1.2, "dash": "dot"},
    }  # fmt: skip


def colour_of(rate: float) -> str:
    """The colour of a robustness, for what cannot use a colour axis."""
    from plotly.colors import sample_colorscale

    return str(sample_colorscale([list(stop) for stop in SCALE], [min(1.0, max(0.0, rate))])[0])


def translucent(colour: str, opacity: float) -> str:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"


def plain(text: object) -> str:
    """Text that plotly shows literally, including mark-up."""
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def folded(text: str, width: int = 66) -> str:
    """A title with line breaks, which plotly does not add."""
    return "<br>".join(
        line for part in text.split("<br>") for line in textwrap.wrap(part, width, break_long_words=False)
    )
