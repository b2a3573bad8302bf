"""RQ2 and RQ3 of DeepEST, its r, our own models with CES, and what a selection costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evaluation import drawing
from evaluation import operational_published as paper
from evaluation.operational_drawing import frontiers, legend, line, ratios
from evaluation.operational_ours import equalled
from evaluation.operational_study import (
    CURVE,
    DEFAULT,
    MAIN,
    SHARES,
    SIZES,
    VARIANTS,
    Study,
    arms,
    variant,
)
from evaluation.operational_subjects import DEEPEST, Subject
from evaluation.operational_tables import CHANCE, Part
from evaluation.page import Page, seconds
from testifai.operational import resolve

SEEDS = f"seeds 0–{CURVE - 1}"


def sizes(page: Page, study: Study) -> None:
    """RQ2."""
    subjects = study.tables
    names = ("SRS", *VARIANTS, f"balanced {DEFAULT:g}")
    found = {
        (one.name, name, size): study.trials(one, arms(one)[name], CURVE, size)
        for one in subjects
        for name in names
        for size in SIZES
    }
    figure, axes = drawing.axes(2, len(subjects), width=2.1, height=2.0)
    for column, one in enumerate(subjects):
        for name in names:
            runs = [found[one.name, name, size] for size in SIZES]
            line(axes[0, column], SIZES, [run.found for run in runs], name)
            line(axes[1, column], SIZES, [run.mse for run in runs], name)
        axes[0, column].set_title(one.title)
        _tests(axes[0, column], "failures" if column == 0 else "")
        _tests(axes[1, column], "MSE" if column == 0 else "")
        axes[1, column].set_xlabel("tests")
    legend(figure, axes[0, 0])
    page.figure("sizes", figure, "Failures found and mean squared error against the number of tests", SEEDS)
    first, last = subjects[0], subjects[-1]
    rows = [
        [f"{one.title}: {name}", *(_cell(one, found[one.name, name, size], size) for size in SIZES)]
        for one in (first, last)
        for name in names
    ]
    page.text(
        "The paper's two subjects in numbers: failures, MSE over that of SRS ± its standard error. The paper shows "
        "curves alone."
    )
    page.table(["technique", *map(str, SIZES)], rows, SEEDS)
    _claims_of_sizes(page, found, first, last)


def _claims_of_sizes(page: Page, found: dict[Any, Any], first: Subject, last: Subject) -> None:
    def relative(one: Subject, name: str, size: int) -> float:
        return float(found[one.name, name, size].mse / one.simple(size))

    def best(one: Subject, size: int) -> str:
        return max(VARIANTS, key=lambda name: found[one.name, name, size].found)

    small, large = relative(first, "C", SIZES[0]), relative(first, "C", SIZES[-1])
    noise = np.hypot(*(found[first.name, "C", size].mse_error / first.simple(size) for size in (SIZES[0], SIZES[-1])))
    page.claim(f"{first.title}: C's advantage in MSE is largest with fewest tests", "Figure 3(a)",
               f"MSE {small:.2f} of SRS's with {SIZES[0]}, {large:.2f} with {SIZES[-1]}; the difference ± {noise:.2f}",
               small < large if abs(small - large) > 2 * noise else None)  # fmt: skip
    winners = [best(first, size) for size in SIZES]
    page.claim(f"{first.title}: CS finds most with up to 200 tests, DSA with 400 and 800", "Figure 4(a)",
               ", ".join(f"{name} ({size})" for name, size in zip(winners, SIZES, strict=True)),
               winners == ["CS"] * 3 + ["DSA"] * 2)  # fmt: skip
    few = [relative(last, "C", size) for size in SIZES[:2]]
    page.claim(f"{last.title}: SRS is more precise than C with 50 and 100 tests", "Figure 3(b)",
               " and ".join(f"MSE of C {value:.2f} of SRS's" for value in few), min(few) > 1)  # fmt: skip
    many = [relative(last, "C", size) for size in SIZES[2:]]
    page.claim(f"{last.title}: from 200 to 800 tests C keeps a good precision", "Figure 3(b)",
               "MSE " + ", ".join(f"{value:.2f}" for value in many) + " of SRS's", max(many) <= 1)  # fmt: skip
    winners = [best(last, size) for size in SIZES]
    page.claim(f"{last.title}: CS finds most at every size", "Figure 4(b)", ", ".join(winners), set(winners) == {"CS"})


def influence(page: Page, study: Study) -> None:
    """RQ3: which auxiliary value tells failures apart, and which technique follows from that."""
    subjects = study.tables
    rows, areas = [], {}
    for use in DEEPEST:
        cells = []
        for one in subjects:
            risk = one.risk(use)
            told = {"threshold": one.thresholds[use]} if use in one.thresholds else {}
            suspect = resolve(use, **told).weights(risk) > 0
            areas[one.name, use] = area(risk, one.failed)
            hits = f"{one.failed[suspect].mean():.2f}" if suspect.any() else "–"
            reached = one.failed[suspect].sum() / one.failed.sum()
            cells.append(f"{areas[one.name, use]:.3f} / {hits} / {reached:.2f}")
        rows.append([use, *cells])
    page.text(
        "How well each value tells failures from passes: area under the ROC curve (.5 is a coin) / share of "
        "suspects that fail / share of all failures that are suspects (thresholds by hand where the authors set "
        "them). What lies outside the last weighs heavily when it is drawn: that is where the MSE comes from."
    )
    page.table(["value", *[one.title for one in subjects]], rows, CHANCE)
    surprise = {one.name: max(areas[one.name, "dsa"], areas[one.name, "lsa"]) for one in subjects}
    mnist = [value for name, value in surprise.items() if name.endswith("MNIST")]
    others = [value for name, value in surprise.items() if not name.endswith("MNIST")]
    page.claim("DSA and LSA tell failures apart on MNIST, hardly on CIFAR", "Figures 5 to 7",
               f"areas {min(mnist):.3f} or more on MNIST, {min(others):.3f} … {max(others):.3f} on CIFAR",
               min(mnist) > max(others))  # fmt: skip
    last = subjects[-1]
    page.claim(f"Confidence is a bad choice for {last.title}", "RQ3",
               f"area {areas[last.name, 'confidence']:.3f}, the others' at most "
               f"{max(areas[last.name, use] for use in DEEPEST[1:]):.3f}",
               areas[last.name, "confidence"] < max(areas[last.name, use] for use in DEEPEST[1:]))  # fmt: skip
    _advice(page, study, subjects)


def _advice(page: Page, study: Study, subjects: Sequence[Subject]) -> None:
    """The paper's recommendations against what was found."""
    rows = []
    for one in subjects:
        names = [*VARIANTS, "SRS"]
        front = [name for name in names if not any(_beats(study, one, other, name) for other in names)]
        ours = [name for name in front if (equal := study.equal(one, study.main(one, name).found)) is None
                or equal.ratio > study.ratio(one, name)]  # fmt: skip
        failures = max(names, key=lambda name, one=one: study.main(one, name).found)
        error = min(names, key=lambda name, one=one: study.ratio(one, name))
        rows.append([one.title, failures, error, ", ".join(front), ", ".join(ours) or "none"])
    page.text(
        "The paper recommends: the variant of a value that is trusted; CS for most failures; if in doubt C, the "
        "best trade-off in all five cases; SRS where nothing is known. Found:"
    )
    page.table(
        ["subject", "most failures", "least MSE", "not beaten in both by another published one",
         "nor by a balance of ours"], rows, f"seeds 0–{MAIN - 1}",
    )  # fmt: skip
    safe = sum("C" in row[3].split(", ") for row in rows)
    page.claim("If in doubt C: the best trade-off on all five subjects", "5 of 5",
               f"beaten in both by a published technique on {len(rows) - safe}, by a balance of ours on "
               f"{sum('C' not in row[4].split(', ') for row in rows)}", safe == len(rows))  # fmt: skip


