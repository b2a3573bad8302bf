"""The tables and figures of predicted quality, and what becomes of the paper's claims about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from evaluation import drawing
from evaluation.page import Page
from evaluation.validity_quality import ALONE, DRAWS, SAME, WAYS, Floats, Mask, Prediction, Quality
from testifai.quality.assessment import EXTRA

SEEDS = f"seed 0; tests by chance: draws 0–{DRAWS - 1}"
PUBLISHED, LOW, OURS, FEW = range(len(WAYS))
LEAST = 0.5  # of the variance among higher orders, to be called predictable
DIFFERENT = 0.25  # accuracies that are further apart count as those of different inputs
FAR = 14  # the severity sum at which the paper still finds low scores

Found = list[list[list[Prediction]]]  # of each task, of each way, of each draw


def measured(page: Page, tables: Sequence[Quality], missing: Sequence[str]) -> None:
    """What the scores are, and what they were measured on."""
    page.text(
        "KID is measured on two halves that share no input, one clean, one perturbed, by the features that the product "
        "takes: the penultimate layer of the model under test, scaled to a root mean square of 1; of the detector the "
        "channel means of its backbone. BERTScore F1 is by a MiniLM encoder. The paper's Inception network cannot be "
        "had offline, and it does not name the encoder of its BERTScore: **quality in its units is not comparable "
        "with ours**, shares of a task's own range are. The same inputs serve all tests of a task; they are few "
        "because 1,296 tests were to take minutes of one core."
    )
    rows = []
    for one in tables:
        at = one.flat
        inputs = f"{one.sample} questions"
        if one.measure == "kid":
            inputs = f"{one.sample - one.perturbed} clean, {one.perturbed} perturbed"
        rows.append(
            [
                one.task.title, one.name, inputs, f"{at.min():.3f} to {at.max():.3f}",
                *(f"{at[one.orders == order].mean():.3f}" for order in range(1, 5)), f"{one.errors.mean():.3f}",
                *_correlations(one),
            ]
        )  # fmt: skip
    header = ["task", "quality", "inputs", "least to largest", *(f"mean, order {order}" for order in range(1, 5))]
    header += ["standard error of a test", "rank correlation with the severity sum", "with the accuracy drop"]
    page.table(header, rows, "seed 0 (which inputs)")
    odd = [one for one in tables if _harmless(one)]
    if odd:
        page.text(
            f"{', '.join(one.task.title for one in odd)}: the less the inputs look like clean ones, the *more* of them "
            "pass. Probably because photographs that are moved and enlarged have fewer boxes left in view, and what is "
            "not there cannot be missed."
        )
    if missing:
        page.text(f"*Not recorded: {'; '.join(missing)}.*")


def _correlations(one: Quality) -> list[str]:
    """Of quality with the severity sum and with the accuracy drop."""
    with_sum = f"{_rank(one.flat, one.sums):+.2f}"
    return [with_sum, "–" if one.drop is None else f"{_rank(one.flat, one.drop):+.2f}"]


def _harmless(one: Quality) -> bool:
    """Whether accuracy is higher where quality is worse."""
    damage = -one.flat if one.higher_is_better else one.flat
    return one.drop is not None and _rank(damage, one.drop) < 0


def _rank(first: Any, second: Any) -> float:
    return float(spearmanr(first, second).statistic)


# -- Figure 9


def against_sums(page: Page, found: Found) -> None:
    """Figure 9."""
    page.figure(
        "severity_sum",
        _drawn_sums(found),
        "Quality as measured and as predicted from few tests, and accuracy drop (right axis, dashed), against the "
        "severity sum: means over all tests of a sum, in bands of their standard errors. KID: lower is better; F1: "
        "higher.",
        "seed 0, draw 0",
    )
    tables = [ways[0][0].quality for ways in found]
    alike = {one.task.title: _like_the_mean_of(one) for one in tables if one.measure == "kid"}
    if alike:
        page.claim(
            f"A high severity sum need not mean implausible inputs (counted so where the best test of sum {FAR} is as "
            "good as the average one of half that sum, on one vision task at least)",
            "KID below .06, held to be valid, at a sum of 14 (one vision task)",
            f"the best test of sum {FAR} is as good as the average one of sum "
            + ", ".join(f"{like} ({title})" for title, like in alike.items()),
            any(like <= FAR // 2 for like in alike.values()),
        )


def _like_the_mean_of(one: Quality) -> int:
    """The first severity sum whose average test is no better than the best one of a large sum."""
    choose = np.max if one.higher_is_better else np.min
    best = float(choose(one.flat[one.sums == FAR]))
    means, _ = one.by_sum(one.flat)
    no_better = means <= best if one.higher_is_better else means >= best
    return int(np.argmax(no_better)) if no_better.any() else int(one.sums.max())


def _drawn_sums(found: Found) -> Any:
    figure, axes = drawing.axes(2, 3, width=3.3, height=2.5)
    panels = list(axes.flat)
    for ways, panel in zip(found, panels, strict=False):
        one = ways[0][0].quality
        sums = np.unique(one.sums)
        lines = [("measured", "truth", "-", one.flat)]
        lines += [(WAYS[way].title, WAYS[way].colour, ":", ways[way][0].values) for way in (PUBLISHED, OURS)]
        for title, colour, style, values in lines:
            _line(panel, sums, one.by_sum(values), color=drawing.COLOURS[colour], linestyle=style, label=title)
        panel.set(title=one.task.title, xlabel="severity sum", ylabel=one.name)
        if one.drop is not None:
            _drop(panel, sums, one.by_sum(one.drop))
    for panel in panels[len(found) :]:
        panel.axis("off")
    handles, labels = panels[0].get_legend_handles_labels()
    (dashed,) = panels[-1].plot([], [], color=drawing.COLOURS["random"], linestyle="--", linewidth=1.2)
    panels[-1].legend([*handles, dashed], [*labels, "accuracy drop (right axis)"], loc="center")
    return figure


def _line(panel: Any, sums: Any, means: tuple[Floats, Floats], *, color: str, **options: Any) -> None:
    """Means as a line in a band of their standard errors."""
    middle, error = means
    panel.plot(sums, middle, color=color, linewidth=1.2, **options)
    panel.fill_between(sums, middle - error, middle + error, color=color, alpha=0.25, linewidth=0)


def _drop(panel: Any, sums: Any, means: tuple[Floats, Floats]) -> None:
    """The accuracy drop, on an axis of its own at the right."""
    right = panel.twinx()
    _line(right, sums, means, color=drawing.COLOURS["random"], linestyle="--")
    right.set(ylabel="accuracy drop")
    right.grid(visible=False)
    right.spines["right"].set_visible(True)


# -- Figure 10


def errors(page: Page, found: Found) -> None:
    """Figure 10, and its numbers."""
    page.text(
        "Error = predicted − measured, on the tests of three and four perturbations that were not measured. For KID, a "
        "distance, a negative error is optimistic. The published way measures the 171 tests of order ≤ 2 and fits a "
        f"random-forest regressor; ours is a Gaussian process on the same tests, on {EXTRA} further tests by chance "
        f"(the default), or on {ALONE} tests by chance and nothing else. The first table has mean absolute errors, "
        "with their standard deviation over draws where chance chose tests, and as shares of the range. R² is the "
        "share of the variance among those tests that is explained: 1 is perfect, 0 what their own mean would do."
    )
    page.figure(
        "errors",
        _drawn_errors(found),
        "Errors of predicted quality on tests of three and four perturbations, as shares of the task's range: "
        "quartiles, whiskers at the 5th and 95th percentile; a cross is the mean. Negative is optimistic for KID, "
        "pessimistic for F1.",
        "seed 0, draw 0",
    )
    page.table(
        ["task", "quality, range", *(way.title for way in WAYS)],
        [[_title(ways), _range(ways), *(_mean_error(draws) for draws in ways)] for ways in found],
        SEEDS,
    )
    page.table(
        ["task", *(f"mean error: {way.title}" for way in WAYS[:FEW]), *(f"R²: {way.title}" for way in WAYS[:FEW]),
         f"95 % intervals that hold the measured value: {WAYS[OURS].title}"],
        [[_title(ways), *(f"{_mean(one.bias for one in draws):+.3f}" for draws in ways[:FEW]),
          *(f"{_mean(one.explained for one in draws):.2f}" for draws in ways[:FEW]),
          f"{_mean(one.covered for one in ways[OURS]):.1%}"] for ways in found],
        SEEDS,
    )  # fmt: skip
    _claims(page, found)


def _claims(page: Page, found: Found) -> None:
    def listed(way: int) -> str:
        return ", ".join(f"{_title(ways)} {_mean(one.mean_error for one in ways[way]):.3f}" for ways in found)

    def shares(way: int) -> str:
        return ", ".join(f"{_title(ways)} {_share(ways[way]):.1%}" for ways in found)

    page.claim(
        "Mean absolute error of predicted quality in 4D (the paper's units)",
        "about 0.1 on two vision tasks, near 0 on the others",
        f"forest: {listed(PUBLISHED)} (by other networks than the paper's)",
        None,
    )
    explained = [_mean(one.explained for one in ways[PUBLISHED]) for ways in found]
    page.claim(
        f"The forest predicts quality from tests of one and two perturbations (counted so from an R² of {LEAST:g} on)",
        "stated for all five tasks",
        f"mean absolute error by the range: {shares(PUBLISHED)}; R² {', '.join(f'{one:.2f}' for one in explained)}",
        all(one >= LEAST for one in explained),
    )
    page.claim(
        f"Ours, with {EXTRA} more tests by chance, errs less than the published forest on every task",
        "–",
        f"mean absolute error by the range: {shares(OURS)}",
        all(_share(ways[OURS]) < _share(ways[PUBLISHED]) for ways in found),
    )
    page.claim(
        f"So does ours on {ALONE} tests by chance, fewer than the published 171",
        "–",
        f"mean absolute error by the range: {shares(FEW)}",
        all(_share(ways[FEW]) < _share(ways[PUBLISHED]) for ways in found),
    )


def _title(ways: list[list[Prediction]]) -> str:
    return ways[0][0].quality.task.title


def _range(ways: list[list[Prediction]]) -> str:
    one = ways[0][0].quality
    return f"{one.name}, {one.range:.3f}"


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _share(draws: list[Prediction]) -> float:
    return _mean(one.mean_error for one in draws) / draws[0].quality.range


def _mean_error(draws: list[Prediction]) -> str:
    """The mean absolute error, with its standard deviation over draws, and the share of the range that it is."""
    each = [one.mean_error for one in draws]
    spread = f" ± {np.std(each, ddof=1):.3f}" if len(each) > 1 else ""
    return f"{np.mean(each):.3f}{spread} ({_share(draws):.1%})"


def _drawn_errors(found: Found) -> Any:
    figure, axes = drawing.axes(1, 1, width=7.5, height=3.0)
    panel, step = axes[0, 0], len(WAYS) + 1
    for number, way in enumerate(WAYS):
        boxes = panel.boxplot(
            [ways[number][0].errors / ways[number][0].quality.range for ways in found],
            positions=[place * step + number for place in range(len(found))], widths=0.8, whis=(5, 95),
            showfliers=False, showmeans=True, patch_artist=True, label=way.title,
            medianprops={"color": "black"}, meanprops={"marker": "x", "markeredgecolor": "black", "markersize": 4},
        )  # fmt: skip
        for box in boxes["boxes"]:
            box.set(facecolor=drawing.COLOURS[way.colour], linewidth=0.6)
    panel.axhline(0, color="black", linewidth=0.6)
    panel.set_xticks([place * step + (step - 2) / 2 for place in range(len(found))], [_title(ways) for ways in found])
    panel.set(ylabel="error / range of quality")
    panel.legend(ncols=2, loc="upper center", bbox_to_anchor=(0.5, 1.3))
    return figure


# -- limits


def limits(page: Page, found: Found) -> None:
    """Q ∧ q ≤ τ: robustness among plausible inputs, the limit applied to measured and to predicted quality."""
    page.text(
        "Robustness over the tests of three and four perturbations that are no worse than a limit, here the median of "
        "their measured quality; accuracy is measured, only quality is predicted. A test is misplaced where the "
        "prediction puts it on the wrong side. In the last column are accuracies of two tests whose quality differs by "
        f"less than {SAME:.0%} of its range: quality alone does not say what a model makes of inputs."
    )
    told = [ways for ways in found if ways[0][0].quality.accuracy is not None]
    if not told:
        page.text("*Not run: no outcomes are recorded for these tasks.*")
        return
    pairs = {_title(ways): ways[0][0].quality.equal_accuracies() for ways in told}
    shown = {title: f"{less:.3f} and {more:.3f}" for title, (less, more) in pairs.items()}
    header = ["task", "limit", "robustness without limit", "by measured quality"]
    header += [f"by {WAYS[way].title} (misplaced)" for way in (PUBLISHED, OURS)]
    rows = [[_title(ways), *_limited(ways), shown[_title(ways)]] for ways in told]
    page.table([*header, "accuracy at equal quality"], rows, "seed 0, draw 0")
    page.claim(
        "Equal scores can belong to plausible and to implausible inputs",
        "shown by examples of one vision task",
        "accuracies at equal quality: " + ", ".join(f"{title} {text}" for title, text in shown.items()),
        True if max(more - less for less, more in pairs.values()) > DIFFERENT else None,
    )


def _limited(ways: list[list[Prediction]]) -> list[str]:
    """A limit, robustness without it, and with it on quality as measured and as predicted, with the misplaced tests."""
    one = ways[0][0].quality
    asked = one.orders > 2
    limit = float(np.median(one.flat[asked]))

    def robustness(kept: Mask) -> str:
        return f"{one.known_accuracy[asked & kept].mean():.3f}" if (asked & kept).any() else "no test"

    inside = one.within(one.flat, limit)
    row = [f"{one.name} {'≥' if one.higher_is_better else '≤'} {limit:.3f}", robustness(asked), robustness(inside)]
    for way in (PUBLISHED, OURS):
        kept = one.within(ways[way][0].values, limit)
        row.append(f"{robustness(kept)} ({(kept != inside)[asked].mean():.1%})")
    return row
