"""r of DeepEST chosen from the first labels, beside the published 0.8."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evaluation import drawing
from evaluation.operational_subjects import SUBJECTS, Subject, published, recorded
from evaluation.operational_trials import Arm, Trials, measure
from evaluation.page import Page
from evaluation.setting import MissingFileError, Setting

TESTS = 200
REPETITIONS = 300
TECHNIQUES = ("confidence", "combined")
OWN = ("mnist", "cifar10", "gtsrb")
ARMS = {"r = 0.8": 0.8, "auto": "auto"}


def write(page: Page, setting: Setting) -> None:
    with page.part("r of DeepEST, chosen from the first labels"):
        page.text(
            'DeepEST sends r = 0.8 of its draws to suspicious examples. `share = "auto"` draws a fifth of the labels '
            "with r = 0.5, fits a curve of failure rates over the ranks of the risks to them, and draws the rest with "
            "the largest r whose estimate is expected to be as good as that of simple random sampling (SRS). Each "
            "draw's chance is known given those before it, labels included, so Eq. 6 holds draw by draw and the "
            "estimate stays unbiased: the bias found is given in standard errors of its mean. Error: mean squared "
            f"error over that of SRS, with its standard error. {TESTS} labels."
        )
        rows, found = [], []
        for subject in _subjects(page, setting):
            for technique in TECHNIQUES:
                pair = {
                    name: measure(
                        subject, Arm(name, technique, {"share": share}), TESTS, setting.times(REPETITIONS, 20)
                    )
                    for name, share in ARMS.items()
                }
                rows.append(
                    [subject.title, technique, *(cell for one in pair.values() for cell in _cells(subject, one))]
                )
                found.append((subject, technique, pair))
            page.say(f"shares on {subject.title}")
        if not rows:
            raise MissingFileError("DeepEST's tables and our own streams")
        seeds = f"seeds 0–{setting.times(REPETITIONS, 20) - 1}"
        parts = ("failures", "error / SRS", "coverage", "bias")
        header = ["subject", "technique", *(f"{part}, {name}" for name in ARMS for part in parts)]
        page.table(header, rows, seeds)
        _said(page, found)
        _figure(page, found, seeds)
        _claims(page, found)


def _subjects(page: Page, setting: Setting) -> Iterator[Subject]:
    """Those whose files are there; the others are named at the end."""
    for name in SUBJECTS:
        try:
            yield published(setting.file(f"reference/deepest/{name}.csv"))
        except MissingFileError as error:
            page.missing.append(f"r of DeepEST: {error}")
    for name in OWN:
        try:
            yield recorded(setting.grid(f"operational_{name}.npz"))
        except MissingFileError as error:
            page.missing.append(f"r of DeepEST: {error}")


def _said(page: Page, found: list[tuple[Subject, str, dict[str, Trials]]]) -> None:
    held = [pair["auto"].mse - 2 * pair["auto"].mse_error <= subject.simple(TESTS) for subject, _, pair in found]
    page.text(
        f"The error of auto is that of SRS or less, within two standard errors, in {sum(held)} of {len(held)} rows; "
        "failures are what it pays with."
    )
    for technique in TECHNIQUES:
        if _in_vain(found, technique):
            page.text(f"With `{technique}`, 0.8 is no worse than SRS on most subjects: there auto is of little use.")


def _in_vain(found: list[tuple[Subject, str, dict[str, Trials]]], technique: str) -> bool:
    """Whether the published share is no worse than simple random sampling on most subjects."""
    fixed = [pair["r = 0.8"].mse <= subject.simple(TESTS) for subject, used, pair in found if used == technique]
    return sum(fixed) > len(fixed) / 2


def _cells(subject: Subject, trials: Trials) -> list[str]:
    simple = subject.simple(TESTS)
    return [
        f"{trials.found:.1f}",
        f"{trials.mse / simple:.2f} ± {trials.mse_error / simple:.2f}",
        f"{trials.coverage:.3f}",
        f"{_bias(trials):+.1f}",
    ]


def _bias(trials: Trials) -> float:
    """The mean error in its standard errors."""
    spread = trials.accuracy.std(ddof=1) / np.sqrt(len(trials.accuracy))
    return float((trials.accuracy.mean() - trials.truth) / spread) if spread > 0 else 0.0


def _claims(page: Page, found: list[tuple[Subject, str, dict[str, Trials]]]) -> None:
    errors = {name: [pair[name].mse / subject.simple(TESTS) for subject, _, pair in found] for name in ARMS}
    gains = [pair["auto"].found / (TESTS * subject.rate) for subject, _, pair in found]
    worst = max(abs(_bias(pair["auto"])) for _, _, pair in found)
    spans = {name: f"{min(some):.2f} to {max(some):.2f}" for name, some in errors.items()}
    page.claim(
        "r = 0.8 balances failures found and the estimate",
        "r fixed by hand",
        f"error over SRS: {spans['r = 0.8']} with r = 0.8, {spans['auto']} with auto, which finds {min(gains):.1f} to "
        f"{max(gains):.1f} times the failures of SRS",
        max(errors["r = 0.8"]) <= 1.25,
    )
    page.claim(
        "the estimate is unbiased, also with r chosen from labels",
        "Eq. 6, for a fixed r",
        f"largest bias in {len(found)} rows: {worst:.1f} standard errors",
        worst < 3.5,
    )


def _figure(page: Page, found: list[tuple[Subject, str, dict[str, Trials]]], seeds: str) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    figure, grid = drawing.axes(1, len(TECHNIQUES), width=4.2, height=2.8, sharey=True)
    for axes, technique in zip(grid[0], TECHNIQUES, strict=True):
        for subject, used, pair in found:
            if used == technique:
                points = [
                    (one.found / (TESTS * subject.rate), one.mse / subject.simple(TESTS)) for one in pair.values()
                ]
                axes.plot(*zip(*points, strict=True), color=drawing.COLOURS["random"], linewidth=0.8)
                for style, point in zip(("published", "ours"), points, strict=True):
                    axes.plot(*point, "o", color=drawing.COLOURS[style], markersize=4)
        axes.axhline(1, color=drawing.COLOURS["truth"], linewidth=0.8, linestyle=":")
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_locator(NullLocator())
        axes.set_title(technique)
        axes.set_xlabel("failures found, times those of SRS")
    grid[0, 0].set_ylabel("error, times that of SRS")
    for style, name in (("published", "r = 0.8"), ("ours", "auto")):
        grid[0, 0].plot([], [], "o", color=drawing.COLOURS[style], label=name)
    grid[0, 0].legend()
    page.figure("shares", figure, "Failures against error, a line for each subject; dotted: as good as SRS", seeds)
