"""Sweeps that a run file holds beside its tests, as curves of accuracy over level."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from testifai.present import theme
from testifai.present.figures.curves import band

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def sweep_curves(name: str, found: Sequence[Mapping[str, Any]], *, dark: bool = False) -> Figure:
    """The accuracy of one perturbation over its level, with the thresholds and the levels that are not settled.

    >>> from testifai.sweeps import sweep
    >>> found = sweep(lambda level: 1 - level / 2, 0, 1).as_dict()
    >>> sweep_curves("linear", [found]).layout.xaxis.title.text
    'level'
    """
    traces = []
    one = max(found, key=lambda sweep: len(sweep["levels"]))  # the same levels serve all thresholds
    levels, accuracies = one["levels"], _numbers(one["accuracies"])
    lows, highs = _numbers(one["lows"]), _numbers(one["highs"])
    traces.append(band(levels, lows, highs, theme.SERIES[0], name))
    words = [
        f"level {level:.4g}<br>{theme.estimate_text(a, lo, hi)}"
        for level, a, lo, hi in zip(levels, accuracies, lows, highs, strict=True)
    ]
    traces.append(
        {
            "type": "scatter", "mode": "lines+markers", "x": levels, "y": accuracies, "hovertext": words,
            "hoverinfo": "text", "line": {"color": theme.SERIES[0]}, "marker": {"size": 5}, "showlegend": False,
        }
    )  # fmt: skip
    shapes = []
    for sweep in found:
        shapes.append(
            {
                "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": sweep["threshold"], "y1": sweep["threshold"],
                "line": {"color": theme.SERIES[1], "width": 1.5, "dash": "dash"},
                "label": {"text": f"{sweep['threshold']:g}", "textposition": "end", "font": {"color": theme.SERIES[1]}},
            }
        )  # fmt: skip
        shapes += [
            {
                "type": "rect", "yref": "paper", "y0": 0, "y1": 1, "x0": start, "x1": end, "layer": "below",
                "fillcolor": theme.translucent(theme.SERIES[5], 0.35), "line": {"width": 0},
            }
            for start, end in sweep["uncertain"]
        ]  # fmt: skip
    return theme.figure(
        traces,
        dark=dark,
        title={"text": theme.plain(name), "subtitle": {"text": "accuracy over the level; shaded: not settled"}},
        xaxis={"title": {"text": "level"}, "range": list(one["span"]), "zeroline": False},
        yaxis=theme.rate_axis("accuracy"),
        shapes=shapes,
        margin={"l": 60, "r": 20, "t": 70, "b": 50},
    )


def sweep_text(found: Mapping[str, Any]) -> str:
    """A sweep's result in words.

    >>> sweep_text({"threshold": 0.8, "robustness": 0.4, "bound": 0.01, "inferences": 1200, "evaluations": 20})
    'accuracy is at least 0.8 on 40.0 % ± 1.0 of the levels (20 levels, 1,200 inferences)'
    """
    bound = "" if found["bound"] is None else f" ± {100 * found['bound']:.1f}"
    return (
        f"accuracy is at least {found['threshold']:g} on {100 * found['robustness']:.1f} %{bound} of the levels "
        f"({found['evaluations']:,} levels, {found['inferences']:,} inferences)"
    )


def _numbers(values: Sequence[float | None]) -> list[float]:
    return [math.nan if value is None else float(value) for value in values]
