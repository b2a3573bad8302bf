"""The tables of the DeepEST paper's five subjects: failures found, no bias, intervals that cover and are not idle."""

from __future__ import annotations

import csv
import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from testifai.operational import conclude, draw, frame, resolve

FOLDER = Path(os.environ.get("TESTIFAI_DATA", "../shared")) / "reference" / "deepest"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no tables of DeepEST (set TESTIFAI_DATA)")

SUBJECTS = ["CN5_MNIST", "LN5_MNIST", "CN12_CIFAR10", "VGG16_CIFAR10", "VGG16_CIFAR100"]
# As used in the reference implementation; the paper's rule for the others.
THRESHOLDS = {"dsa": [0.707, 0.757, 1.574, 2.133, 2.503], "lsa": [30243.43, 1034.12, 460.2, 3052.397, 111.898]}
# Mean failures at 200 labels in 30 repetitions of the reference implementation.
FAILURES = {
    "confidence": [44.5, 65.5, 103.9, 83.9, 129.9],
    "dsa": [30.1, 36.5, 95.9, 17.7, 78.0],
    "lsa": [23.6, 24.0, 38.3, 14.5, 68.9],
    "combined": [12.7, 23.9, 73.7, 24.9, 114.1],
}
WIDEST = {"srs": 1.5, "css": 1.5}
OPTIONS = {"css": {"trusting": True}}  # without trust it holds as well, and is up to five times as wide on MNIST


@cache
def table(subject):
    with (FOLDER / f"{subject}.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))[1:]
    values = np.array([[float(cell) for cell in row[3:7]] for row in rows])
    failed = np.array([row[1].strip().lower() == "fail" for row in rows])
    risks = {"confidence": 1 - values[:, 0], "dsa": values[:, 1], "lsa": values[:, 2], "combined": 1 - values[:, 3]}
    return failed, {**risks, "srs": risks["confidence"], "css": risks["confidence"]}


@pytest.mark.parametrize("share", [0.3, pytest.param(1, marks=pytest.mark.simulation)])
@pytest.mark.parametrize("technique", ["srs", "css", *FAILURES])
@pytest.mark.parametrize("subject", SUBJECTS)
def test_published_figures(subject, technique, share):
    failed, risks = table(subject)
    number = SUBJECTS.index(subject)
    chosen = resolve(technique, threshold=THRESHOLDS.get(technique, [None] * 5)[number], **OPTIONS.get(technique, {}))
    repetitions = round(share * (200 if technique in FAILURES else 100))
    whole, truth = frame(risk=risks[technique]), 1 - failed.mean()
    answers = [
        conclude(chosen, whole, draw(chosen, whole, 200, np.random.default_rng(seed), failed.__getitem__))
        for seed in range(repetitions)
    ]
    accuracy = np.array([a.accuracy for a in answers])
    assert abs(accuracy.mean() - truth) < 3 * accuracy.std() / np.sqrt(repetitions)
    covered = np.mean([a.low <= truth <= a.high for a in answers])
    assert covered >= 0.93 - 3 * np.sqrt(0.93 * 0.07 / repetitions)
    error = np.sqrt(((accuracy - truth) ** 2).mean())
    # A fifth more, for the error of a heavy-tailed error over so few repetitions.
    assert np.mean([a.high - a.low for a in answers]) <= 1.2 * WIDEST.get(technique, 4) * 2 * 1.96 * error
    if technique in FAILURES:
        found = np.array([a.failures for a in answers])
        deviation = found.std() * np.sqrt(1 / repetitions + 1 / 30)
        assert abs(found.mean() - FAILURES[technique][number]) < 3 * deviation
