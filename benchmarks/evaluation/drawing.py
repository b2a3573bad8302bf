"""How figures of the page look: one style, and the same colour for the same thing everywhere."""

from __future__ import annotations

from typing import Any

# Of a palette that people with any colour vision tell apart (Okabe and Ito).
COLOURS = {
    "truth": "#000000",
    "published": "#D55E00",
    "ours": "#0072B2",
    "ours small": "#56B4E9",
    "random": "#999999",
    "other": "#009E73",
    "another": "#CC79A7",
    "third": "#E69F00",
}


def axes(
    rows: int = 1, columns: int = 1, *, width: float = 3.2, height: float = 2.4, **options: Any
) -> tuple[Any, Any]:
    """A figure and its axes (always an array of rows × columns), each so many inches wide and high."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    pyplot.rcParams.update(
        {
            "svg.hashsalt": "testifai",  # names within the file, else different each time
            "svg.fonttype": "none",
            "font.size": 8,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.linewidth": 0.4,
            "grid.alpha": 0.6,
            "legend.frameon": False,
        }
    )
    pyplot.close("all")
    return pyplot.subplots(
        rows, columns, figsize=(width * columns, height * rows), squeeze=False, layout="constrained", **options
    )