def _beats(study: Study, one: Subject, better: str, worse: str) -> bool:
    more = study.main(one, better).found > study.main(one, worse).found
    return more and study.ratio(one, better) < study.ratio(one, worse)


def shares(page: Page, study: Study) -> None:
    """How results depend on r."""
    subjects = study.tables
    figure, axes = drawing.axes(2, len(subjects), width=2.1, height=2.0)
    rows, least = [], dict.fromkeys(SHARES, 0)
    for name in VARIANTS:
        for column, one in enumerate(subjects):
            runs = [study.trials(one, variant(one, name, share=share), CURVE) for share in SHARES]
            errors = [run.mse / one.simple(paper.TESTS) for run in runs]
            line(axes[0, column], SHARES, [run.found for run in runs], name)
            line(axes[1, column], SHARES, errors, name)
            cells = [f"{run.found:.1f} / {ratio:.2f}" for run, ratio in zip(runs, errors, strict=True)]
            rows.append([f"{name}, {one.title}", *cells])
            least[SHARES[errors.index(min(errors))]] += 1
    for column, one in enumerate(subjects):
        axes[0, column].set_title(one.title)
        ratios(axes[1, column])
        axes[1, column].set_xlabel("r")
    axes[0, 0].set_ylabel("failures")
    axes[1, 0].set_ylabel("MSE / that of SRS")
    legend(figure, axes[0, 0])
    page.text(
        "r is the option `share`: the probability of a draw by risk. The paper takes 0.8 and suggests tuning. "
        "Failures found / MSE over that of SRS with 200 tests. (At r = 0 the draws are those of SRS, and the "
        "estimate averages z_k, Eq. 7.)"
    )
    page.table(["variant", *(f"r = {share:g}" for share in SHARES)], rows, SEEDS)
    page.text(
        "The least MSE is at r = " + ", ".join(f"{share:g} in {times}" for share, times in least.items() if times)
        + f" of the {len(rows)} cases; more draws by risk find more failures until suspects run out."
    )  # fmt: skip
    page.figure("shares", figure, "Failures found and mean squared error against r, 200 tests", SEEDS)


