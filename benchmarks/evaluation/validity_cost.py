"""What the time of a scan is spent on: transforming inputs, inference, or training what predicts the rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import seconds as shortest
from numpy.typing import NDArray
from replay import replay

from evaluation.page import Page, ratio_of_times, seconds
from evaluation.setting import MissingFileError, Setting
from evaluation.tasks import TASKS, Task
from evaluation.validity_subjects import clean_inputs, encoder, model_under_test, perturbations
from testifai.support.batches import take
from testifai.tomogram import Tomogram

INPUTS, PHOTOGRAPHS = 100, 10  # that are timed at a time
TURNS = 3
AXES, LEVELS = 3, 6
PUBLISHED = {"mnist": 76.7, "cifar10": 0.09, "driving": 0.20, "gtsrb": 2.3, "qqp": 0.30}
# Shares of the inferences of full tomography that our strategy may spend: of many inputs, and of fewer.
MANY, SHARE, LARGER_SHARE = 10_000, 0.01, 0.05


@dataclass(frozen=True)
class Cost:
    """Seconds of one core for one input: of each axis at each severity, and of the model."""

    transformation: NDArray[np.float64]  # axes, severities
    inference: float

    def of_tests(self) -> NDArray[np.float64]:
        """The transformation of one input under each test: what its perturbations take, one after the other."""
        tests = np.indices((LEVELS,) * AXES)
        return np.asarray(sum(axis[at] for axis, at in zip(self.transformation, tests, strict=True)))

    @property
    def ratio(self) -> float:
        """Of transformation to inference, over all tests of three axes."""
        return float(self.of_tests().mean() / self.inference)


@dataclass(frozen=True)
class Spent:
    """The seconds of one plan."""

    plan: str
    inferences: int
    transformation: float
    inference: float
    training: float


def write(page: Page, setting: Setting) -> None:
    """Both tables; tasks whose data are missing are told."""
    page.text(
        f"Processor time of one core, the shortest of {TURNS} turns on {INPUTS} inputs ({PHOTOGRAPHS} photographs), in "
        "three dimensions: each perturbation at each severity, and the model by onnxruntime (of question pairs the "
        "encoder on the edited question; the other one is encoded once for all tests). A test's transformation is the "
        "sum of its perturbations', without what a scan saves by sharing them among tests. The paper ran its models on "
        "a GPU (Tesla T4), which makes inference cheap beside transformation, and does not say how it measured: what "
        "can be compared is which part dominates."
    )
    costs: dict[str, Cost] = {}
    for task in TASKS:
        try:
            costs[task.name] = measured(task, setting)
        except MissingFileError as error:
            page.missing.append(f"time of {task.title}: {error}")
            page.text(f"*{task.title}: not run: {error} not found.*")
    if costs:
        timed = [task for task in TASKS if task.name in costs]
        per_inference(page, timed, costs)
        plans(page, timed, costs, setting)


# -- for one inference


def measured(task: Task, setting: Setting) -> Cost:
    """The task's perturbations and model on some inputs; raises MissingFileError."""
    inputs = clean_inputs(task, setting)
    rows = np.arange(min(PHOTOGRAPHS if task.name == "driving" else INPUTS, len(inputs)))
    batch, infer = take(inputs, rows), inference(task, setting)
    times = np.zeros((AXES, LEVELS))
    for axis, step in enumerate(perturbations(task)[:AXES]):
        for severity in range(1, LEVELS):
            times[axis, severity] = _shortest(lambda step=step, at=severity: step.apply(batch, at, indices=rows))
    return Cost(times / len(rows), _shortest(lambda: infer(batch)) / len(rows))


def _shortest(task: Callable[[], Any]) -> float:
    task()  # the first turn loads and prepares
    return shortest(task, TURNS)


