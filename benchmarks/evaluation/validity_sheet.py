"""A sheet of perturbed digits with their scores, as in the first paper's Figure 11."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation import drawing
from evaluation.page import Page
from evaluation.setting import Setting
from evaluation.tasks import TASKS, Task
from evaluation.validity_quality import Quality
from evaluation.validity_subjects import perturbations
from testifai.data.sample import demo_data
from testifai.perturb import apply

SUM = 10  # the severity sum of the paper's first two examples


def write(page: Page, setting: Setting) -> None:
    """The sheet; raises MissingFileError."""
    task = next(one for one in TASKS if one.name == "mnist")
    quality = Quality.read(task, setting)
    page.text(
        "The paper shows photographs of its data sets, which are not ours to publish; these are the digits that come "
        "with testifai (`testifai show RUN.db --validity --examples sheet.png` makes such a sheet of any run's own "
        "inputs). Severities "
        f"are of {', '.join(task.axes)}. As in the paper, tests of one severity sum ({SUM}) can be told by their KID, "
        "and tests of one KID can look, and fare, very differently."
    )
    page.figure(
        "sheet",
        _drawn(task, quality, _chosen(quality)),
        "Digits under four tests: the best and the worst of one severity sum, and two of the same KID with accuracies "
        "as far apart as they come.",
        "seed 0",
    )


def _chosen(quality: Quality) -> list[tuple[str, int]]:
    """Names and numbers of the tests to show."""
    of_sum = np.flatnonzero(quality.sums == SUM)
    ranked = of_sum[np.argsort(quality.flat[of_sum], kind="stable")]
    chosen = [("clean", 0), (f"sum {SUM}, best", int(ranked[0])), (f"sum {SUM}, worst", int(ranked[-1]))]
    if quality.accuracy is not None:
        worse, better = quality.equal_pair()
        chosen += [("one KID, accurate", better), ("one KID, inaccurate", worse)]
    return chosen


def _drawn(task: Task, quality: Quality, chosen: list[tuple[str, int]]) -> Any:
    rows, digits = _one_of_each_class()
    figure, axes = drawing.axes(len(chosen), 1, width=6.5, height=0.75)
    for panel, (name, test) in zip(axes[:, 0], chosen, strict=True):
        severities = quality.configurations[test].tolist()
        changed = apply(dict(zip(perturbations(task), severities, strict=True)), digits, indices=rows)
        panel.imshow(np.concatenate(list(changed), axis=1), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        accuracy = "" if quality.accuracy is None else f", accuracy {quality.accuracy[test]:.2f}"
        panel.set_title(
            f"{name}: {tuple(severities)}, KID {quality.flat[test]:.2f}{accuracy}", fontsize=7, loc="left", pad=2
        )
        panel.axis("off")
    return figure


def _one_of_each_class() -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
    """The first embedded digit of each class, and its number."""
    data = demo_data()
    assert data.labels is not None
    rows = np.unique(data.labels, return_index=True)[1]
    return rows, data.inputs[rows]
