"""Section `locality`: composed systems, predicted from local tables, measured on fresh inputs, and swept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import testifai as ta
from evaluation import drawing
from evaluation.locality_answers import PER_CLASS, SUBJECTS, halves
from evaluation.locality_words import one_of, rates, short, short_number
from evaluation.page import Page
from evaluation.setting import Setting
from testifai.data import load
from testifai.locality import Agreement, Local, agreement, compose, composite, paired
from testifai.models.onnx import OnnxModel

SEED = 0
SPLITS = 10
BUDGETS = (10, 50, PER_CLASS)  # inputs per class behind a prediction
THRESHOLD = 0.8
DIGITS, SIGNS = SUBJECTS


def agree(first: Any, second: Any) -> Any:
    """Two cameras look at the same sign: an answer only if both say the same."""
    return first if first == second else "no answer"


def majority(first: Any, second: Any, third: Any) -> Any:
    """Three cameras: what at least two of them say."""
    return first if first in (second, third) else second if second == third else "no answer"


def write(page: Page, setting: Setting) -> None:
    """An adder of digits, cameras that look at signs, and the adder over a continuous level."""
    with page.part("Global robustness of an adder of two digits"):
        _adder(page, DIGITS.answers(setting), setting.times(SPLITS))
    with page.part("Global robustness of cameras that look at the same sign"):
        _cameras(page, SIGNS.answers(setting))
    with page.part("An adder over a continuous level"):
        _sweeps(page, setting)


def _adder(page: Page, everything: Local, splits: int) -> None:
    table, fresh = halves(everything, SEED)
    found = agreement(compose(table), paired(fresh, seed=SEED))
    page.text(
        f"All {len(found.tuples)} pairs of classes; predicted from the {PER_CLASS} inputs per class alone (Eq. 4, "
        "errors that cancel included), measured on pairs of the other inputs (Eq. 5). The last column is what one gets "
        "without errors that cancel: both digits right."
    )
    _told_and_seen(page, found, [("both right", _both_right(table))])
    page.figure(
        "adder", _scatter(found), "The adder: predicted and measured, a point per pair of digits.", f"seed {SEED}"
    )
    page.text(
        f"The same over {splits} random divisions of the inputs, and from fewer of them. Inside: measured within the "
        "interval predicted at 95 % for a measurement of this size. A dependence of the parts, of which "
        "there is none in pairs drawn at random, may be claimed in 5 % of divisions by chance; divisions share most of "
        "their inputs."
    )
    divided = {count: _divided(everything, splits, count) for count in BUDGETS}
    cells = sum(map(len, table.severities)) * len(table.classes)
    page.table(
        ["inputs per class", "inferences", "mean difference", "per pair, absolute", "inside", "dependence claimed"],
        [
            [
                count, f"{count * cells:,}", f"{short_number(one.mean)} ± {short_number(one.deviation)}",
                short_number(one.absolute), f"{one.inside:.1%}", f"{one.alarms} of {splits}",
            ]
            for count, one in divided.items()
        ],
        f"seeds 1–{splits}",
    )  # fmt: skip
    inside = divided[PER_CLASS].inside
    page.claim(
        "global robustness of the adder follows from local robustness",
        "no figure",
        f"predicted {rates(found.told.overall)}, measured {rates(found.seen.overall)}; {inside:.1%} of pairs inside "
        f"their 95 % interval over {splits} divisions",
        inside >= 0.93,
    )


def _both_right(table: Local) -> list[float]:
    """(property): the chance that both are right, over all pairs of classes as they are counted once."""
    pairs = compose(table, lambda *labels: labels, tuples=compose(table).tuples)
    return [float(one) for one in pairs.by_condition.rate]


@dataclass(frozen=True)
class Divided:
    """Prediction and measurement over random divisions: predicted less measured, and how often within the interval."""

    mean: float
    deviation: float
    absolute: float
    inside: float
    alarms: int


def _divided(everything: Local, splits: int, per_class: int) -> Divided:
    found = []
    for seed in range(1, splits + 1):
        table, fresh = halves(everything, seed, per_class)
        found.append(agreement(compose(table), paired(fresh, seed=seed)))
    means = [-one.mean_difference for one in found]
    return Divided(
        float(np.mean(means)),
        float(np.std(means, ddof=1)),
        float(np.mean([np.abs(one.difference).mean() for one in found])),
        float(np.mean([one.inside.mean() for one in found])),
        sum(bool(one.disagrees.any()) for one in found),
    )


def _cameras(page: Page, everything: Local) -> None:
    table, fresh = halves(everything, SEED)
    page.text(
        "Two cameras must agree, or two of three; each sees another picture of the same kind of sign under the same "
        f"property and severity. No answer, or a wrong one, is a failure. {len(table.classes)} kinds of signs."
    )
    alone = table.by_property()
    found = []
    for combine, arity in ((agree, 2), (majority, 3)):
        tuples = [(name,) * arity for name in table.classes]
        told = compose(table, combine, arity, tuples=tuples)
        found.append(agreement(told, paired(fresh, combine, arity, tuples=tuples, seed=SEED)))
    rows = [
        [
            short(name),
            rates(one_of(alone, place)),
            *(rates(one_of(side.by_condition, place)) for one in found for side in (one.told, one.seen)),
        ]
        for place, name in enumerate(table.properties)
    ]
    rows.append(
        ["all", rates(table.overall()), *(rates(side.overall) for one in found for side in (one.told, one.seen))]
    )
    header = ["property", "one camera", "both agree: predicted", "measured", "two of three: predicted", "measured"]
    page.table(header, rows, f"seed {SEED}")
    for name, one in zip(("both agree", "two of three"), found, strict=True):
        count = int(one.disagrees.sum())
        page.text(
            f"{name.capitalize()}: measured within the predicted interval in {one.inside.mean():.1%} of "
            f"{one.inside.size} signs × properties; a dependence of the parts is shown for {count}."
        )


def _told_and_seen(page: Page, found: Agreement, more: Sequence[tuple[str, list[float]]]) -> None:
    told, seen = found.told, found.seen
    rows = [
        [
            short(name),
            rates(one_of(told.by_condition, place)),
            rates(one_of(seen.by_condition, place)),
            *(short_number(values[place]) for _, values in more),
        ]
        for place, name in enumerate(found.conditions)
    ]
    rows.append(["all", rates(told.overall), rates(seen.overall), *(short_number(np.mean(one)) for _, one in more)])
    page.table(["property", "predicted", "measured", *(name for name, _ in more)], rows, f"seed {SEED}")


def _scatter(found: Agreement) -> Any:
    figure, axes = drawing.axes(1, len(found.conditions), width=1.9, height=2.1, sharex=True, sharey=True)
    told, seen = found.predicted, found.measured
    ends = [float(np.floor(10 * min(told.low.min(), seen.rate.min())) / 10), 1.0]
    for place, name in enumerate(found.conditions):
        ax = axes[0, place]
        arms = [told.rate[:, place] - told.low[:, place], told.high[:, place] - told.rate[:, place]]
        ax.plot(ends, ends, color=drawing.COLOURS["truth"], linewidth=0.6)
        ax.errorbar(
            seen.rate[:, place], told.rate[:, place], yerr=arms, fmt="o", markersize=2, linewidth=0.5,
            color=drawing.COLOURS["ours"],
        )  # fmt: skip
        ax.set_title(short(name))
        ax.set_xlabel("measured")
    axes[0, 0].set_ylabel("predicted")
    return figure


def _sweeps(page: Page, setting: Setting) -> None:
    model, data = OnnxModel(setting.file(DIGITS.model)), load("npz", setting.file(DIGITS.data))
    adder = composite(model, data, seed=SEED)
    page.text(
        f"The share of the levels at which accuracy is at least {THRESHOLD:g} (ASAP, from few inputs at each "
        "level): of the model, and of the adder of two digits under the same level, as `testifai sweep SPEC.toml "
        "--arity 2` does it."
    )
    rows = []
    for name in ("classic.gaussian_noise", "classic.rotation", "classic.rotation_clockwise"):
        alone = ta.sweep_model(model, data, name, THRESHOLD, seed=SEED)
        both = ta.sweep_model(adder.model, adder.data, adder.under(name), THRESHOLD, seed=SEED)
        # Independent parts, both right, hold the threshold where one holds its square root.
        root = ta.sweep_model(model, data, name, THRESHOLD**0.5, seed=SEED)
        rows.append([name, *(f"{one.robustness:.3f} ± {one.bound:.3f}" for one in (alone, both, root))])
    page.table(["perturbation", "model", "adder", f"model at a threshold of √{THRESHOLD:g}"], rows, f"seed {SEED}")
