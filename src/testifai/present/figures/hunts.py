"""What a hunt found as it went on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from testifai.present import theme
from testifai.scans.hunting import Hunt

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def hunt_curve(hunt: Hunt, *, dark: bool = False) -> Figure:
    """Failures, and inputs that failed, against the inferences spent: counts, which have no interval."""
    spent = [0, *(step[0] for step in hunt.curve)]
    counts = {
        "failures": [0, *(step[1] for step in hunt.curve)],
        "inputs that failed": [0, *(step[2] for step in hunt.curve)],
    }
    lines: list[dict[str, Any]] = [
        {
            "type": "scatter", "name": name, "mode": "lines+markers", "x": spent, "y": found, "hoverinfo": "text",
            "hovertext": [f"{n:,} {name}<br>after {at:,} inferences" for at, n in zip(spent, found, strict=True)],
            "line": {"color": theme.SERIES[place], "dash": theme.DASHES[place], "width": 2.2},
            "marker": {"symbol": theme.SYMBOLS[place], "size": 7},
        }
        for place, (name, found) in enumerate(counts.items())
    ]  # fmt: skip
    if hunt.inferences:
        lines.insert(0, {
            "type": "scatter", "name": "if every trial failed", "mode": "lines", "x": [0, hunt.inferences],
            "y": [0, hunt.inferences], "line": {"color": theme.NEUTRAL, "width": 1.2, "dash": "dot"},
            "hoverinfo": "skip",
        })  # fmt: skip
    inputs = len(hunt.failing_inputs)
    return theme.figure(
        lines,
        dark=dark,
        title={
            "text": f"{len(hunt.tests):,} failures in {hunt.inferences:,} inferences",
            "subtitle": {"text": f"on {inputs:,} inputs; trials were chosen for failing: no rate of all inputs"},
        },
        xaxis={"title": {"text": "inferences"}, "rangemode": "tozero", "zeroline": False},
        yaxis={"title": {"text": "found"}, "rangemode": "tozero", "zeroline": False},
        legend={"orientation": "h", "y": -0.22},
        margin={"l": 60, "r": 20, "t": 70, "b": 50},
    )
