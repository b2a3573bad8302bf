"""Classes under one perturbation at a time: a heat map from the tests' own trials."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from testifai.app.state import MOST_CLASSES
from testifai.present import theme
from testifai.support.bits import pack
from testifai.tomogram import Tomogram, own_trials

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
    cells = [[own_trials.region(tomogram.outcomes, ids, among) for ids in alone] for among in by_class]
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
