"""The tables of the first paper's section: rows for the page, of all tasks that could be replayed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evaluation.tasks import TASKS
from evaluation.tomography_runs import CLOSE_QUERY, CUMULATIVE, PARTIAL, STOPPING, WINDOW, Floats, Measured, mean, over
from testifai.statistics.intervals import wilson

Table = tuple[list[str], list[list[Any]]]  # header and rows
Tasks = Sequence[Measured]

# The share of full tomography's inferences that the paper saves, with early stopping and without.
SAVED = {"mnist": 0.727, "cifar10": 0.616, "driving": 0.7315, "gtsrb": 0.83, "qqp": 0.58}
SAVED_PARTIAL = 0.58
NONE = "–"


def benchmarks(tasks: Tasks) -> Table:
    """Table 1."""
    accuracy = {one.task.name: clean_accuracy(one) for one in tasks}
    header = ["task", "perturbations", "ours", "accuracy (95 %)", "the paper's", "accuracy"]
    return header, [
        [
            task.title, ", ".join(task.axes), f"{task.model}; {task.data}", accuracy.get(task.name, NONE),
            f"{task.their_model}; {task.their_data}", f"{task.their_accuracy:.1%}",
        ]
        for task in TASKS
    ]  # fmt: skip


def clean_accuracy(one: Measured) -> str:
    """With its interval for inputs like these."""
    low, high = wilson(round(one.cube.clean * one.inputs), one.inputs)
    return f"{one.cube.clean:.1%} ({low:.1%} to {high:.1%})"


def rates_by_order(tasks: Tasks) -> Table:
    """Figure 2 in numbers."""
    header = ["task", *(f"order {order}" for order in range(1, len(tasks[0].whole.grid.axes) + 1))]
    return header, [
        [
            one.task.title,
            *(f"{rates.mean():.3f} ± {rates.std():.3f} ({rates.min():.3f})" for rates in one.whole.by_order),
        ]
        for one in tasks
    ]


def errors_of_tests(tasks: Tasks) -> Table:
    """Figure 3 in numbers."""
    header = [
        "task, method", "inferences", "within ±0.1", "mean abs. error", "order 3: mean abs. error",
        "order 3: mean error", "order 3: too optimistic", "largest", "95 % intervals hold",
    ]  # fmt: skip
    return header, [
        [
            f"{one.task.title}, {name}",
            f"{mean(runs, lambda run: run.share):.2%}",
            f"{mean(runs, lambda run: run.close):.1%}",
            spread(over(runs, lambda run: np.abs(run.errors).mean())),
            spread(over(runs, lambda run: np.abs(run.high).mean())),
            spread(over(runs, lambda run: run.high.mean()), "+"),
            f"{mean(runs, lambda run: (run.high > 0).mean()):.0%}",
            f"{over(runs, lambda run: np.abs(run.errors).max()).max():.3f}",
            f"{mean(runs, lambda run: run.held.mean()):.1%}" if ours(name) else NONE,
        ]
        for one in tasks
        for name, runs in ((name, one.in_3d[name]) for name in one.compared)
    ]


def published_queries(tasks: Tasks) -> Table:
    """Table 2, and Figure 6 of the published method in numbers."""
    rows = []
    for place, name in enumerate(tasks[0].cube.queries):
        answer = tasks[0].in_3d[PARTIAL][0].queries[place].answer
        errors = [one.in_3d[PARTIAL][0].query_errors[place] for one in tasks]
        rows.append([name, answer.measured, answer.inferred, *(f"{error:+.3f}" for error in errors)])
    return ["query", "m", "ℓ", *(one.task.title for one in tasks)], rows


def our_queries(tasks: Tasks) -> Table:
    """Figure 6 of our method in numbers."""
    rows = []
    for place, name in enumerate(tasks[0].cube.queries):
        cells = []
        for one in tasks:
            errors = np.abs(over(one.in_3d[one.spoken_of], lambda run: run.query_errors)[:, place])
            cells.append(f"{errors.mean():.4f} · {errors.max():.3f} · {(errors <= CLOSE_QUERY).mean():.0%}")
        rows.append([name, *cells])
    return ["query", *(f"{one.task.title}, {one.spoken_of}" for one in tasks)], rows


def queries_by_method(tasks: Tasks) -> Table:
    """All twelve queries together."""
    header = [
        "task, method", "inferences", "mean abs. error", "of the worst query", "largest", f"within ±{CLOSE_QUERY}",
        "95 % intervals hold",
    ]  # fmt: skip
    rows = []
    for one in tasks:
        for name in one.compared:
            runs = one.in_3d[name]
            errors = np.abs(over(runs, lambda run: run.query_errors))
            rows.append(
                [
                    f"{one.task.title}, {name}",
                    f"{mean(runs, lambda run: run.share):.2%}",
                    spread(errors.mean(axis=1)),
                    f"{errors.mean(axis=0).max():.4f}",
                    f"{errors.max():.3f}",
                    f"{(errors <= CLOSE_QUERY).mean():.0%}",
                    f"{mean(runs, lambda run: run.queries_held.mean()):.1%}" if ours(name) else NONE,
                ]
            )
    return header, rows


def drops(tasks: Tasks) -> Table:
    """The other half of Figure 6: true, published and ours."""
    rows = []
    for place, name in enumerate(tasks[0].cube.queries):
        cells = []
        for one in tasks:
            theirs, found = (one.in_3d[method][0].queries[place] for method in (PARTIAL, one.spoken_of))
            rates = (theirs.truth, theirs.answer.robustness, found.answer.robustness)
            cells.append(" · ".join(f"{rate - one.cube.clean:+.3f}" for rate in rates))
        rows.append([name, *cells])
    return ["query", *(one.task.title for one in tasks)], rows


def inferences(tasks: Tasks) -> Table:
    """Figure 4 in numbers."""
    header = [
        "task, method", "inferences saved", "of which by stopping", "paper", "MSE of tests", "MSE of queries",
        "order 3: mean abs. error",
    ]  # fmt: skip
    rows = []
    for one in tasks:
        rows.append([f"{one.task.title}, full", "0.00%", NONE, NONE, "0", "0", "0"])
        published = dict.fromkeys((WINDOW, CUMULATIVE), SAVED[one.task.name]) | {PARTIAL: SAVED_PARTIAL}
        for name in (PARTIAL, *STOPPING, one.spoken_of):
            runs = one.in_3d[name]
            rows.append(
                [
                    f"{one.task.title}, {name}",
                    f"{saved(one, name):.2%}",
                    f"{100 * stopped(one, name):.2f} points" if name in STOPPING else NONE,
                    f"{published[name]:.2%}" if name in published else NONE,
                    f"{mean(runs, lambda run: np.square(run.errors).mean()):.6f}",
                    f"{mean(runs, lambda run: np.square(run.query_errors).mean()):.6f}",
                    spread(over(runs, lambda run: np.abs(run.high).mean())),
                ]
            )
    return header, rows


def saved(one: Measured, method: str) -> float:
    """The share of full tomography's inferences that a method saves."""
    return mean(one.in_3d[method], lambda run: run.saved)


