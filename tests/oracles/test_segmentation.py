"""Label maps judged pixel by pixel."""

from __future__ import annotations

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.oracles import resolve
from testifai.oracles.segmentation import Segmentation, mean_iou


def brute_force(found, expected, void):
    pixels = [(int(one), int(two)) for one, two in zip(found.flat, expected.flat, strict=True) if two != void]
    scores = []
    for label in {label for pair in pixels for label in pair}:
        both = sum(one == two == label for one, two in pixels)
        either = sum(label in pair for pair in pixels)
        scores.append(both / either)
    return np.mean(scores) if scores else 1.0


@pytest.mark.parametrize("seed", range(5))
def test_the_value_is_the_mean_over_classes_found_or_expected(seed):
    random = np.random.default_rng(seed)
    found, expected = random.integers(0, 4, (2, 6, 9, 7))
    expected[random.random(expected.shape) < 0.3] = 255
    outcome = Segmentation(iou=0.15).judge(found, expected, None)
    wanted = [brute_force(*maps, 255) for maps in zip(found, expected, strict=True)]
    assert outcome.value == pytest.approx(wanted)
    assert np.array_equal(outcome.passed, np.float32(wanted) >= 0.15)


def test_scores_count_by_their_highest_class():
    scores = np.random.default_rng(0).normal(size=(3, 5, 8, 8)).astype(np.float32)
    oracle = Segmentation()
    maps = scores.argmax(axis=1)
    assert np.array_equal(oracle.judge(scores, maps, None).value, np.ones(3, np.float32))
    assert np.array_equal(oracle.reference(scores), maps)


def test_without_labels_the_clean_maps_are_expected():
    clean = np.random.default_rng(0).integers(0, 3, (4, 6, 6))
    oracle = Segmentation()
    kept = oracle.reference(clean)
    assert oracle.judge(clean, None, kept).passed.all()
    assert not oracle.judge((clean + 1) % 3, None, kept).passed.any()


def test_nothing_to_judge_is_nothing_wrong():
    assert mean_iou(np.ones((2, 2), int), np.full((2, 2), 255), 255) == 1


@pytest.mark.parametrize(
    ("outputs", "labels", "line"),
    [
        (np.zeros((2, 4, 4), int), np.zeros((2, 8, 6), int), "maps of 4 × 4 pixels, expected are 6 × 8; a model"),
        (np.zeros((2, 3), int), np.zeros((2, 4, 4), int), r"int64 of shape \(2, 3\); label maps \(N, H, W\) or"),
        (np.full((2, 4, 4), 0.5), np.zeros((2, 4, 4), int), r"returned float64 of shape \(2, 4, 4\); label maps"),
        (np.full((2, 4, 4), -1), np.zeros((2, 4, 4), int), r"labels from -1 to -1; 0 … 32767 are accepted"),
        (np.zeros((2, 3, 4, 4)), np.full((2, 4, 4), 7), r"labels: 7 \(image 0\) is no class of the model; accepted: 0"),
    ],
)
def test_what_cannot_be_judged_is_one_line(outputs, labels, line):
    with pytest.raises(InputError, match=line):
        Segmentation().judge(outputs, labels, None)


def test_labels_are_checked_before_anything_runs():
    with pytest.raises(InputError, match=r"labels: float64 of shape \(3,\) is not accepted by the oracle segmentation"):
        Segmentation().check(np.zeros(3), None)
    labels = np.zeros((3, 4, 4), np.uint8)
    labels[1, 2, 2] = 21
    labels[2] = 255
    Segmentation().check(labels, 22)
    with pytest.raises(InputError, match=r"labels: 21 \(image 1\) is no class of the model; accepted: 0 … 20 and 255"):
        Segmentation().check(labels, 21)
    with pytest.raises(InputError, match="iou"):
        resolve({"use": "segmentation", "iou": 0})
