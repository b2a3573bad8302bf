"""What the first paper claims, and what we do, against what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from evaluation.page import Page
from evaluation.tomography_runs import (
    CLOSE_QUERY,
    CUMULATIVE,
    EQUAL,
    MANY,
    PARTIAL,
    WINDOW,
    Judged,
    Measured,
    mean,
    over,
)
from evaluation.tomography_tables import SAVED, SAVED_PARTIAL, error, saved

MEASURED = [19, 15, 15, 9, 15, 9, 9, 0, 7, 37, 61, 91]
INFERRED = [8, 12, 12, 18, 12, 18, 18, 27, 1, 27, 64, 125]
NEAR = 0.01  # of a published saving: taken as the same
Tasks = Sequence[Measured]


def claim(page: Page, tasks: Tasks) -> None:
    """The lines that the section begins with."""
    lower_and_wider(page, tasks)
    counts(page, tasks)
    errors(page, tasks)
    savings(page, tasks)
    against_theirs(page, tasks)
    ours(page, tasks)


def lower_and_wider(page: Page, tasks: Tasks) -> None:
    means, spreads = (
        np.array([[figure(rates) for rates in one.whole.by_order] for one in tasks]) for figure in (np.mean, np.std)
    )
    lower, wider = (int((steps > 0).all(axis=1).sum()) for steps in (-np.diff(means), np.diff(spreads)))
    at_first = int((spreads[:, 1] > spreads[:, 0]).sum())
    page.claim(
        "rates of higher orders are lower and spread wider (Figure 2)",
        "all tasks",
        f"of {len(tasks)} tasks, lower with every order on {lower}, wider on {wider} (from order 1 to 2 on {at_first})",
        lower == wider == len(tasks),
    )


def counts(page: Page, tasks: Tasks) -> None:
    answers = [[row.answer for row in one.in_3d[PARTIAL][0].queries] for one in tasks]
    same = all(
        [line.measured for line in one] == MEASURED and [line.inferred for line in one] == INFERRED for one in answers
    )
    page.claim("tests measured and inferred for each query (Table 2)", "m and ℓ", "the same" if same else "not", same)


def errors(page: Page, tasks: Tasks) -> None:
    close = [partial(one, lambda run: run.close) for one in tasks]
    page.claim(
        "over 90 % of the 216 errors are within ±0.1",
        "> 90 % on every task",
        listed(tasks, close, ".1%"),
        all(share > 0.9 for share in close),
    )
    for one in (one for one in tasks if one.task.name == "qqp"):
        largest = partial(one, lambda run: np.abs(run.errors).max())
        page.claim("on QQP all errors are within ±0.05", "≤ 0.05", f"largest {largest:.3f}", largest <= 0.05)
    worst = [next(row.error for row in one.in_3d[PARTIAL][0].queries if row.name == "Q8") for one in tasks]
    page.claim(
        "Q8, all of it predicted, errs by at most 0.109",
        "0.109",
        listed(tasks, worst, "+.3f"),
        round(max(map(abs, worst)), 3) <= 0.109,
    )
    bias = [partial(one, lambda run: run.high.mean()) for one in tasks]
    in_4d = [mean(one.in_4d[PARTIAL], lambda run: run.high.mean()) for one in tasks]
    for dimensions, found in {"3D": bias, "4D": in_4d}.items():
        page.claim(
            f"aggregate error on orders ≥ 3, {dimensions}",
            "< 7 %",
            listed(tasks, found, "+.1%"),
            max(map(abs, found)) < 0.07,
        )
    optimistic = [partial(one, lambda run: (run.high > 0).mean()) for one in tasks]
    page.claim(
        "the forest is too optimistic on order 3 (our claim)",
        "mean error close to zero on three tasks",
        f"mean error {listed(tasks, bias, '+.3f')}; too optimistic on {listed(tasks, optimistic, '.0%')} of its tests",
        all(one > 0 for one in bias),
    )


def savings(page: Page, tasks: Tasks) -> None:
    found = [saved(one, PARTIAL) for one in tasks]
    page.claim(
        "inferences saved by partial tomography",
        f"{SAVED_PARTIAL:.0%}",
        listed(tasks, found, ".1%"),
        all(abs(share - SAVED_PARTIAL) <= NEAR for share in found),
    )
    published = [SAVED[one.task.name] for one in tasks]
    for rule in (WINDOW, CUMULATIVE):
        page.claim(
            f"… with early stopping, read as `{rule}`",
            listed(tasks, published, ".1%"),
            listed(tasks, [saved(one, rule) for one in tasks], ".1%"),
            len(as_published(tasks, rule)) == len(tasks),
        )


def as_published(tasks: Tasks, rule: str) -> list[str]:
    """The tasks on which a way to stop early saves what the paper says, within a point."""
    return [one.task.title for one in tasks if abs(saved(one, rule) - SAVED[one.task.name]) <= NEAR]


def against_theirs(page: Page, tasks: Tasks) -> None:
    theirs = [error(one, PARTIAL) for one in tasks]
    for told, found in {
        "with as many inferences": [error(one, EQUAL) for one in tasks],
        "from 1 % (below 10,000 inputs 5 %)": [error(one, one.spoken_of) for one in tasks],
    }.items():
        pairs = [f"{one:.4f} against {other:.4f}" for one, other in zip(found, theirs, strict=True)]
        page.claim(
            f"ours {told} errs less on order 3 than `partial` (mean absolute error)",
            "our claim",
            ", ".join(f"{one.task.title} {pair}" for one, pair in zip(tasks, pairs, strict=True)),
            all(one < other for one, other in zip(found, theirs, strict=True)),
        )


def ours(page: Page, tasks: Tasks) -> None:
    large = [one for one in tasks if one.inputs >= MANY]
    if not large:
        return
    found = [np.abs(over(one.in_3d[one.spoken_of], lambda run: run.query_errors)) for one in large]
    page.claim(
        f"ours from 1 % of the inferences: each query's mean absolute error is ≤ {CLOSE_QUERY}",
        "our claim",
        "worst query " + listed(large, [one.mean(axis=0).max() for one in found], ".4f"),
        all(one.mean(axis=0).max() <= CLOSE_QUERY for one in found),
    )
    page.claim(
        f"… and so it is in every single run: error ≤ {CLOSE_QUERY}",
        "our claim",
        listed(large, [(one <= CLOSE_QUERY).mean() for one in found], ".0%")
        + "; largest "
        + listed(large, [one.max() for one in found], ".3f"),
        all(one.max() <= CLOSE_QUERY for one in found),
    )


def partial(one: Measured, figure: Callable[[Judged], float]) -> float:
    """A figure of the published method, all inputs, with the first seed."""
    return float(figure(one.in_3d[PARTIAL][0]))


def listed(tasks: Tasks, values: Sequence[float], form: str) -> str:
    """A figure for each task."""
    return ", ".join(f"{one.task.title} {value:{form}}" for one, value in zip(tasks, values, strict=True))
