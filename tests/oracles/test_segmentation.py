"""Label maps judged pixel by pixel."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

import testifai as ta
from testifai.errors import InputError
from testifai.oracles import resolve
from testifai.oracles.segmentation import Segmentation, mean_iou
from testifai.space import Space


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
    outcome = Segmentation(0.15, against="labels").judge(found, expected, None)
    wanted = [brute_force(*maps, 255) for maps in zip(found, expected, strict=True)]
    assert outcome.value == pytest.approx(wanted)
    assert np.array_equal(outcome.passed, np.float32(wanted) >= 0.15)


def test_scores_count_by_their_highest_class():
    scores = np.random.default_rng(0).normal(size=(3, 5, 8, 8)).astype(np.float32)
    oracle = Segmentation(against="labels")
    maps = scores.argmax(axis=1)
    assert np.array_equal(oracle.judge(scores, maps, None).value, np.ones(3, np.float32))
    assert np.array_equal(oracle.reference(scores), maps)


def test_without_labels_the_clean_maps_are_expected():
    clean = np.random.default_rng(0).integers(0, 3, (4, 6, 6))
    oracle = Segmentation().fitted(None)
    assert oracle.needs_clean
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
        (
            np.zeros((2, 3, 4, 4)),
            np.full((2, 4, 4), 7),
            "labels: 7 is no class of the model; accepted: 0 … 2, and",
        ),
    ],
)
def test_what_cannot_be_judged_is_one_line(outputs, labels, line):
    with pytest.raises(InputError, match=line):
        Segmentation(against="labels").judge(outputs, labels, None)


def test_labels_are_checked_before_anything_runs():
    oracle = Segmentation().fitted(np.zeros((1, 2, 2), np.int16))
    with pytest.raises(InputError, match=r"the labels are float64 of shape \(3,\); label maps are needed: whole num"):
        oracle.check(np.zeros(3), None)
    labels = np.zeros((3, 4, 4), np.int16)
    labels[1, 2, 2] = 21
    labels[2] = 255
    oracle.check(labels, 22)
    with pytest.raises(InputError, match=r"labels: 21 is no class of the model; accepted: 0 … 20, and 255 for pixels"):
        oracle.check(labels, 21)
    with pytest.raises(InputError, match="against = 'labels' needs labels, and the data have none; leave it out"):
        Segmentation(against="labels").check(None, 3)
    with pytest.raises(InputError, match="iou"):
        resolve({"use": "segmentation", "iou": 0})


# -- a whole scan -----------------------------------------------------------------------------------------------------

SIZE = (60, 80)


def scenes(count=6):
    """Grounds of one grey with discs and bars of two others, and which pixel is which."""
    random = np.random.default_rng(2)
    images, maps = np.full((count, *SIZE, 3), 60, np.uint8), np.zeros((count, *SIZE), np.uint8)
    for image, labels in zip(images, maps, strict=True):
        x, y = (int(one) for one in random.integers(20, 60, 2))
        cv2.circle(labels, (x, y), 14, 1, -1)
        cv2.rectangle(labels, (5, 5), (30, 18), 2, -1)
        image[labels == 1] = 150
        image[labels == 2] = 240
    return images, maps


def by_grey(images):
    """Each pixel's class by how light it is."""
    return np.digitize(images[..., 0], [105, 195])


SPACE = Space(
    {"turn": ("classic.rotation", [0, 3]), "scale": ("deeptest.scale", [0, 1, 2]), "dark": "classic.brightness"}
)


@pytest.mark.parametrize("labelled", [True, False])
def test_maps_move_along_with_their_images(labelled, tmp_path):
    images, maps = scenes()
    options = {"strategy": "full", "surrogate": "none", "oracle": "segmentation", "keep": ["value"]}
    data = (images, maps) if labelled else images
    run = ta.scan(by_grey, data, SPACE, **options, store=tmp_path / "run.db")
    values = [run.outcomes.kept(test, "value") for test in range(SPACE.size)]
    moved = [test for test in range(SPACE.size) if SPACE.configuration(test)[2] == 0]
    # The model is right wherever nothing got darker, but for pixels between two greys.
    assert np.array_equal(values[0], np.ones(len(images), np.float32))
    assert min(float(values[test].min()) for test in moved) > 0.8
    assert run.query("dark == 5").robustness < 0.2
    again = ta.scan(by_grey, data, SPACE, **options, store=tmp_path / "run.db")
    assert again.inferences == run.inferences


def test_scores_of_pixels_are_judged_like_maps():
    images, maps = scenes()
    options = {"strategy": "full", "surrogate": "none", "oracle": "segmentation", "keep": ["value"]}

    def scores(batch):
        return np.eye(3, dtype=np.float32)[by_grey(batch)].transpose(0, 3, 1, 2)

    one = ta.scan(scores, (images, maps), SPACE, **options)
    two = ta.scan(by_grey, (images, maps), SPACE, **options)
    assert np.array_equal(one.passes, two.passes)


@pytest.mark.parametrize(
    ("model", "labels", "line"),
    [
        (lambda batch: by_grey(batch)[:, ::2, ::2], None, "maps of 40 × 30 pixels, expected are 80 × 60; a model"),
        (lambda batch: np.zeros(len(batch)), None, r"returned float64 of shape \(32,\); label maps \(N, H, W\) or"),
        (by_grey, np.full((6, *SIZE), 40000), "labels: 40000 is no class of a pixel; accepted: 0 … 32767"),
        (by_grey, np.zeros(6, int), r"the labels are int64 of shape \(6,\); label maps are needed"),
        (by_grey, np.zeros((4, *SIZE), int), "4 labels for 6 inputs"),
    ],
)
def test_a_scan_that_cannot_be_is_one_line(model, labels, line):
    images, maps = scenes()
    with pytest.raises(InputError, match=line):
        ta.scan(model, (images, maps if labels is None else labels), SPACE, oracle="segmentation", budget=40)
