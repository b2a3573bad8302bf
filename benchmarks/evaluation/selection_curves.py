"""Figures 7 and 8 and what they say: the choice of training tests, ordered against random, beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from replay import Grid

from evaluation.drawing import COLOURS, axes
from evaluation.page import Page
from evaluation.selection_training import SMALL, SMALL_SEEDS, TREES, Curve, Selection, select
from evaluation.setting import Setting
from evaluation.tasks import Task

BEYOND = 2  # standard errors that make a win
COLUMNS = 3
SMALL_TOLD = f"{100 * SMALL:.0f} %"


def write(page: Page, grids: Mapping[Task, Grid], setting: Setting) -> None:
    """Both figures, their tables, the wins, and the claims about them."""
    found = []
    for task, grid in grids.items():
        for part in (grid.sub({grid.axes[-1]: 0}), grid):
            found.append(select(task, part, setting))
            page.say(f"{', '.join(wins(found[-1]))} (ordered better at, random better at)")
    repetitions = len(found[0].ordered.errors)
    seeds = (
        f"seeds 0–{repetitions - 1} of choice and forest; ours: seed 0 and, at 1 %, 0–{setting.times(SMALL_SEEDS) - 1}"
    )
    page.text(
        f"A forest ({setting.times(TREES, 10)} trees) is trained on a share of the tests with all inputs, and predicts "
        f"the rest. Ordered takes tests by their order, at random within it; {repetitions} repetitions, mean ± "
        "standard deviation. At 100 % nothing is left to predict. Both choices leave out as many tests and reproduce "
        "those they were trained on, so that on *all* tests the errors are these times the share left out, and the "
        "winners the same.",
        "Ours is `adaptive` with the process, for as many inferences as the forest's training tests take, and for "
        f"{SMALL_TOLD} of them. The figures show its error on the tests that it measured least, as many as the forest "
        "has to predict; the tables also that on all tests.",
    )
    for dimensions, number in ((3, 7), (4, 8)):
        these = [one for one in found if one.dimensions == dimensions]
        page.figure(
            f"{dimensions}d",
            drawn(these),
            f"Figure {number} of the paper, here: error on the tests left out by the share of tests trained on, "
            f"{dimensions}D ({these[0].tests:,} tests); bands are one standard deviation, vertical lines where Θ≤2 and "
            "Θ≤3 are complete",
            seeds,
        )
        shares = these[0].ordered.shares
        page.text(
            f"MSE × 1000 in {dimensions}D; bold: better than the other choice by more than {BEYOND} standard errors."
        )
        header = ["task", "choice", *(f"{100 * share:.0f} %" for share in shares)]
        page.table(header, [row for one in these for row in rows(one, shares)], seeds)
    page.text(
        f"Who wins, by more than {BEYOND} standard errors of the difference. Ordered choice has to extrapolate to "
        "higher orders, which a forest cannot: see the steps at the vertical lines, where tests of the next order come "
        "in."
    )
    header = ["task", "", "ordered better at", "random better at", "ordered / random / neither"]
    page.table(header, [wins(one) for one in found], seeds)
    budgets = (("ours", "as many inferences"), ("small", f"{SMALL_TOLD} of them"))
    page.text(
        "Ours has a smaller error than the better of both choices "
        + "; ".join(against(found, name, told) for name, told in budgets)
        + ". The least of these budgets, 1 % of 10 % in 3D, is 17 inferences in all for 80 photographs."
    )
    claims(page, found)


def against(found: Sequence[Selection], name: str, told: str) -> str:
    """How often ours is better than both choices of the forest's tests, and where it is not."""
    worse = []
    for one in found:
        ours: Curve = getattr(one, name)
        for share, error in zip(ours.shares, ours.mean, strict=True):
            place = one.ordered.shares.index(share)
            if error >= min(one.ordered.mean[place], one.random.mean[place]):
                worse.append(f"{one.task.title} {one.dimensions}D at {100 * share:.0f} %")
    total = sum(len(one.ours.shares) for one in found)
    return f"with {told} in {total - len(worse)} of {total} (worse: {', '.join(worse) or 'none'})"


