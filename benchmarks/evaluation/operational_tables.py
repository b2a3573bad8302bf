"""Tables II and III of DeepEST, what thresholds make of them, and ours beside every technique."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from evaluation import operational_published as paper
from evaluation.operational_study import CURVE, DEFAULT, MAIN, VARIANTS, Study, arms
from evaluation.operational_subjects import Subject
from evaluation.operational_trials import Trials
from evaluation.page import Page
from testifai.operational import resolve

SEEDS = f"seeds 0–{MAIN - 1}"
CHANCE = "no chance in it"
COMPARED = ("SRS", *VARIANTS)  # what ran here and in the paper


class Part(NamedTuple):
    """A heading and what writes below it."""

    title: str
    write: Callable[[Page, Study], None]


def effectiveness(page: Page, study: Study) -> None:
    """Table II and Figure 1."""
    subjects = study.tables
    rows = []
    for name in ("SRS", "CES", *VARIANTS):
        rows.append([f"{name}, published", *(_spread(*paper.failures(name, one.name)) for one in subjects)])
        if name != "CES":
            runs = [study.main(one, name) for one in subjects]
            few = [run.first(paper.REPETITIONS) for run in runs]
            rows.append(
                [f"{name}, {paper.REPETITIONS} repetitions", *(_spread(run.found, run.deviation) for run in few)]
            )
            rows.append([f"{name}, {MAIN:,} repetitions", *(_spread(run.found, run.deviation) for run in runs)])
    runs = [study.main(one, f"balanced {DEFAULT:g}") for one in subjects]
    rows.append([f"ours, balanced {DEFAULT:g}, {MAIN:,}", *(_spread(run.found, run.deviation) for run in runs)])
    rows.append(["failing examples in all", *(f"{one.failed.sum():,}" for one in subjects)])
    page.text(f"Failures among {paper.TESTS} tests, mean ± standard deviation over repetitions (Table II).")
    page.table(["technique", *_titles(subjects)], rows, SEEDS)
    _errors(page, study, subjects)
    _claims_of_table_2(page, study, subjects)


def _errors(page: Page, study: Study, subjects: Sequence[Subject]) -> None:
    rows = []
    for name in (*COMPARED, f"balanced {DEFAULT:g}"):
        cells = []
        for one in subjects:
            run = study.main(one, name)
            simple = one.simple(paper.TESTS)
            cells.append(
                f"{run.mse * 1e4:.3g} ± {run.mse_error * 1e4:.2g} ({np.sqrt(run.mse):.4f}; {run.mse / simple:.2f}; "
                f"{run.coverage:.3f})"
            )
        rows.append([name, *cells])
    page.text(
        "MSE × 10⁴ ± its standard error (RMSE; MSE over that of SRS; share of 95 % intervals that hold the truth). "
        "The paper gives no intervals; those of the variants are ours. The paper draws its bars (Figure 1) without "
        "numbers; its ratios are in Table III, next."
    )
    page.table(["technique", *_titles(subjects)], rows, SEEDS)


def _claims_of_table_2(page: Page, study: Study, subjects: Sequence[Subject]) -> None:
    cells = [(one, name) for one in subjects for name in COMPARED]
    near = 0
    for one, name in cells:
        run, (mean, _) = study.main(one, name), paper.failures(name, one.name)
        near += abs(mean - run.found) <= 2 * run.deviation * np.sqrt(1 / paper.REPETITIONS + 1 / len(run.failures))
    page.claim(
        "Table II, CES aside", f"{len(cells)} means over {paper.REPETITIONS} repetitions",
        f"{near} within two standard errors of ours", near >= 0.88 * len(cells),
    )  # fmt: skip
    gains = {(one.title, name): study.main(one, name).found / (paper.TESTS * one.rate) for one, name in cells
             if name != "SRS"}  # fmt: skip
    least, most = min(gains, key=gains.__getitem__), max(gains, key=gains.__getitem__)
    page.claim(
        "The variants find 5 to 30 times the failures of existing techniques (abstract)",
        "5 … 30; by its own Table II 1.0 … 23.5 times those of SRS",
        f"{gains[least]:.1f} ({least[1]}, {least[0]}) … {gains[most]:.1f} ({most[1]}, {most[0]}) times those of SRS; "
        f"{sum(gain >= 5 for gain in gains.values())} of {len(gains)} cases from 5 on",
        gains[least] >= 5,
    )  # fmt: skip
    above = sum(gain > 1.1 for gain in gains.values())
    page.claim("All variants find many more failures than SRS", f"all {len(gains)} cases",
               f"{above} of {len(gains)} by more than a tenth", above == len(gains))  # fmt: skip
    best = sum(max(VARIANTS, key=lambda name, one=one: study.main(one, name).found) == "CS" for one in subjects)
    page.claim("CS finds most on every subject", "5 of 5", f"{best} of {len(subjects)}", best == len(subjects))
    ranks = [sorted(COMPARED, key=lambda name, one=one: study.ratio(one, name)) for one in subjects]
    firsts = sum(order[0] == "C" for order in ranks)
    page.claim(
        "C has the least MSE of all on 3 of 5", "3 of 5", f"{firsts} of {len(subjects)} (without CES)", firsts >= 3
    )
    worst = sum(order[-1] == "SRS" for order in ranks)
    page.claim("SRS never has the largest MSE", "0 of 5", f"{worst} of {len(subjects)}", worst == 0)
    close = [study.ratio(one, name) for one in subjects for name in VARIANTS]
    page.claim(
        "Estimates with precision close to existing techniques, often better", "ratios 0.14 … 16.8 to SRS",
        f"better in {sum(value <= 1 for value in close)} of {len(close)} cases; MSE more than twice that of SRS in "
        f"{sum(value > 2 for value in close)}, at worst {max(close):.1f} times", max(close) <= 2,
    )  # fmt: skip


def pairs(page: Page, study: Study) -> None:
    """Table III."""
    subjects = study.tables
    order = (*VARIANTS, "SRS")
    couples = [(row, column) for at, row in enumerate(order) for column in order[at + 1 :]]
    rows = [[f"{row} / {column}", *(_pair(study, one, row, column) for one in subjects)] for row, column in couples]
    page.text(
        "Row against column: relative precision (MSE of the column over MSE of the row) and relative failures, here "
        "and in brackets as published. Above 1 the row is better."
    )
    page.table(["pair", *_titles(subjects)], rows, SEEDS)
    _noise(page, study, subjects)
    ours = {name: _wins(name, order, subjects, lambda one, each: _both(study.main(one, each))) for name in order}
    theirs = {name: _wins(name, order, subjects, _published_both) for name in order}
    rows = [
        [name, *(f"{ours[name][other]} ({theirs[name][other]})" for other in order), _sums(ours[name], theirs[name])]
        for name in order
    ]
    lost = [{name: wins[name][other] for name in order} for other in order for wins in (ours, theirs)]
    rows.append(["losses", *(_sums(*lost[at : at + 2]) for at in range(0, len(lost), 2)), ""])
    page.text("Wins in both criteria on the five subjects, row over column, here (as published); CES left out.")
    page.table(["wins", *order, "in all"], rows, SEEDS)
    losses = sum(ours[name]["C"] for name in order)
    most = max(order, key=lambda name: sum(ours[name].values()))
    page.claim(
        "C never loses a pair in both criteria and wins most",
        "0 losses, 7 wins (10 with CES)",
        f"{losses} losses, {sum(ours['C'].values())} wins; most: {most}",
        losses == 0 and most == "C",
    )
    beaten = sum(ours["SRS"].values())
    page.claim("SRS never wins over a variant", "0 wins", f"{beaten} wins", beaten == 0)


def _noise(page: Page, study: Study, subjects: Sequence[Subject]) -> None:
    """How far a relative precision from 30 repetitions can be trusted."""
    rows, inside, cells = [], 0, 0
    for name in VARIANTS:
        row = [name]
        for one in subjects:
            both = zip(*(study.main(one, each).groups(paper.REPETITIONS) for each in ("SRS", name)), strict=True)
            ratios = [simple.mse / max(run.mse, 1e-12) for simple, run in both] or [1 / study.ratio(one, name)]
            low, high = np.quantile(ratios, [0.05, 0.95])
            told = paper.precision(name, one.name)
            inside, cells = inside + bool(low <= told <= high), cells + 1
            row.append(f"{low:.2g} … {high:.2g} ({told:.2g})")
        rows.append(row)
    page.text(
        f"The same ratio to SRS from {paper.REPETITIONS} repetitions, as in the paper, varies widely: 5 % and 95 % "
        f"points of {MAIN // paper.REPETITIONS} such experiments, and in brackets the published one ({inside} of "
        f"{cells} inside)."
    )
    page.table(["MSE of SRS / that of", *_titles(subjects)], rows, SEEDS)


def thresholds(page: Page, study: Study) -> None:
    """What a threshold's rule makes of DSA and LSA, and the text of the paper of CS."""
    subjects = study.tables
    rows = []
    for name in ("DSA, rule", "DSA", "LSA, rule", "LSA", "LSA, q0.9"):
        cells = []
        for one in subjects:
            arm = arms(one)[name]
            technique = resolve(arm.use, **arm.options)
            suspects = int(np.count_nonzero(technique.weights(one.risk(arm.use))))
            cells.append(f"{suspects:,} / {study.main(one, name).found:.1f} / {study.ratio(one, name):.2f}")
        rows.append([name + ("" if "," in name else ", by hand"), *cells])
    page.text(
        "The paper's rules are mean + 2 standard deviations (DSA) and mean + variance (LSA); its authors ran with "
        "thresholds set by hand. Suspects among 10,000 / failures found / MSE over that of SRS. With fewer than 1 % "
        "suspects `testifai` warns that the technique behaves as simple random sampling; `q0.9`, a quantile, "
        "suspects the riskiest tenth on any scale."
    )
    page.table(["threshold", *_titles(subjects)], rows, SEEDS)
    page.text(
        "A quantile nearly always has suspects; whether they fail more often than others is another matter. Where "
        "surprise says nothing of failures, or the contrary (RQ3, below), any threshold with suspects costs "
        "precision and may cost failures."
    )
    lost = [one.title for one in subjects if _suspects(one) < 0.01 * len(one.failed)]
    page.claim(
        "LSA's rule, mean + variance, finds suspects", "implied", f"fewer than 1 % on {', '.join(lost)}", not lost
    )
    rows = []
    for name, use in (("CS", "confidence"), ("DSA", "dsa")):
        cells = []
        for one in subjects:
            limit = one.thresholds.get(use, 0.3)
            count = study.setting.times(CURVE)
            found = paper.failures_as_worded(one.risk(use), limit, one.failed, count)
            cells.append(
                f"{found.mean():.1f} / {study.main(one, name).found:.1f} ({paper.failures(name, one.name)[0]:.1f})"
            )
        rows.append([name, *cells])
    page.text(
        "Links as the text words them (a suspicious example drawn opens links to all others, each as heavy as the "
        "risk at its end) / as the implementation has them (only links into suspicious examples weigh) and, in "
        "brackets, as published: failures found. The published tables are the implementation's, and it is what "
        "`testifai` follows."
    )
    page.table(["links", *_titles(subjects)], rows, f"seeds 0–{CURVE - 1} for the text's")


