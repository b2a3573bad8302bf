"""Failures found against inferences: by chance, worst tests first, ours, and with foresight."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from replay import Grid, replay

from evaluation import drawing
from evaluation.page import Page
from evaluation.setting import MissingFileError, Setting
from evaluation.tasks import TASKS
from testifai.engine.plan import Work
from testifai.runs.outcomes import Outcomes
from testifai.session.hunting import ROUNDS, hunted
from testifai.support.bits import unpack
from testifai.tomogram import Tomogram

SHARE = 0.01  # of all inferences, for the run that a hunt starts from; as much again for the hunt
MILD = 2  # the highest severity of each axis in the mild region
SEEDS = 5
STYLES = {"chance": "random", "worst tests first": "third", "ours": "ours", "foresight": "truth"}


@dataclass(frozen=True)
class Hunted:
    """A grid, the run on it, and the tests to hunt in."""

    grid: Grid
    run: Tomogram
    query: str
    once: bool

    @property
    def budget(self) -> int:
        return self.run.inferences

    def truth(self) -> tuple[NDArray[np.intp], NDArray[np.bool_], NDArray[np.bool_]]:
        """The tests of the query; (tests × places) which trials fail, and which the run has tried."""
        ids, places = np.flatnonzero(self.run.select(self.query)), np.arange(self.grid.inputs)
        rows = self.grid.passes.reshape(self.run.space.size, -1)[ids]
        fails = ~unpack(rows, self.grid.inputs)[:, self.run.order]
        return ids, fails, np.stack([self.run.outcomes.attempted(int(test), places) for test in ids])

    def ours(self) -> list[int]:
        """Failures (or inputs that failed) after each round of a hunt."""

        def measure(work: Work, found: Outcomes) -> None:
            for test, places in zip(work.configurations.tolist(), work.places, strict=True):
                found.record(test, places, self.grid.passed(test, self.run.order[places]))

        found = hunted(self.run, measure, self.budget, self.query, once=self.once)
        ends = [point[2 if self.once else 1] for point in found.curve]
        return ends + [ends[-1]] * (ROUNDS - len(ends))

    def fixed(self, ranked: Callable[[NDArray[np.bool_]], NDArray[np.floating[Any]]]) -> list[int]:
        """The same in an order fixed beforehand, f(fails) -> (tests × places) what comes first has most."""
        _, fails, known = self.truth()
        order = np.argsort(-np.where(known, -np.inf, ranked(fails)), axis=None, kind="stable")
        order = order[: int((~known).sum())]
        failed = fails.ravel()[order]
        if self.once:
            places, done = order % self.grid.inputs, np.zeros(self.grid.inputs, bool)
            done[(fails & known).any(axis=0)] = True  # the run itself has found these
            kept = np.fromiter(_still_open(places, failed, done), bool, len(order))
            failed = failed[kept]
        ends = np.linspace(0, self.budget, ROUNDS + 1)[1:].astype(int)
        reached = np.cumsum(failed)
        return [int(reached[min(end, len(reached)) - 1]) for end in ends]


def _still_open(places: NDArray[np.intp], failed: NDArray[np.bool_], done: NDArray[np.bool_]) -> Iterator[bool]:
    """Which trials are run where an input is left alone once it has failed."""
    for place, bad in zip(places.tolist(), failed.tolist(), strict=True):
        yield not done[place]
        done[place] |= bad


def curves(hunt: Hunted, seed: int) -> dict[str, list[int]]:
    random = np.random.default_rng(seed)
    rates = 1 - np.asarray(hunt.run.estimate).reshape(-1)[np.flatnonzero(hunt.run.select(hunt.query))]

    def noise(fails: NDArray[np.bool_]) -> NDArray[np.floating[Any]]:
        return random.random(fails.shape)

    return {
        "chance": hunt.fixed(noise),
        "worst tests first": hunt.fixed(lambda fails: rates[:, None] + 1e-9 * noise(fails)),
        "ours": hunt.ours(),
        "foresight": hunt.fixed(lambda fails: fails + 0.5 * noise(fails)),
    }


def write(page: Page, setting: Setting) -> None:
    with page.part("Failures found fastest: inputs prioritised by difficulty"):
        page.text(
            f"From a run of {SHARE:.0%} of all inferences (adaptive, random inputs) a hunt spends as many again on the "
            "trials likeliest to fail: logit P(failure) = severity of the test (from the run's estimate) + difficulty "
            f"of the input (from its trials so far), updated in {ROUNDS} rounds. Beside it: trials at random, the "
            "tests with the highest estimated failure rate first, and foresight, which only runs trials that "
            f"fail. Twice in the region of severities up to {MILD} on every axis: all failing trials, and inputs that "
            "fail anywhere in it (the worst case, input by input; each is left alone once it has failed). Once in the "
            "whole cube. What a hunt finds stays apart from the run: its estimates and intervals do not change."
        )
        _compared(page, setting)


def _compared(page: Page, setting: Setting) -> None:
    found: dict[tuple[str, str], list[dict[str, list[int]]]] = {}
    missing = []
    for task in TASKS:
        try:
            grid = task.cube(setting)
        except MissingFileError as error:
            missing.append(str(error))
            continue
        for seed in range(setting.times(SEEDS)):
            run = replay(grid, "adaptive", budget=int(SHARE * grid.truth.size * grid.inputs), seed=seed)
            mild = " and ".join(f"{axis} <= {MILD}" for axis in grid.axes)
            for name, query, once in (
                ("mild, trials", mild, False),
                ("mild, inputs", mild, True),
                ("all, trials", "order >= 0", False),
            ):
                found.setdefault((task.title, name), []).append(curves(Hunted(grid, run, query, once), seed))
        page.say(f"hunted in {task.title}")
    if not found:
        raise MissingFileError(", ".join(missing))
    for line in missing:
        page.missing.append(f"Failures found fastest: {line}")
    seeds = f"seeds 0–{setting.times(SEEDS) - 1}"
    _table(page, found, seeds)
    _figure(page, found, seeds)


def _table(page: Page, found: dict[tuple[str, str], list[dict[str, list[int]]]], seeds: str) -> None:
    rows = []
    better: dict[bool, list[float]] = {False: [], True: []}
    for (task, name), runs in found.items():
        ends = {method: np.array([run[method][-1] for run in runs]) for method in STYLES}
        quick = np.mean([_reaches(run["ours"], run["worst tests first"][-1]) for run in runs])
        cells = [f"{ends[method].mean():,.0f} ± {ends[method].std(ddof=1):,.0f}" for method in STYLES]
        ratios = [ends["ours"].mean() / ends[method].mean() for method in ("chance", "worst tests first")]
        rows.append([task, name, *cells, *(f"{ratio:.2f} ×" for ratio in ratios), f"{quick:.0%}"])
        better[name.endswith("inputs")].append(ratios[1])
    header = ["task", "region, counted", *STYLES, "ours / chance", "ours / worst first", "budget for its failures"]
    page.table(header, rows, seeds)
    page.text(
        "The last column: the share of the budget at which ours has found as many as the worst tests first find with "
        "all of it. Which inputs fail anywhere in a region is decided by its worst tests: once these are tried, "
        "knowing hard inputs adds little."
    )
    page.claim(
        "input-level prioritisation can complement the tomography where worst cases are sought",
        "future work",
        f"failing trials: {_span(better[False])} times those of the worst tests first at equal inferences; inputs that "
        f"fail anywhere: {_span(better[True])} times",
        min(better[False]) > 1,
    )


def _span(ratios: list[float]) -> str:
    return f"{min(ratios):.2f} to {max(ratios):.2f}"


def _reaches(curve: list[int], goal: int) -> float:
    """The share of the budget after which a curve is at the goal; 1 where it never is."""
    there = [place for place, value in enumerate(curve) if value >= goal]
    return (there[0] + 1) / len(curve) if there else 1.0


def _figure(page: Page, found: dict[tuple[str, str], list[dict[str, list[int]]]], seeds: str) -> None:
    tasks = list(dict.fromkeys(task for task, _ in found))
    names = [name for name in dict.fromkeys(name for _, name in found) if name.startswith("mild")]
    figure, grid = drawing.axes(len(names), len(tasks), width=2.6, height=2.0)
    steps = np.arange(ROUNDS + 1) / ROUNDS * 100 * SHARE
    for row, name in enumerate(names):
        for column, task in enumerate(tasks):
            axes = grid[row, column]
            for method, style in STYLES.items():
                mean = np.mean([run[method] for run in found[task, name]], axis=0)
                line = "--" if method == "foresight" else "-"
                axes.plot(steps, [0, *mean], line, color=drawing.COLOURS[style], label=method, linewidth=1.2)
            axes.set_title(f"{task}: {name}", fontsize=8)
            axes.set_xlabel("inferences, % of all")
    grid[0, 0].legend(fontsize=7)
    grid[0, 0].set_ylabel("failures found")
    page.figure("hunting", figure, "Failures found against inferences, means over the seeds", seeds)