def drawn(found: Sequence[Selection]) -> Any:
    """A panel for each task and one for the legend."""
    figure, panels = axes(-(-(len(found) + 1) // COLUMNS), COLUMNS, height=2.1)
    flat = panels.reshape(-1)
    for panel, one in zip(flat, found, strict=False):
        line(panel, one.random, COLOURS["random"], "forest, random choice")
        line(panel, one.ordered, COLOURS["published"], "forest, ordered choice (published)")
        line(panel, one.ours, COLOURS["ours"], "ours, as many inferences", marker="o")
        line(panel, one.small, COLOURS["ours small"], f"ours, {SMALL_TOLD} of them", marker="o")
        for (order, share), style in zip(one.complete.items(), ("--", ":"), strict=True):
            if share < 1:
                panel.axvline(100 * share, color=COLOURS["truth"], lw=0.8, ls=style, label=f"Θ≤{order} complete")
        panel.set(yscale="log", title=one.task.title, xlabel="tests trained on, %", ylabel="MSE")
    for panel in flat[len(found) :]:
        panel.axis("off")
    flat[-1].legend(*flat[0].get_legend_handles_labels(), loc="center")
    return figure


def line(panel: Any, curve: Curve, colour: str, label: str, **options: Any) -> None:
    """A mean with a band of one standard deviation; below a tenth of the mean it ends, the axis being logarithmic."""
    percent = 100 * np.array(curve.shares)
    low = np.maximum(curve.mean - curve.spread, curve.mean / 10)
    panel.fill_between(percent, low, curve.mean + curve.spread, color=colour, alpha=0.25, lw=0)
    panel.plot(percent, curve.mean, color=colour, lw=1.4, ms=3, label=label, **options)


def rows(one: Selection, shares: Sequence[float]) -> list[list[str]]:
    """The lines of one task in the table."""
    lines = {
        "ordered": cells(one.ordered, shares, one.lead > BEYOND),
        "random": cells(one.random, shares, one.lead < -BEYOND),
        "ours, as many": cells(one.ours, shares),
        "– all tests": cells(one.ours_all, shares),
        f"ours, {SMALL_TOLD} of them": cells(one.small, shares),
        "– all tests ": cells(one.small_all, shares),
    }
    return [[one.task.title, name, *line] for name, line in lines.items()]


def cells(curve: Curve, shares: Sequence[float], bold: Any = None) -> list[str]:
    """Mean ± standard deviation in thousandths; a dash where nothing was run."""
    known = dict(zip(curve.shares, zip(1000 * curve.mean, 1000 * curve.spread, strict=True), strict=True))
    told = []
    for place, share in enumerate(shares):
        mean, spread = known.get(share, (None, None))
        text = "–" if mean is None else f"{mean:.3g}" + (f" ± {spread:.2g}" if len(curve.errors) > 1 else "")
        told.append(f"**{text}**" if bold is not None and bold[place] else text)
    return told


def wins(one: Selection) -> list[str]:
    shares = np.array(one.ordered.shares)
    better, worse = one.lead > BEYOND, one.lead < -BEYOND
    count = f"{better.sum()} / {worse.sum()} / {len(shares) - better.sum() - worse.sum()}"
    return [one.task.title, f"{one.dimensions}D", listed(shares[better]), listed(shares[worse]), count]


def listed(shares: Any) -> str:
    """Shares in words.

    >>> listed(np.array([0.1, 0.2, 0.5])), listed(np.array([]))
    ('10, 20, 50 %', '–')
    """
    return ", ".join(f"{100 * share:.0f}" for share in shares) + " %" if len(shares) else "–"


# -- what the paper says of them ---------------------------------------------------------------------------------------


def claims(page: Page, found: Sequence[Selection]) -> None:
    """The claims of section 5.3, each on our models."""
    by_task = {task: [one for one in found if one.task == task] for task in dict.fromkeys(one.task for one in found)}
    for dimensions in (3, 4):
        these = [one for one in found if one.dimensions == dimensions]
        leads = np.concatenate([one.lead for one in these])
        page.claim(
            f"Ordered choice consistently beats random choice, {dimensions}D",
            "“across both 3D and 4D”, all shares",
            f"of {len(leads)} (task, share): ordered better in {(leads > BEYOND).sum()}, random better in "
            f"{(leads < -BEYOND).sum()}, within {BEYOND} standard errors of each other in "
            f"{(np.abs(leads) <= BEYOND).sum()}",
            bool((leads > BEYOND).all()),
        )
    quick = [converged(one.ordered) for one in found]
    page.claim(
        "Ordered choice converges with 20–30 % of the tests",
        "“for most benchmarks”",
        "at 30 %, at least half of the way from the MSE at 10 % to that at 90 % is done in "
        f"{sum(quick)} of {len(quick)} settings",
        None if len(found[0].ordered.shares) < 9 else sum(quick) > len(quick) / 2,
    )
    wider = [bool(one.random.spread[0] > one.ordered.spread[0]) for one in found]
    page.claim(
        "Random choice varies more, above all with few tests",
        "“greater variance”",
        f"larger standard deviation at 10 % in {sum(wider)} of {len(wider)} settings",
        all(wider),
    )
    lower = np.concatenate([four.ordered.mean < three.ordered.mean for three, four in by_task.values()])
    page.claim(
        "At the same share of tests, 4D has a lower MSE than 3D (ordered choice)",
        "“consistently”",
        f"in {lower.sum()} of {len(lower)} (task, share)",
        bool(lower.all()),
    )
    few = {task.title: float(np.mean([one.ordered.mean.mean() for one in ones])) for task, ones in by_task.items()}
    if {"Driving", "QQP", "MNIST", "CIFAR-10"} <= set(few):
        page.claim(
            "Driving and QQP, with far fewer inputs, have lower MSE than MNIST and CIFAR-10",
            "“consistently”",
            "mean of ordered choice over shares, 3D and 4D: "
            + ", ".join(f"{title} {mse:.4f}" for title, mse in few.items()),
            max(few["Driving"], few["QQP"]) < min(few["MNIST"], few["CIFAR-10"]),
        )


def converged(curve: Curve) -> bool:
    """Whether at 30 % at least half of what more tests gain is gained."""
    first, third, last = (curve.mean[min(place, len(curve.mean) - 1)] for place in (0, 2, 8))
    return bool(first - third >= (first - last) / 2)
