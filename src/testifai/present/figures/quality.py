"""How plausible the perturbed inputs are, and what accuracy they cost, against the sum of severities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from testifai.present import theme
from testifai.present.figures.curves import band
from testifai.support.types import Array, Floats, Record
from testifai.tomogram import Tomogram

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


HEIGHT = 540


def quality_curves(tomogram: Tomogram, *, dark: bool = False) -> Figure | None:
    """The quality of the inputs above, the accuracy they cost below, each the mean over the tests of a severity sum.

    The band of quality is the mean of the tests' bounds, that of the drop the interval of the mean robustness, less
    the clean accuracy taken as known. None where quality was not measured.
    """
    quality = tomogram.quality
    if quality is None:
        return None
    totals = np.broadcast_to(tomogram.space.columns()["severity"], tomogram.space.shape).reshape(-1)
    sums = np.unique(totals)
    score = [_means(array, totals, sums) for array in (quality.estimate, quality.low, quality.high)]
    answers = [tomogram.query(f"severity == {total}") for total in sums.tolist()]
    drop = [
        np.array([tomogram.base - rate for rate in rates])
        for rates in (
            [answer.robustness for answer in answers],
            [answer.high for answer in answers],  # the more robust, the smaller the drop
            [answer.low for answer in answers],
        )
    ]
    better = "higher is better" if quality.higher_is_better else "lower is better"
    name = theme.plain(quality.name)
    measured = f"{name} ({better}) was measured on {len(quality.measured):,} of {tomogram.space.size:,}"
    return theme.figure(
        [*_curve(quality.name, sums, score, 0, "y"), *_curve("drop", sums, drop, 1, "y2")],
        dark=dark,
        title={
            "text": "quality and accuracy drop against total severity",
            "subtitle": {"text": f"mean over all tests with the same sum; {measured}"},
        },
        xaxis={"title": {"text": "sum of severities"}, "anchor": "y2", "zeroline": False},
        yaxis={"title": {"text": name}, "domain": [0.54, 1], "zeroline": False},
        yaxis2={"title": {"text": "accuracy drop"}, "domain": [0, 0.46], "zeroline": True, "tickformat": ".2f"},
        showlegend=False,
        height=HEIGHT,
        margin={"l": 60, "r": 20, "t": 70, "b": 50},
    )


def _means(values: Floats, totals: Array, sums: Array) -> Floats:
    """The mean over the tests of each sum; NaN where one of them is."""
    flat = values.reshape(-1)
    return np.array([flat[totals == total].mean() for total in sums])


def _curve(name: str, sums: Array, found: list[Floats], colour: int, axis: str) -> list[Record]:
    x = sums.astype(float).tolist()
    middle, low, high = (values.tolist() for values in found)
    words = [
        f"sum {total:g}<br>{theme.plain(name)} {value:.3f} ({bottom:.3f} … {top:.3f})"
        for total, value, bottom, top in zip(x, middle, low, high, strict=True)
    ]
    line = {
        "type": "scatter",
        "name": theme.plain(name),
        "mode": "lines+markers",
        "x": x,
        "y": middle,
        "line": {"color": theme.SERIES[colour], "width": 2.2},
        "marker": {"symbol": theme.SYMBOLS[colour], "size": 7},
        "hovertext": words,
        "hoverinfo": "text",
        "yaxis": axis,
    }
    return [{**band(x, low, high, theme.SERIES[colour], name), "yaxis": axis}, line]
