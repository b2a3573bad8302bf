"""The paper's questions about random levels (RQ2.3), the number of points (RQ3) and the curvature (RQ4)."""

from __future__ import annotations

import itertools

import numpy as np

from evaluation import sweeps_published
from evaluation.drawing import COLOURS, axes
from evaluation.page import Page
from evaluation.setting import Setting
from evaluation.sweeps_methods import CURVATURE, THRESHOLD
from evaluation.sweeps_records import Recorded, read
from testifai.sweeps import sweep

REPETITIONS = 100
RANDOM = (8, 16, 32, 64, 128, 256, 512)
POINTS = (16, 32, 64, 128, 256, 512, 1024)
CURVATURES = (2, 8, 32, 128, 512)


def write(page: Page, setting: Setting) -> None:
    """Three parts, on the second data set as in the paper; the unit of the curvature on the 16 published curves."""
    with page.part("RQ2.3: random levels, 100 repetitions"):
        _random(page, setting, read(setting.grid("sweep_resnet20_paper.npz")))
    with page.part("RQ3 and RQ4: the number of points n and the curvature â"):
        _parameters(page, read(setting.grid("sweep_resnet20_paper.npz")))
    with page.part("The unit of the curvature: the 16 published curves"):
        _units(page, setting)


def _random(page: Page, setting: Setting, recorded: dict[str, Recorded]) -> None:
    repetitions = setting.times(REPETITIONS)
    figure, ((left, right),) = axes(1, 2)
    spreads = {}
    for name, one in recorded.items():
        found = [
            sweep(one.curve, *one.span, THRESHOLD, points=count, method="random", repetitions=repetitions)
            for count in RANDOM
        ]
        spreads[name] = [100 * each.spread for each in found]
    for place, panel in (("brightness", left), ("blur", right)):
        one, spread = recorded[place], np.array(spreads[place])
        middle = 100 * one.robustness(THRESHOLD)
        panel.axhline(middle, color=COLOURS["truth"], linewidth=0.8, label="truth")
        panel.fill_between(RANDOM, middle - spread, middle + spread, color=COLOURS["random"], alpha=0.5, label="± s.d.")
        asap = sweep(one.curve, *one.span, THRESHOLD, CURVATURE)
        panel.plot([asap.evaluations], [100 * asap.robustness], "o", color=COLOURS["published"], label="ASAP, â = 128")
        ours = sweep(one.curve, *one.span, THRESHOLD, "auto")
        panel.plot([ours.evaluations], [100 * ours.robustness], "s", color=COLOURS["ours"], label="ours")
        panel.set(title=place, xlabel="levels", ylabel="robustness, %", xscale="log")
    right.legend()
    page.figure(
        "random", figure, "Figure 7: random levels on ResNet-20, and what ASAP and ours find with how many levels.",
        f"seeds 0–{repetitions - 1}",
    )  # fmt: skip
    rows = [
        [name, f"{100 * recorded[name].robustness(THRESHOLD):.2f}", *(f"{one:.2f}" for one in spread)]
        for name, spread in spreads.items()
    ]
    page.table(["alteration", "truth", *(f"n = {count}" for count in RANDOM)], rows, f"seeds 0–{repetitions - 1}")
    page.text("Standard deviation of the robustness from n random levels, in percentage points.")
    settled = [max(spread) for name, spread in spreads.items() if recorded[name].robustness(THRESHOLD) in (0.0, 1.0)]
    other = [spread[2] for name, spread in spreads.items() if 0 < recorded[name].robustness(THRESHOLD) < 1]
    page.claim(
        "random levels vary much unless robustness is near 0 or 100 %", "shown for two alterations",
        f"s.d. at n = {RANDOM[2]}: {min(other):.1f}–{max(other):.1f} points, 0.0 where it is 100 %",
        bool(other) and min(other) > 1 and max(settled, default=0.0) == 0,
    )  # fmt: skip


