"""How two runs differ: over all tests, over regions, and in the tests that changed most, each with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from testifai.present import theme
from testifai.present.figures.dots import Line, Style, one_to_a_line
from testifai.tomogram.comparison import Comparison, Difference, RegionDifference

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

STYLES = {
    "better": Style("B is better", "circle", theme.SERIES[0]),
    "worse": Style("B is worse", "square", theme.SERIES[1]),
    "equal": Style("equal", "diamond", theme.SERIES[2]),
    "undecided": Style("undecided", "circle-open", theme.NEUTRAL),
}


def differences(found: Comparison, *, dark: bool = False) -> Figure:
    """B − A of all tests together, of the regions asked for, and of those tests that lose and gain most.

    >>> import numpy as np, testifai as ta
    >>> rows = np.linspace(0, 1, 40)[:, None]
    >>> shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1, 0.5])
    >>> old, new = (lambda x: (x[:, 0] > 0.5).astype(int)), (lambda x: (x[:, 0] > 0.6).astype(int))
    >>> runs = [ta.scan(model, (rows, old(rows)), ta.Space({"shift": shift}), strategy="full") for model in (old, new)]
    >>> list(differences(ta.compare(*runs)).layout.yaxis.ticktext)
    ['all tests measured in both', 'clean', 'shift 2', 'shift 1']
    """
    lines = [_region(found.overall, "all tests measured in both"), *(_region(one, one.query) for one in found.regions)]
    lines += [_test(found, test) for test in (*found.worst, *reversed(found.best))]
    ends = [abs(end) for line in lines for end in (line.estimate, line.low, line.high) if end == end]
    reach = max([0.02, *ends]) * 1.05
    counted = ", ".join(f"{verdict} in {count:,}" for verdict, count in found.counts.items() if count)
    return one_to_a_line(
        lines,
        "B − A" if found.names == ("A", "B") else theme.plain(f"B − A: {found.names[1]} less {found.names[0]}"),
        theme.plain(f"test by test B is {counted}; largest losses and gains, with 95 % intervals"),
        axis={"title": {"text": "B − A"}, "range": [-reach, reach], "zeroline": False},
        mark=0.0,
        dark=dark,
    )


def _region(one: RegionDifference, name: str) -> Line:
    return Line(
        name, one.difference, one.low, one.high, STYLES[one.verdict], note=f"{one.compared:,} of {one.tests:,} tests"
    )


def _test(found: Comparison, one: Difference) -> Line:
    rates = f"{one.rate_a:.3f} → {one.rate_b:.3f}, {one.verdict}"
    name = found.space.words(one.configuration)
    return Line(name, one.difference, one.low, one.high, STYLES[one.verdict], note=rates)
