"""Mean average precision of a region."""

from __future__ import annotations

import numpy as np
import pytest

from testifai.data.annotations import pack
from testifai.errors import InputError
from testifai.oracles.average_precision import matches, mean_average_precision
from testifai.perturb import Perturbation
from testifai.present.export import write_boxes
from testifai.runs.outcomes import Outcomes
from testifai.space import Space
from testifai.tomogram import Tomogram

IMAGES = 60
SPACE = Space({"fog": Perturbation("fog", lambda x, by, rng: x, [0, 1, 2, 3])})


def expected():
    generator = np.random.default_rng(5)
    found = []
    for _ in range(IMAGES):
        count = int(generator.integers(1, 4))
        corner = generator.integers(0, 50, (count, 2))
        found.append(np.column_stack([corner, corner + 20, np.ones(count), generator.integers(0, 3, count)]))
    return found


def seen(severity):
    """Boxes as expected, fewer and further off the higher the severity."""
    generator = np.random.default_rng(severity)
    found = []
    for image in expected():
        rows = image[generator.random(len(image)) > 0.2 * severity].copy()
        rows[:, :4] += generator.normal(0, severity, rows[:, :4].shape)
        rows[:, 4] = generator.random(len(rows))
        found.append(rows)
    return found


def tomogram(images=IMAGES, tests=4):
    outcomes = Outcomes(IMAGES)
    places = np.arange(images)
    for test in range(tests):
        kept = {"detections": pack(seen(test)[:images]), "expected": pack(expected()[:images])}
        outcomes.record(test, places, np.ones(images, bool), kept)
    return Tomogram(SPACE, outcomes, np.arange(IMAGES))


def test_of_a_test_it_is_cocos_and_of_a_region_the_mean():
    alone = [mean_average_precision(matches(seen(severity), expected())) for severity in range(4)]
    run = tomogram()
    assert run.average_precision("fog == 2").estimate == pytest.approx(alone[2], abs=1e-6)
    found = run.average_precision("fog >= 1")
    assert found.estimate == pytest.approx(np.mean(alone[1:]), abs=1e-6)
    assert (found.tests, found.left_out, found.inputs) == (3, 0, IMAGES)
    assert found.low < found.estimate < found.high
    assert run.average_precision("fog == 0").estimate == pytest.approx(1)
    assert run.average_precision("fog >= 1", iou=0.5).estimate > found.estimate


def test_the_interval_is_as_wide_as_other_images_make_the_mean():
    run = tomogram()
    found = run.average_precision("fog == 3")
    generator = np.random.default_rng(0)
    boxes, wanted = seen(3), expected()
    again = []
    for _ in range(60):
        rows = generator.integers(0, IMAGES, IMAGES)
        again.append(mean_average_precision(matches([boxes[i] for i in rows], [wanted[i] for i in rows])))
    assert (found.high - found.low) / 2 / 1.96 == pytest.approx(np.std(again), rel=0.35)


def test_tests_that_were_not_tried_are_left_out():
    found = tomogram(images=20, tests=3).average_precision("fog >= 1")
    assert (found.tests, found.left_out, found.inputs) == (2, 1, 20)
    nothing = tomogram(tests=1).average_precision("fog >= 1")
    assert np.isnan(nothing.estimate)
    assert nothing.as_dict()["estimate"] is None
    assert nothing.left_out == 3


def test_bad_questions_are_one_line():
    outcomes = Outcomes(4)
    outcomes.record(0, np.arange(4), np.ones(4, bool))
    with pytest.raises(InputError, match=r'^average precision: this run kept no detections; add keep = \["detect'):
        Tomogram(SPACE, outcomes, np.arange(4)).average_precision("fog == 0")
    with pytest.raises(InputError, match=r"^iou: 0.52 is not accepted; one of 0.5, 0.55"):
        tomogram().average_precision("fog == 0", iou=0.52)


def test_boxes_are_exported_with_their_test_and_input(tmp_path):
    run = tomogram(images=20, tests=3)
    count = write_boxes(run, tmp_path / "boxes.npz")
    arrays = np.load(tmp_path / "boxes.npz")
    assert len(arrays["boxes"]) == len(arrays["severities"]) == len(arrays["inputs"]) == count
    chosen = (arrays["severities"][:, 0] == 2) & (arrays["inputs"] == 7)
    assert np.allclose(arrays["boxes"][chosen & arrays["expected"]], expected()[7])
    assert np.allclose(arrays["boxes"][chosen & ~arrays["expected"]], seen(2)[7])
    with pytest.raises(InputError, match=r"^export: boxes are written as .npz, got 'boxes.csv'"):
        write_boxes(run, tmp_path / "boxes.csv")
