from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testifai.data.annotations import ious, pack
from testifai.errors import InputError
from testifai.oracles import resolve
from testifai.oracles.detection import Detection, match

THERE = pack(
    [np.array([[0, 0, 10, 10, 1, 0], [20, 20, 30, 30, 1, 1]]), np.zeros((0, 6)), np.array([[0, 0, 4, 4, 1, 0]])]
)
FOUND = pack(
    [
        np.array([[0, 0, 10, 9, 0.9, 0], [20, 20, 30, 30, 0.8, 0], [40, 40, 50, 50, 0.2, 1]]),
        np.zeros((0, 6)),
        np.array([[0, 0, 4, 4, 0.24, 0]]),
    ],
    5,
)


def test_f1_by_class_overlap_and_confidence():
    outcome = Detection().fitted(THERE).judge(FOUND, THERE, None)
    # One right, one of another class and so wrong, one missed; nothing where nothing is; not sure enough.
    assert outcome.value.tolist() == [0.5, 1, 0]
    assert outcome.passed.tolist() == [True, True, False]
    assert Detection(confidence=0.2).fitted(THERE).judge(FOUND, THERE, None).value[2] == 1
    assert Detection(f1=0.6).fitted(THERE).judge(FOUND, THERE, None).passed.tolist() == [False, True, False]
    assert Detection(iou=0.95).fitted(THERE).judge(FOUND, THERE, None).value[0] == 0


def test_without_labels_the_clean_boxes_are_expected():
    oracle = Detection().fitted(None)
    assert (oracle.needs_clean, oracle.needs_labels, oracle.describe()["against"]) == (True, False, "clean")
    reference = oracle.reference(FOUND)
    assert (reference[..., 5] >= 0).sum(axis=1).tolist() == [2, 0, 0]
    assert oracle.judge(FOUND, None, reference).value.tolist() == [1, 1, 1]
    assert Detection(against="clean").fitted(THERE).needs_clean


def test_what_it_says_of_itself_leads_back_to_it():
    assert resolve(Detection(iou=0.4).fitted(THERE).describe()).describe() == {
        "use": "detection", "iou": 0.4, "confidence": 0.25, "f1": 0.5, "against": "labels"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        (None, 3, "needs labels, and the data have none; leave it out"),
        (np.zeros(3, np.int64), 3, r"the labels have shape \(3,\); boxes are needed"),
        (THERE, 1, "boxes of class 1 cannot be found by the model; accepted: 0 … 0, its classes"),
    ],
)
def test_labels_that_cannot_be_judged(labels, classes, message):
    with pytest.raises(InputError, match=message):
        Detection(against="labels").check(labels, classes)


def test_outputs_that_are_no_boxes_are_refused_and_boxes_where_a_class_is_needed():
    with pytest.raises(InputError, match=r"outputs of shape \(3, 4\); boxes are needed"):
        Detection(against="labels").judge(np.zeros((3, 4), np.float32), THERE, None)
    with pytest.raises(InputError, match="for boxes use the oracle detection"):
        resolve("label").judge(FOUND, np.zeros(3, np.int64), None)


@pytest.mark.parametrize("options", [{"iou": 0}, {"confidence": 2}, {"f1": 0}, {"against": "both"}])
def test_options_are_checked(options):
    with pytest.raises(InputError, match=f"oracle detection: {next(iter(options))}"):
        Detection(**options)


A, B = [0, 0, 10, 10], [50, 50, 60, 60]


def rows(*boxes: list[float]) -> np.ndarray:
    return np.array(boxes, np.float32).reshape(-1, 6)


def test_the_surest_takes_the_box() -> None:
    found = rows([*A, 0.5, 1], [*A, 0.9, 1])
    assert match(found, rows([*A, 1, 1]), 0.5, 0.25).pairs == ((1, 0),)


def test_another_class_is_wrong_and_leaves_the_box_missed() -> None:
    matched = match(rows([*A, 0.9, 2]), rows([*A, 1, 1]), 0.5, 0.25)
    assert (matched.pairs, matched.wrong, matched.missed, matched.f1) == ((), (0,), (0,), 0.0)


def test_a_crowd_is_neither_missed_nor_held_against_the_model() -> None:
    matched = match(rows([2, 2, 4, 4, 0.9, 1], [*B, 0.8, 1]), rows([*A, 0, 1]), 0.5, 0.25)
    assert (matched.wrong, matched.missed) == ((1,), ())


def test_nothing_expected_and_nothing_found_is_right() -> None:
    assert match(rows(), rows(), 0.5, 0.25).f1 == 1.0
    assert match(rows([*A, 0.1, 0]), rows(), 0.5, 0.25).f1 == 1.0
    assert match(rows([*A, 0.9, 0]), rows(), 0.5, 0.25).f1 == 0.0
    assert match(rows(), rows([*A, 1, 0]), 0.5, 0.25).f1 == 0.0


@given(st.integers(0, 10_000))
def test_pairs_are_of_one_class_and_overlap(seed: int) -> None:
    generator = np.random.default_rng(seed)

    def some(count: int) -> np.ndarray:
        corner = generator.integers(0, 12, (count, 2))
        sides, label = generator.integers(2, 12, (count, 2)), generator.integers(0, 2, count)
        return np.column_stack([corner, corner + sides, generator.random(count), label]).astype(np.float32)

    found, expected = some(6), some(5)
    expected[:, 4] = 1
    matched = match(found, expected, 0.3, 0.2)
    overlap = ious(found, expected)
    seen = [place for place, _ in matched.pairs] + list(matched.wrong)
    wanted = [place for _, place in matched.pairs] + list(matched.missed)
    assert sorted(seen) == np.flatnonzero(found[:, 4] >= 0.2).tolist()
    assert sorted(wanted) == list(range(5))
    assert all(found[i, 5] == expected[j, 5] and overlap[i, j] >= 0.3 for i, j in matched.pairs)
    assert matched.f1 == pytest.approx(2 * len(matched.pairs) / (len(seen) + len(wanted)))
