"""Figures 2, 3, 4 and 6 of the first paper, for our models and with our method beside the published one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evaluation.drawing import COLOURS, axes
from evaluation.tomography_runs import CUMULATIVE, INTERVAL, PARTIAL, WINDOW, Measured, mean, over

EARLY = {WINDOW: COLOURS["third"], CUMULATIVE: COLOURS["another"], INTERVAL: COLOURS["other"]}


def by_order(tasks: Sequence[Measured]) -> Any:
    """Figure 2: the true rates by order."""
    figure, panels = axes(1, len(tasks), width=1.9, height=2.1, sharey=True)
    for panel, one in zip(panels[0], tasks, strict=True):
        orders = range(1, len(one.whole.grid.axes) + 1)
        rates = [one.whole.truth[one.whole.orders == order] for order in orders]
        boxes(panel, rates, list(orders), [COLOURS["random"]] * len(rates), 0.6)
        panel.set(title=one.task.title, xlabel="order", xticks=list(orders), xticklabels=list(orders), ylim=(0, 1.02))
    panels[0, 0].set_ylabel("pass rate of a test")
    return figure


def errors_of_tests(tasks: Sequence[Measured]) -> Any:
    """Figure 3: the errors of all tests in three dimensions, one seed."""
    figure, panels = axes(1, len(tasks), width=1.9, height=2.6, sharey=True)
    for panel, one in zip(panels[0], tasks, strict=True):
        methods = shown(one)
        errors = [one.in_3d[name][0].errors for name in methods]
        boxes(panel, errors, range(len(methods)), list(methods.values()), 0.6)
        panel.set(title=one.task.title, xticks=range(len(methods)))
        panel.set_xticklabels(list(methods), rotation=60, ha="right")
        within(panel)
    panels[0, 0].set_ylabel("estimate − truth")
    return figure


def errors_by_query(tasks: Sequence[Measured]) -> Any:
    """Figure 3 by query: the errors of the tests that each of the twelve queries selects, one seed."""
    figure, panels = axes(len(tasks), 1, width=7.5, height=1.5, sharey=True, sharex=True)
    for panel, one in zip(panels[:, 0], tasks, strict=True):
        names = list(one.cube.queries)
        pair = {PARTIAL: COLOURS["published"], one.spoken_of: COLOURS["ours"]}
        for shift, (method, colour) in zip((-0.18, 0.18), pair.items(), strict=True):
            errors = one.in_3d[method][0].errors
            parts = [errors[one.cube.full.select(one.cube.queries[name])] for name in names]
            boxes(panel, parts, np.arange(len(names)) + shift, [colour] * len(names), 0.3)
            panel.plot([], [], "s", color=colour, label=method)
        panel.set(ylabel=one.task.title, xticks=range(len(names)), xticklabels=names)
        panel.legend(loc="upper left", ncols=2, fontsize=7)
        within(panel)
    return figure


def queries(tasks: Sequence[Measured]) -> Any:
    """Figure 6: error and predicted drop of the twelve queries."""
    figure, panels = axes(len(tasks), 2, width=4.2, height=1.7)
    for row, one in zip(panels, tasks, strict=True):
        names = list(one.cube.queries)
        places = np.arange(len(names))
        found = over(one.in_3d[one.spoken_of], lambda run: run.query_errors)
        partial = one.in_3d[PARTIAL][0]
        truth = np.array([line.truth for line in partial.queries]) - one.cube.clean
        row[0].bar(places - 0.2, partial.query_errors, 0.35, color=COLOURS["published"], label=PARTIAL)
        row[0].plot(
            np.tile(places + 0.2, len(found)), found.reshape(-1), ".", color=COLOURS["ours"], markersize=3,
            label=f"{one.spoken_of}, each seed",
        )  # fmt: skip
        row[0].axhline(0, color=COLOURS["truth"], linewidth=0.6)
        row[0].set(ylabel=f"{one.task.title}\nerror")
        row[1].plot(places, truth, "_", color=COLOURS["truth"], markersize=12, label="truth")
        row[1].plot(places - 0.2, truth + partial.query_errors, "o", color=COLOURS["published"], markersize=4)
        row[1].errorbar(
            places + 0.2, truth + found[0], intervals(one), fmt=".", color=COLOURS["ours"], label="ours, 95 %"
        )
        row[1].set(ylabel="drop")
        for panel in row:
            panel.set(xticks=places, xticklabels=names)
        row[0].legend(fontsize=7, loc="upper left")
        row[1].legend(fontsize=7, loc="lower left")
    return figure


def intervals(one: Measured) -> Any:
    """How far below and above its estimates the 95 % intervals of our first seed reach."""
    answers = [line.answer for line in one.in_3d[one.spoken_of][0].queries]
    ends = np.array([(line.robustness - line.low, line.high - line.robustness) for line in answers])
    return np.maximum(ends, 0).T


def inferences(tasks: Sequence[Measured]) -> Any:
    """Figure 4: the inferences of each method, and the mean squared error it pays."""
    figure, panels = axes(1, len(tasks), width=1.9, height=2.7, sharey=True)
    for panel, one in zip(panels[0], tasks, strict=True):
        methods = {PARTIAL: COLOURS["published"], **EARLY, one.spoken_of: COLOURS["ours"]}
        used = [1.0, *(mean(one.in_3d[name], lambda run: run.share) for name in methods)]
        squared = [mean(one.in_3d[name], lambda run: np.square(run.errors).mean()) for name in methods]
        paid = ["0", *(f"{value:.0e}".replace("e-0", "e-") for value in squared)]
        colours = [COLOURS["random"], *methods.values()]
        panel.bar(range(len(used)), used, color=colours)
        for place, (height, text) in enumerate(zip(used, paid, strict=True)):
            panel.text(place, height * 1.08, text, ha="center", fontsize=6, rotation=60)
        panel.set(title=one.task.title, yscale="log", ylim=(0.005, 3), xticks=range(len(used)))
        panel.set_xticklabels(["full", *methods], rotation=60, ha="right")
    panels[0, 0].set_ylabel("inferences / those of full")
    return figure


def shown(one: Measured) -> dict[str, str]:
    """The methods of Figure 3 and their colours."""
    colours = (COLOURS["published"], EARLY[WINDOW], COLOURS["ours"], COLOURS["ours"], COLOURS["ours small"])
    return dict(zip(one.compared, colours, strict=True))


def boxes(panel: Any, parts: Sequence[Any], places: Any, colours: Sequence[str], width: float) -> None:
    """Boxes of median and quartiles; whiskers show the full spread, as in the paper."""
    drawn = panel.boxplot(
        parts, positions=list(places), widths=width, whis=(0, 100), patch_artist=True, manage_ticks=False,
        medianprops={"color": COLOURS["truth"]},
    )  # fmt: skip
    for box, colour in zip(drawn["boxes"], colours, strict=True):
        box.set(facecolor=colour, linewidth=0.6)


def within(panel: Any) -> None:
    """Lines at the claimed ±0.1."""
    for height in (-0.1, 0.1):
        panel.axhline(height, color=COLOURS["random"], linewidth=0.8, linestyle="--")
