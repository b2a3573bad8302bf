"""The first paper (TestifAI, partial model tomography): its tables and figures on all five tasks, and ours beside."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation import tomography_figures as figures
from evaluation import tomography_tables as tables
from evaluation.page import Page
from evaluation.setting import MissingFileError, Setting
from evaluation.tasks import TASKS
from evaluation.tomography_claims import as_published, claim
from evaluation.tomography_runs import (
    CLOSE_QUERY,
    CUMULATIVE,
    EQUAL,
    PARTIAL,
    STOPPING,
    WINDOW,
    Measured,
    batch_of,
    measured,
)

SEEDS_3D, SEEDS_4D = 10, 5
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
        page.text(where_theirs_is_better(tasks))
    with page.part("Table 2 and Figure 6: twelve queries in 3D"):
        caption = "Error of each query: `partial`, and the range over all seeds of ours (line: mean)."
        page.figure("figure6_errors", figures.errors_of_queries(tasks), caption, in_3d)
        caption = "Drop of each query, i.e. predicted rate − clean accuracy; ours with its 95 % interval."
        page.figure("figure6_drops", figures.drops(tasks), caption, first)
        page.text("`partial`: tests measured (m) and inferred (ℓ), and the error of each query:")
        page.table(*tables.published_queries(tasks), first)
        page.text(f"Ours: mean absolute error · largest · share of the seeds within ±{CLOSE_QUERY}:")
        page.table(*tables.our_queries(tasks), in_3d)
        page.text(
            "At 1 % of 10,000 inputs an octant gets about an eighth of 21,600 inferences; a rate of one half from as "
            "many has a standard error of 0.0096. Single runs beyond ±0.01 are to be expected."
        )
        page.text("All twelve together:")
        page.table(*tables.queries_by_method(tasks), in_3d)
        page.text("Drop of accuracy: true · `partial` · ours, at the share above:")
        page.table(*tables.drops(tasks), first)
    with page.part("Figure 4: inferences, and what they buy"):
        caption = (
            "Inferences as a share of full tomography's; above each bar 1,000 × the mean squared error of all tests."
        )
        page.figure("figure4", figures.inferences(tasks), caption, in_3d)
        page.table(*tables.inferences(tasks), in_3d)
        page.text(
            stopping(tasks),
            readings(tasks),
            "By task, with the mean absolute error on order 3:\n\n" + "\n".join(map(costs, tasks)),
        )
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


def where_theirs_is_better(tasks: Sequence[Measured]) -> str:
    """On which tasks the published method errs less on order 3 than ours, and what may be behind it."""
    told = []
    for one in tasks:
        ours = (EQUAL, one.spoken_of)
        worse = [f"`{name}`" for name in ours if tables.error(one, name) > tables.error(one, PARTIAL)]
        if worse:
            axis, effect = one.cube.weakest
            told.append(
                f"On {one.task.title} ({one.inputs:,} inputs) `partial` errs less on order 3 than "
                f"{' and '.join(worse)}; its weakest axis, {axis}, changes rates by {effect:.4f} on average."
            )
    return " ".join(told) or "On no task does `partial` err less on order 3 than ours."


def stopping(tasks: Sequence[Measured]) -> str:
    """The readings of Algorithm 1."""
    batches = [f"{one.task.title}: {batch_of(one.inputs)}" for one in tasks if batch_of(one.inputs) < 100]
    smaller = f" Below 1,000 inputs a batch is a tenth of them ({', '.join(batches)})." if batches else ""
    return (
        "Algorithm 1 ends a test once three successive differences of a rate are below 0.005. As printed, it is the "
        "rate of each batch of 100 (`window`): four batches in a row must then have equal counts, which hardly happens "
        "unless the rate is near 0 or 1. It can also be read as the rate of all inputs so far (`window-cumulative`), "
        "which settles after a few batches whatever the test. `interval` is our rule: end once an interval that allows "
        f"for being looked at is ± 0.02 wide.{smaller}"
    )


def readings(tasks: Sequence[Measured]) -> str:
    """Whether a reading saves what the paper says."""
    same = {rule: as_published(tasks, rule) for rule in (WINDOW, CUMULATIVE)}
    neither = all(len(titles) < len(tasks) for titles in same.values())
    told = " and ".join(f"`{rule}` on {', '.join(titles) or 'no task'}" for rule, titles in same.items())
    return (
        "Neither reading gives the published savings on all tasks. " if neither else ""
    ) + f"Within a point of them are, of {len(tasks)} tasks, {told}."


def costs(one: Measured) -> str:
    """What each way to stop early saves on a task, and what it costs."""
    parts = [
        f"`{rule}` saves {tables.saved(one, rule):.2%} ({100 * tables.stopped(one, rule):.2f} points by stopping) and "
        f"changes the error by {tables.error(one, rule) - tables.error(one, PARTIAL):+.4f}"
        for rule in STOPPING
    ]
    return f"- {one.task.title} (paper: {tables.SAVED[one.task.name]:.2%}): " + "; ".join(parts)


def said(seeds: int) -> str:
    """Which seeds are behind a figure."""
    return "seed 0" if seeds == 1 else f"seeds 0–{seeds - 1}"
