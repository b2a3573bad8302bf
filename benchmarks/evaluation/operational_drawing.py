"""How techniques of operational testing are drawn: each with its colour and mark, one legend below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaluation import drawing
from evaluation.operational_published import TESTS
from evaluation.operational_study import DEFAULT, VARIANTS, Study, arms
from evaluation.operational_subjects import Subject

LINES = {
    "SRS": ("random", "o"), "CES": ("truth", "P"), "CS": ("published", "s"), "DSA": ("other", "^"),
    "LSA": ("another", "v"), "C": ("third", "D"), f"balanced {DEFAULT:g}": ("ours", "o"),
}  # fmt: skip


def line(plot: Any, x: Sequence[float], y: Sequence[float], name: str) -> None:
    """What became of one technique along x."""
    colour, marker = LINES[name]
    plot.plot(x, y, color=drawing.COLOURS[colour], marker=marker, markersize=3, linewidth=1, label=name)


def ratios(plot: Any) -> None:
    """An axis of quotients: 0.1, 0.2, 0.5, 1 …, evenly spaced."""
    from matplotlib.ticker import LogLocator, NullFormatter

    plot.set_yscale("log")
    plot.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    plot.yaxis.set_major_formatter("{x:g}")
    plot.yaxis.set_minor_formatter(NullFormatter())


def legend(figure: Any, plot: Any) -> None:
    """One legend for all plots."""
    handles, names = plot.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), fontsize=7)


def frontiers(study: Study, subjects: Sequence[Subject]) -> Any:
    """Failures to the right, error upwards: the published techniques as marks, ours as a curve over its knob."""
    figure, axes = drawing.axes(1, len(subjects), width=2.2 if len(subjects) > 3 else 3.0, height=2.3)
    for plot, one in zip(axes[0], subjects, strict=True):
        curve = [(run.found, run.mse / one.simple(TESTS)) for _, run in study.curve(one)]
        plot.plot(*zip(*curve, strict=True), color=drawing.COLOURS["ours"], marker=".", label="balanced, 0 … 1")
        for name in (name for name in arms(one) if name in ("SRS", "CES", *VARIANTS)):
            colour, marker = LINES[name]
            point = study.main(one, name).found, study.ratio(one, name)
            plot.plot(*point, marker, color=drawing.COLOURS[colour], markersize=5, label=name)
        plot.set(title=one.title, xlabel="failures")
        ratios(plot)
    axes[0, 0].set_ylabel("MSE / that of SRS")
    legend(figure, axes[0, 0])
    return figure