def stopped(one: Measured, rule: str) -> float:
    """The share of full tomography's inferences that stopping early saves on top of partial tomography."""
    return saved(one, rule) - saved(one, PARTIAL)


def error(one: Measured, method: str) -> float:
    """The mean absolute error on the order that is predicted."""
    return mean(one.in_3d[method], lambda run: np.abs(run.high).mean())


def four_dimensions(tasks: Tasks) -> Table:
    """The published method and ours on all four axes."""
    header = [
        "task, method", "inferences", "order ≥ 3: mean abs. error", "mean error", "largest", "within ±0.1",
        "95 % intervals hold", "mean half-width", "queries: mean abs. error", "their intervals hold",
    ]  # fmt: skip
    return header, [
        [
            f"{one.task.title}, {name}",
            f"{mean(runs, lambda run: run.share):.2%}",
            spread(over(runs, lambda run: np.abs(run.high).mean())),
            spread(over(runs, lambda run: run.high.mean()), "+"),
            f"{over(runs, lambda run: np.abs(run.high).max()).max():.3f}",
            f"{mean(runs, lambda run: run.close):.1%}",
            f"{mean(runs, lambda run: run.held.mean()):.1%}" if ours(name) else NONE,
            f"{mean(runs, lambda run: run.half_widths.mean()):.3f}" if ours(name) else NONE,
            spread(over(runs, lambda run: np.abs(run.query_errors).mean())),
            f"{mean(runs, lambda run: run.queries_held.mean()):.1%}" if ours(name) else NONE,
        ]
        for one in tasks
        for name, runs in one.in_4d.items()
    ]


def ours(name: str) -> bool:
    """Whether a method is ours; the forest has no intervals for what it predicts."""
    return name.startswith("ours")


def spread(values: Floats, sign: str = "") -> str:
    """Mean and standard deviation over seeds."""
    deviation = values.std(ddof=1) if len(values) > 1 else 0.0
    return f"{values.mean():{sign}.4f} ± {deviation:.4f}"
