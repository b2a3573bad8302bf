"""Section `locality`: the Bayesian-network framework on two vision models, from recorded answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from evaluation import drawing, locality_network, locality_systems
from evaluation.locality_answers import PER_CLASS, SUBJECTS, Subject, halves
from evaluation.locality_words import one_of, rates, short
from evaluation.page import Page
from evaluation.setting import MissingFileError, Setting
from testifai.locality import Confidences, Local, confidences

COLOURS = ("ours", "published", "third", "another", "other")  # of the properties
SEED = 0


def write(page: Page, setting: Setting) -> None:
    """Everything of the framework that has a figure: the paper itself has an example and no measurements."""
    page.title("The Bayesian-network framework: local and global robustness")
    page.text(
        "The paper describes a framework and works one example through; its section Experiments is empty, so there "
        "is no published figure to reach but those of the example. Here the framework is run on two vision models: "
        f"{PER_CLASS} test inputs of each class that the model gets right (half of a class where it has fewer than "
        f"{2 * PER_CLASS}), under noise, rotation to the left and to the right, and brightness down and up (multiplied "
        "by β), one at a time, at five severities each. The inputs left over are the fresh ones of measured systems. "
        "Intervals are 95 %."
    )
    tables: dict[str, Local] = {}
    with page.part("Local robustness"):
        for one in SUBJECTS:
            tables[one.name] = halves(one.answers(setting), SEED)[0]
        _local(page, tables)
    if len(tables) == len(SUBJECTS):
        with page.part("How sure the models are"):
            _confidence(page, tables)
    locality_systems.write(page, setting)
    locality_network.write(page, setting)


def _local(page: Page, tables: Mapping[str, Local]) -> None:
    page.text(
        "LR_p is the mean over classes (Eq. 3) of LR_c,p (Eqs. 1–2); each is the mean over the severities. Lowest and "
        "highest are of single classes. The severities are ours, as the paper gives none: noise σ up to 0.5 of white, "
        "turns up to 45°, β from 0.1 to 10. Whether a sign turned that far still means the same was not judged."
    )
    rows = []
    for one in SUBJECTS:
        table = tables[one.name]
        mean, cells = table.by_property(), table.by_class_and_property()
        for place, name in enumerate(table.properties):
            order = np.argsort(cells.rate[:, place], kind="stable")
            ends = [f"{table.classes[at]}: {rates(one_of(cells, (at, place)))}" for at in (order[0], order[-1])]
            rows.append([one.title, short(name), rates(one_of(mean, place)), *ends])
        rows.append([one.title, "all", rates(table.overall()), "", ""])
    page.table(["model", "property", "LR_p", "lowest class", "highest class"], rows, f"seed {SEED} chooses the inputs")
    page.figure(
        "local",
        _drawn(tables),
        "Local robustness by severity: the mean over classes, and from the worst to the best class.",
        f"seed {SEED}",
    )


def _drawn(tables: Mapping[str, Local]) -> Any:
    figure, axes = drawing.axes(len(SUBJECTS), 5, width=1.9, height=1.7, sharex=True, sharey=True)
    for row, one in enumerate(SUBJECTS):
        table = tables[one.name]
        for place, name in enumerate(table.properties):
            ax, levels = axes[row, place], table.severities[place]
            rate = table.rate[:, place, : len(levels)]
            colour = drawing.COLOURS[COLOURS[place]]
            ax.fill_between(levels, rate.min(axis=0), rate.max(axis=0), color=colour, alpha=0.2, linewidth=0)
            ax.plot(levels, rate.mean(axis=0), color=colour, marker="o", markersize=3)
            ax.set_ylim(-0.02, 1.02)
            ax.set_xticks(levels)
            if row == 0:
                ax.set_title(short(name))
            if row == len(SUBJECTS) - 1:
                ax.set_xlabel("severity")
        axes[row, 0].set_ylabel(f"{one.title}\nshare right")
    return figure


def _confidence(page: Page, tables: Mapping[str, Local]) -> None:
    rows = []
    wider = 0
    for one in SUBJECTS:
        found = _known(tables[one.name], one)
        right, wrong = found.by_property["right"], found.by_property["wrong"]
        for place, name in enumerate(found.properties):
            told, failed = one_of(right, place), one_of(wrong, place)
            wider += bool(told.low > failed.high)
            number = int(found.answers["wrong"][:, place].sum())
            rows.append([one.title, short(name), rates(told), rates(failed), f"{number:,}"])
    page.table(["model", "property", "confidence where right", "where wrong", "wrong answers"], rows, f"seed {SEED}")
    mnist = _known(tables["mnist"], SUBJECTS[0])
    page.text(
        "By class, LeNet-5: mean confidence where it is right / where it is wrong (– where it is never wrong). Their "
        "intervals are in `testifai errors RUN.db --confidence` and `locality.confidences`."
    )
    cells = [mnist.cells[kind].rate for kind in ("right", "wrong")]
    page.table(
        ["class", *map(short, mnist.properties)],
        [
            [
                name,
                *(" / ".join(_number(kind[place, which]) for kind in cells) for which in range(len(mnist.properties))),
            ]
            for place, name in enumerate(mnist.classes)
        ],
        f"seed {SEED}",
    )
    page.claim(
        "confidence per class and property tells how robust a property is",
        "no figure",
        f"wrong answers are less sure than right ones, intervals apart, in {wider} of {len(rows)} models × properties",
        wider == len(rows),
    )


def _known(table: Local, one: Subject) -> Confidences:
    found = confidences(table)
    if found is None:
        raise MissingFileError(f"confidences in {one.recorded}")
    return found


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"