def _parameters(page: Page, recorded: dict[str, Recorded]) -> None:
    figure, ((first, second, third),) = axes(1, 3)
    colours = [COLOURS[name] for name in ("truth", "published", "ours", "ours small", "other", "another", "third")]
    for colour, (name, one) in zip(colours, recorded.items(), strict=False):
        used = [sweep(one.curve, *one.span, THRESHOLD, 2, points).evaluations for points in POINTS]
        first.plot(POINTS, used, color=colour, label=name)
    first.set(title="â = 2", xlabel="n", ylabel="levels used", xscale="log")
    first.legend(fontsize=6)
    # The paper shows gaussian noise; under it our accuracy only falls, and the curvature changes nothing.
    chosen = recorded["horizontal trans."]
    rows, growing = [], True
    for colour, curvature in zip(colours, CURVATURES, strict=False):
        found = [sweep(chosen.curve, *chosen.span, THRESHOLD, curvature, points) for points in POINTS]
        second.plot(POINTS, [one.evaluations for one in found], color=colour, label=f"â = {curvature}")
        third.plot(POINTS, [100 * one.robustness for one in found], color=colour)
        growing &= all(a.evaluations <= b.evaluations for a, b in itertools.pairwise(found))
        error = [
            np.mean(
                [
                    abs(
                        sweep(one.curve, *one.span, THRESHOLD, curvature, points).robustness - one.robustness(THRESHOLD)
                    )
                    for one in recorded.values()
                ]
            )
            for points in POINTS
        ]
        rows.append([f"â = {curvature}", *(f"{100 * each:.2f}" for each in error)])
    second.set(title="horizontal trans.", xlabel="n", ylabel="levels used", xscale="log")
    second.legend(fontsize=6)
    third.axhline(100 * chosen.robustness(THRESHOLD), color=COLOURS["truth"], linewidth=0.8, linestyle=":")
    third.set(title="horizontal trans.", xlabel="n", ylabel="robustness, %", xscale="log")
    page.figure(
        "parameters", figure, "Figures 8 to 10: levels used and robustness against n and â (ResNet-20; dotted: truth).",
        "no chance in it",
    )  # fmt: skip
    ours = [sweep(one.curve, *one.span, THRESHOLD, "auto", points) for points in POINTS for one in recorded.values()]
    truths = [one.robustness(THRESHOLD) for _ in POINTS for one in recorded.values()]
    errors = np.abs([one.robustness - truth for one, truth in zip(ours, truths, strict=True)]).reshape(len(POINTS), -1)
    rows.append(["ours (auto)", *(f"{100 * each:.2f}" for each in errors.mean(axis=1))])
    page.table(["mean error", *(f"n = {points}" for points in POINTS)], rows, "no chance in it")
    page.text("Mean absolute error over the seven alterations of ResNet-20, in percentage points.")
    page.claim("more points and a larger curvature use more levels", "yes", "yes" if growing else "not always", growing)


def _units(page: Page, setting: Setting) -> None:
    curves = sweeps_published.curves(setting.file("reference/asap"))
    rows, dear, used = [], 0, []
    for name, one in curves.items():
        low, high = float(one.levels[0]), float(one.levels[-1])

        def curve(level: float, one: sweeps_published.Curve = one) -> float:
            return float(np.interp(level, one.levels, one.accuracies))

        truth = float(np.mean(one.dense(100_001) >= THRESHOLD))
        as_it_is = sweep(curve, low, high, THRESHOLD, CURVATURE)
        rescaled = sweep(curve, low, high, THRESHOLD, CURVATURE / (high - low) ** 2)
        ours = sweep(curve, low, high, THRESHOLD, "auto")
        dear += as_it_is.evaluations > 2000
        used.append(ours.evaluations / rescaled.evaluations)
        cells = [
            cell
            for found in (as_it_is, rescaled, ours)
            for cell in (
                f"{found.evaluations:,}",
                f"{100 * (found.robustness - truth):+.2f}",
                f"{100 * found.bound:.2f}",
            )
        ]
        rows.append([name, f"{low:g} … {high:g}", f"{100 * truth:.2f}", *cells])
    header = ["published curve", "levels", "truth", "â = 128 per level²: levels", "error", "bound"]
    page.table(
        [*header, "â = 128 on 0..1: levels", "error", "bound", "ours (auto, either way): levels", "error", "bound"],
        rows, "no chance in it",
    )  # fmt: skip
    page.text(
        "These are curves that the authors published with an earlier study (CNNRobustnessEvaluation: breast cancer "
        "images, a network trained with and without augmentation), not the curves behind Tables I and II; straight "
        f"lines between their records are taken for the truth. With â per level unit, {dear} of {len(curves)} take "
        "more than 2,000 levels, those whose levels span 100 or more: â means something only beside a span. Ours has "
        f"no such parameter and takes {min(used):.2f} to {max(used):.2f} times the levels of â = 128 on 0..1 "
        f"({np.mean(used):.2f} in the mean)."
    )