def own(page: Page, study: Study) -> None:
    """Our own models on drifted streams, and CES."""
    streams, seeds = study.streams, f"seeds 0–{MAIN - 1}; CES and the curve 0–{CURVE - 1}"
    rows = []
    for one in streams:
        for name in arms(one):
            run = study.main(one, name)
            equal = study.equal(one, run.found)
            told = "–" if equal is None else f"{equal.ratio:.2f} at {equal.balance:.2f}"
            noise = "exact" if name == "SRS" else f"± {run.mse_error / one.simple(paper.TESTS):.2f}"
            rows.append([
                f"{one.title} ({1 - one.rate:.4f}): {name}", f"{run.found:.1f} ± {run.deviation:.1f}",
                f"{study.ratio(one, name):.2f} {noise}", f"{run.coverage:.3f}", told,
            ])  # fmt: skip
    page.text(
        "Two fifths of each stream are as they were, the rest went through mixes of two or three corruptions. "
        "Surprise is measured against unchanged inputs; CES balances the traces of the last hidden layer, binned as "
        f"it bins them. Thresholds by the paper's rules. CES: {CURVE} repetitions, the others {MAIN:,}."
    )
    page.table(
        ["technique", "failures", "MSE / SRS's", "coverage", "balanced at equal failures: MSE / SRS's"], rows, seeds
    )
    page.figure(
        "own",
        frontiers(study, streams),
        "Our own models: further right finds more, further down is more precise",
        seeds,
    )
    equalled(page, study, streams, "our own streams")
    errors = [study.ratio(one, "CES") for one in streams]
    page.claim("CES is more precise than SRS (Li et al.; here on real traces)", "second best in 3 of 5",
               "MSE " + ", ".join(f"{value:.2f}" for value in errors) + " of SRS's", max(errors) < 1)  # fmt: skip


def cost(page: Page, study: Study) -> None:
    """Time of a selection."""
    streams = study.streams
    one = streams[-1]
    names = [*arms(one)]
    rows = []
    for name in names:
        times = [study.trials(one, arms(one)[name], 20, size).seconds for size in (200, 800)]
        rows.append([name, *map(seconds, times)])
    page.text(
        f"Processor time of one selection out of {len(one.failed):,} ({one.title}), auxiliary values at hand, second "
        "round of `balanced` included. The paper reports no times."
    )
    page.table(["technique", "200 tests", "800 tests"], rows, "seeds 0–19")


def area(risk: Any, failed: Any) -> float:
    """Area under the ROC curve: the chance that a failure has a higher risk than a pass; equal risks count half."""
    from scipy.stats import rankdata

    ranks, failures = rankdata(risk), int(failed.sum())
    return float((ranks[failed].sum() - failures * (failures + 1) / 2) / (failures * (len(failed) - failures)))


def _tests(plot: Any, label: str) -> None:
    plot.set(xscale="log", yscale="log", ylabel=label)
    plot.set_xticks(SIZES, [str(size) for size in SIZES])
    plot.minorticks_off()


def _cell(one: Subject, run: Any, size: int) -> str:
    simple = one.simple(size)
    return f"{run.found:.1f}, {run.mse / simple:.2f} ± {run.mse_error / simple:.2f}"


PARTS = (
    Part("More or fewer tests (RQ2)", sizes),
    Part("Which technique when (RQ3)", influence),
    Part("How many draws by risk: r", shares),
    Part("Our own models on drifted streams, with CES", own),
    Part("What a selection costs", cost),
)
