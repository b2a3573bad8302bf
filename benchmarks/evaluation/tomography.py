"""The first paper (TestifAI, partial model tomography): its tables and figures on all five tasks, and ours beside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evaluation import tomography_figures as figures
from evaluation import tomography_tables as tables
from evaluation.page import Page
from evaluation.setting import MissingFileError, Setting
from evaluation.tasks import TASKS
from evaluation.tomography_claims import claim
from evaluation.tomography_runs import (
    CLOSE_QUERY,
    CUMULATIVE,
    INTERVAL,
    PARTIAL,
    WINDOW,
    Measured,
    batch_of,
    mean,
    measured,
)

SEEDS_3D, SEEDS_4D = 20, 5
NO_CHANCE = "no chance in it"


def write(page: Page, setting: Setting) -> None:
    """The section."""
    page.title("TestifAI: partial model tomography")
    seeds_3d, seeds_4d = setting.times(SEEDS_3D), setting.times(SEEDS_4D, 1)
    page.text(
        "Five tasks with our models in place of theirs; every outcome of every test is recorded, so the truth (full "
        "tomography) is known. `partial` is the paper's method: all tests of order ≤ 2 on all inputs, a random forest "
        "for the others; with early stopping it goes by the name of its rule. `ours` is the adaptive strategy with "
        "its process, at a share of full tomography's inferences; `equal` is as many as `partial` takes."
    )
    tasks = available(page, setting, seeds_3d, seeds_4d)
    in_3d, in_4d, first = said(seeds_3d), said(seeds_4d), said(1)
    with page.part("Table 1: tasks"):
        page.table(*tables.benchmarks(tasks), NO_CHANCE)
    if not tasks:
        return
    claim(page, tasks)
    with page.part("Figure 2: true rates by order"):
        caption = "True pass rates of all tests by order; boxes are quartiles, whiskers the full spread."
        page.figure("figure2", figures.by_order(tasks), caption, NO_CHANCE)
        page.text("Mean ± standard deviation (least) over the tests of an order:")
        page.table(*tables.rates_by_order(tasks), NO_CHANCE)
    with page.part("Figure 3: errors of the 216 tests in 3D"):
        page.figure("figure3", figures.errors_of_tests(tasks), "Errors of all tests; dashed: ±0.1.", first)
        page.figure("figure3_queries", figures.errors_by_query(tasks), "Errors of the tests of each query.", first)
        page.table(*tables.errors_of_tests(tasks), in_3d)
        page.text(*map(bias, tasks))
    with page.part("Table 2 and Figure 6: twelve queries in 3D"):
        caption = (
            "Left: error of each query. Right: drop, i.e. predicted rate − clean accuracy, of the published method "
            "(circles) and ours with its 95 % interval (seed 0)."
        )
        page.figure("figure6", figures.queries(tasks), caption, in_3d)
        page.text("`partial`: tests measured (m) and inferred (ℓ), and the error of each query:")
        page.table(*tables.published_queries(tasks), first)
        page.text(f"Ours: mean absolute error · largest · share of the seeds within ±{CLOSE_QUERY}:")
        page.table(*tables.our_queries(tasks), in_3d)
        page.text("All twelve together:")
        page.table(*tables.queries_by_method(tasks), in_3d)
        page.text("Drop of accuracy: true · `partial` · ours, at the share above:")
        page.table(*tables.drops(tasks), first)
    with page.part("Figure 4: inferences, and what they buy"):
        caption = "Inferences as a share of full tomography's; above each bar the mean squared error of all tests."
        page.figure("figure4", figures.inferences(tasks), caption, in_3d)
        page.table(*tables.inferences(tasks), in_3d)
        page.text(stopping(tasks), *map(readings, tasks))
    with page.part("Four dimensions: 1,296 tests"):
        page.table(*tables.four_dimensions(tasks), in_4d)


def available(page: Page, setting: Setting, seeds_3d: int, seeds_4d: int) -> list[Measured]:
    """The tasks whose grids are there, replayed; a line for each that is not."""
    found = []
    for task in TASKS:
        try:
            found.append(measured(task, setting, seeds_3d, seeds_4d))
            page.say(f"{task.title} replayed")
        except MissingFileError as error:
            page.missing.append(f"{task.title}: {error}")
            page.text(f"*Not run: {task.title}: {error} not found.*")
    return found


def bias(one: Measured) -> str:
    """To which side the forest errs."""
    errors = one.in_3d[PARTIAL][0].high
    return (
        f"{one.task.title}: `partial` is off by {errors.mean():+.3f} on average on order 3 and too optimistic on "
        f"{(errors > 0).mean():.0%} of these tests (the most by {errors.max():+.3f}, the least by {errors.min():+.3f})."
    )


def stopping(tasks: Sequence[Measured]) -> str:
    """The readings of Algorithm 1."""
    batches = [f"{one.task.title}: {batch_of(one.inputs)}" for one in tasks if batch_of(one.inputs) < 100]
    return (
        "Algorithm 1 ends a test once three successive differences of a rate are below 0.005. As printed, it is the "
        "rate of each batch of 100 (`window`): four batches in a row must then have equal counts, which hardly happens "
        "unless the rate is near 0 or 1. It can also be read as the rate of all inputs so far (`window-cumulative`), "
        "which settles after a few batches whatever the test. `interval` is our rule: end once an interval that allows "
        "for being looked at is ± 0.02 wide."
        + (
            f" Where there are fewer than 1,000 inputs, a batch is a tenth of them ({', '.join(batches)})."
            * bool(batches)
        )
    )


def readings(one: Measured) -> str:
    """What each way to stop early saves on a task, and what it costs."""
    rest = np.abs(one.in_3d[PARTIAL][0].high).mean()
    parts = [
        f"`{rule}` {mean(one.in_3d[rule], lambda run: run.saved):.2%}, of which {100 * tables.stopped(one, rule):.2f} "
        f"points by stopping, mean absolute error on order 3 "
        f"{mean(one.in_3d[rule], lambda run: np.abs(run.high).mean()) - rest:+.4f}"
        for rule in (WINDOW, CUMULATIVE, INTERVAL)
    ]
    published = tables.SAVED[one.task.name]
    return f"{one.task.title} (the paper saves {published:.4g}): " + "; ".join(parts) + "."


def said(seeds: int) -> str:
    """Which seeds are behind a figure."""
    return "seed 0" if seeds == 1 else f"seeds 0–{seeds - 1}"