def _suspects(subject: Subject) -> int:
    return int(np.count_nonzero(resolve("lsa").weights(subject.risk("lsa"))))


def _pair(study: Study, one: Subject, row: str, column: str) -> str:
    precision = study.ratio(one, column) / study.ratio(one, row)
    found = study.main(one, row).found / study.main(one, column).found
    told = paper.precision(row, one.name) / paper.precision(column, one.name)
    before = paper.failures(row, one.name)[0] / paper.failures(column, one.name)[0]
    return f"{precision:.2f}, {found:.2f} ({told:.2f}, {before:.2f})"


def _both(run: Trials) -> tuple[float, float]:
    """Failures and precision: higher is better."""
    return run.found, -run.mse


def _published_both(one: Subject, name: str) -> tuple[float, float]:
    return paper.failures(name, one.name)[0], paper.precision(name, one.name)


def _wins(
    name: str, order: Sequence[str], subjects: Sequence[Subject],
    both: Callable[[Subject, str], tuple[float, float]],
) -> dict[str, int]:  # fmt: skip
    """On how many subjects a technique is better than each in both criteria."""
    return {
        other: sum(all(a > b for a, b in zip(both(one, name), both(one, other), strict=True)) for one in subjects)
        for other in order
    }


def _sums(ours: Mapping[str, int], theirs: Mapping[str, int]) -> str:
    return f"{sum(ours.values())} ({sum(theirs.values())})"


def _titles(subjects: Sequence[Subject]) -> list[str]:
    return [f"{one.title} ({1 - one.rate:.4f})" for one in subjects]


def _spread(mean: float, deviation: float) -> str:
    return f"{mean:.1f} ± {deviation:.1f}"


PARTS = (
    Part("Failures and error with 200 tests (Table II, Figure 1)", effectiveness),
    Part("Pairs of techniques (Table III)", pairs),
    Part("Thresholds and links are part of the result", thresholds),
)
