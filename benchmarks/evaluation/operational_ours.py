"""`balanced` beside the techniques of DeepEST's paper."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation import operational_published as paper
from evaluation.operational_drawing import frontiers
from evaluation.operational_study import CURVE, DEFAULT, VARIANTS, Study, arms
from evaluation.operational_subjects import Subject
from evaluation.operational_tables import SEEDS, Part
from evaluation.page import Page


def ours(page: Page, study: Study) -> None:
    """`balanced` beside every technique."""
    subjects = study.tables
    rows = [_beside(study, one, name) for one in subjects for name in ("SRS", *VARIANTS)]
    page.text(
        f"`balanced` draws by confidence. At its default ({DEFAULT:g}), and where it finds as many failures as the "
        "technique (read off its curve between measured balances). MSE is over that of SRS."
    )
    page.table(
        ["technique", "failures", "MSE", "coverage", f"balanced {DEFAULT:g}: failures", "MSE", "coverage",
         "at equal failures: balance", "MSE"], rows, f"{SEEDS}; along the curve 0–{CURVE - 1}",
    )  # fmt: skip
    page.figure(
        "frontier", frontiers(study, subjects),
        "Failures found with 200 tests and mean squared error: right is better, down is better",
        f"{SEEDS}; along the curve 0–{CURVE - 1}",
    )  # fmt: skip
    equalled(page, study, subjects, "the published subjects")


def equalled(page: Page, study: Study, subjects: Sequence[Subject], where: str) -> None:
    """Whether some balance of ours has as many failures and no larger an error than each technique."""
    better, close = {}, []
    for one in subjects:
        for name in (name for name in arms(one) if name in (*VARIANTS, "CES")):
            run, told = study.main(one, name), f"{name} on {one.title}"
            equal = study.equal(one, run.found)
            better[told] = equal is not None and equal.ratio <= study.ratio(one, name)
            if equal is not None and abs(equal.ratio * one.simple(paper.TESTS) - run.mse) < 2 * run.mse_error:
                close.append(told)
    rest = [told for told, holds in better.items() if not holds]
    said = [f"{sum(better.values())} of {len(better)}"]
    said += [f"not {', '.join(rest)}"] if rest else []
    said += [f"within the noise: {', '.join(close)}"] if close else []
    page.claim(
        f"Ours, on {where}: a balance with at least as many failures and no larger an MSE than every technique", "–",
        "; ".join(said), not rest,
    )  # fmt: skip


def _beside(study: Study, one: Subject, name: str) -> list[str]:
    run, default = study.main(one, name), study.main(one, f"balanced {DEFAULT:g}")
    equal = study.equal(one, run.found)
    told = ["none", "–"] if equal is None else [f"{equal.balance:.2f}", f"{equal.ratio:.2f}"]
    return [
        f"{one.title}: {name}", f"{run.found:.1f}", f"{study.ratio(one, name):.2f}", f"{run.coverage:.3f}",
        f"{default.found:.1f}", f"{default.mse / one.simple(paper.TESTS):.2f}", f"{default.coverage:.3f}", *told,
    ]  # fmt: skip


PARTS = (Part("Ours beside each technique", ours),)
