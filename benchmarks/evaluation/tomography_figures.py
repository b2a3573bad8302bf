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
        rates = one.whole.by_order
        orders = range(1, len(rates) + 1)
        boxes(panel, rates, orders, [COLOURS["random"]] * len(rates), 0.6)
        panel.set(title=one.task.title, xlabel="order", xticks=orders, ylim=(0, 1.02))
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
            parts = [errors[one.cube.full.query_engine.select(one.cube.queries[name])] for name in names]
            boxes(panel, parts, np.arange(len(names)) + shift, [colour] * len(names), 0.3)
            panel.plot([], [], "s", color=colour, label=method)
        panel.set(ylabel=one.task.title, xticks=range(len(names)), xticklabels=names)
        beside(panel)
        within(panel)
    return figure


def errors_of_queries(tasks: Sequence[Measured]) -> Any:
    """Figure 6, errors of the twelve queries: the published method, and the range over seeds of ours."""
    figure, panels = axes(len(tasks), 1, width=6.4, height=1.4, sharex=True)
    for panel, one in zip(panels[:, 0], tasks, strict=True):
        places = np.arange(len(one.cube.queries))
        found = over(one.in_3d[one.spoken_of], lambda run: run.query_errors)
        panel.bar(places - 0.2, one.in_3d[PARTIAL][0].query_errors, 0.35, color=COLOURS["published"], label=PARTIAL)
        panel.vlines(places + 0.2, found.min(axis=0), found.max(axis=0), color=COLOURS["ours"], linewidth=4)
        panel.plot(places + 0.2, found.mean(axis=0), "_", color=COLOURS["truth"], markersize=7)
        panel.plot([], [], "s", color=COLOURS["ours"], label=one.spoken_of)
        panel.axhline(0, color=COLOURS["truth"], linewidth=0.6)
        panel.set(ylabel=one.task.title, xticks=places, xticklabels=list(one.cube.queries))
        beside(panel)
    return figure


def drops(tasks: Sequence[Measured]) -> Any:
    """Figure 6, predicted drop of the twelve queries: the truth, the published method, and ours with its interval."""
    figure, panels = axes(len(tasks), 1, width=6.4, height=1.4, sharex=True)
    for panel, one in zip(panels[:, 0], tasks, strict=True):
        places = np.arange(len(one.cube.queries))
        theirs, found = (one.in_3d[method][0].queries for method in (PARTIAL, one.spoken_of))
        true, predicted = np.array([(row.truth, row.answer.robustness) for row in theirs]).T - one.cube.clean
        answers = [(row.answer.low, row.answer.robustness, row.answer.high) for row in found]
        low, middle, high = np.array(answers).T - one.cube.clean
        panel.plot(places, true, "_", color=COLOURS["truth"], markersize=14, label="truth")
        panel.plot(places - 0.2, predicted, "o", color=COLOURS["published"], markersize=4, label=PARTIAL)
        panel.plot(places + 0.2, middle, "o", color=COLOURS["ours"], markersize=3, label=f"{one.spoken_of}, 95 %")
        panel.vlines(places + 0.2, low, high, color=COLOURS["ours"])
        panel.set(ylabel=one.task.title, xticks=places, xticklabels=list(one.cube.queries))
        beside(panel)
    return figure


def inferences(tasks: Sequence[Measured]) -> Any:
    """Figure 4: the inferences of each method, and the mean squared error it pays."""
    figure, panels = axes(1, len(tasks), width=1.9, height=2.7, sharey=True)
    for panel, one in zip(panels[0], tasks, strict=True):
        methods = {PARTIAL: COLOURS["published"], **EARLY, one.spoken_of: COLOURS["ours"]}
        used = [1.0, *(mean(one.in_3d[name], lambda run: run.share) for name in methods)]
        squared = [mean(one.in_3d[name], lambda run: np.square(run.errors).mean()) for name in methods]
        paid = ["0", *(f"{1000 * value:.2f}" for value in squared)]
        colours = [COLOURS["random"], *methods.values()]
        panel.bar(range(len(used)), used, color=colours)
        for place, (height, text) in enumerate(zip(used, paid, strict=True)):
            panel.text(place, height * 1.08, text, ha="center", fontsize=5)
        panel.set(title=one.task.title, yscale="log", ylim=(0.005, 3), xticks=range(len(used)))
        panel.set_xticklabels(["full", *methods], rotation=60, ha="right")
    panels[0, 0].set_ylabel("inferences / those of full")
    return figure


def shown(one: Measured) -> dict[str, str]:
    """The methods of Figure 3 and their colours."""
    colours = (COLOURS["published"], EARLY[WINDOW], COLOURS["ours"], COLOURS["ours"], COLOURS["ours small"])
    return dict(zip(one.compared, colours, strict=True))


def boxes(panel: Any, parts: Sequence[Any], places: Sequence[float], colours: Sequence[str], width: float) -> None:
    """Boxes of median and quartiles; whiskers show the full spread, as in the paper."""
    # By hand: matplotlib's own box plot is seven objects to a box, and files of many boxes are large.
    at = np.asarray(places, float)
    least, lower, middle, upper, most = np.array([np.quantile(part, [0, 0.25, 0.5, 0.75, 1]) for part in parts]).T
    panel.vlines(at, least, most, color=COLOURS["truth"], linewidth=0.8, zorder=2)
    panel.bar(at, upper - lower, width, lower, color=colours, edgecolor=COLOURS["truth"], linewidth=0.5, zorder=3)
    panel.hlines(middle, at - width / 2, at + width / 2, color=COLOURS["truth"], linewidth=1, zorder=4)


def beside(panel: Any) -> None:
    """The legend, where it hides nothing."""
    panel.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=7)


def within(panel: Any) -> None:
    """Lines at the claimed ±0.1."""
    for height in (-0.1, 0.1):
        panel.axhline(height, color=COLOURS["random"], linewidth=0.8, linestyle="--")