def inference(task: Task, setting: Setting) -> Callable[[Any], Any]:
    """What runs the model; raises MissingFileError."""
    if task.name != "qqp":
        return model_under_test(task, setting)
    from testifai.models.texts.encoder import Encoder

    return Encoder(encoder(), cache_mb=0)


def per_inference(page: Page, timed: Sequence[Task], costs: dict[str, Cost]) -> None:
    """The table of the paper's ratios, and what becomes of what it says of them."""
    rows = []
    for task in timed:
        cost = costs[task.name]
        each = [seconds(1000 * float(axis[1:].mean())) for axis in cost.transformation]
        mean = seconds(1000 * float(cost.of_tests().mean()))
        names = ", ".join(task.axes[:AXES])
        rows.append(
            [task.title, names, ", ".join(each), mean, seconds(1000 * cost.inference), ratio_of_times(cost.ratio),
             f"{PUBLISHED[task.name]:g} ×"]
        )  # fmt: skip
    header = ["task", "perturbations", "each, for 1,000 inputs", "mean of the 216 tests", "inference"]
    page.table([*header, "transformation / inference", "published"], rows, "no chance in it but the clock's")
    for claim, heavy in (("Inference dominates", False), ("Transformation dominates", True)):
        said = [task for task in TASKS if (PUBLISHED[task.name] > 1) == heavy]
        seen = [task for task in said if task.name in costs]
        ratios = [f"{task.title} {ratio_of_times(costs[task.name].ratio)}" for task in seen]
        ratios += [f"{task.title} not measured" for task in said if task not in seen]
        page.claim(
            f"{claim} on {', '.join(task.title for task in said)}",
            f"transformation / inference {', '.join(f'{PUBLISHED[task.name]:g}' for task in said)}",
            ", ".join(ratios),
            all((costs[task.name].ratio > 1) == heavy for task in seen) if seen else None,
        )


# -- for a plan


def plans(page: Page, timed: Sequence[Task], costs: dict[str, Cost], setting: Setting) -> None:
    """What the published plan and ours take in three dimensions."""
    rows = []
    for task in timed:
        try:
            cube = task.cube(setting)
        except MissingFileError as error:
            page.missing.append(f"plans of {task.title}: {error}")
            continue
        share = SHARE if cube.inputs >= MANY else LARGER_SHARE
        budget = round(share * cube.space.size * cube.inputs)
        whole = np.full(cube.space.shape, cube.inputs)
        found = [_spent("full tomography", costs[task.name], whole, 0.0)]
        begin = time.process_time()
        partial = replay(cube, "ordered", surrogate="forest", stopping="window")
        found.append(_trained("published: order ≤ 2, window, forest", costs[task.name], partial, begin))
        begin = time.process_time()
        ours = replay(cube, "adaptive", budget=budget, seed=0)
        found.append(_trained(f"ours: adaptive, {share:.0%} of all inferences", costs[task.name], ours, begin))
        rows += [
            [task.title, one.plan, f"{one.inferences:,}",
             *(seconds(part) for part in (one.transformation, one.inference, one.training)),
             seconds(one.transformation + one.inference + one.training)]
            for one in found
        ]  # fmt: skip
    if rows:
        page.text(
            "The same for whole plans: inferences as replayed from the recorded outcomes, times the seconds above. "
            "Training is the processor time of the replay, choosing what to run next and all estimates included."
        )
        header = ["task", "plan", "inferences", "transformation", "inference", "training", "together"]
        page.table(header, rows, "seed 0")


def _trained(plan: str, cost: Cost, tomogram: Tomogram, begin: float) -> Spent:
    """A plan whose replay began at a processor time; it ends when all tests are estimated."""
    _ = tomogram.estimate
    return _spent(plan, cost, tomogram.trials, time.process_time() - begin)


def _spent(plan: str, cost: Cost, trials: NDArray[Any], training: float) -> Spent:
    inferences = int(trials.sum())
    return Spent(plan, inferences, float((cost.of_tests() * trials).sum()), cost.inference * inferences, training)
