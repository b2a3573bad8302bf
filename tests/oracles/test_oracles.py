from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import f1_score

from testifai import oracles
from testifai.errors import InputError

SCORES = np.array([[3.0, 1.0, 2.5], [0.0, 0.0, -1.0], [1.0, 4.0, 2.0]], dtype=np.float32)


def tables():
    shape = st.tuples(st.integers(1, 8), st.integers(2, 5))
    return hnp.arrays(np.float32, shape, elements=st.integers(-4, 4))


@given(tables(), st.data())
def test_label_agrees_with_a_loop(outputs, data):
    """Whole-number scores, so that ties are common: of equal scores the first column wins."""
    rows, columns = outputs.shape
    expected = np.array(data.draw(st.lists(st.integers(0, columns - 1), min_size=rows, max_size=rows)))
    outcome = oracles.resolve("label").judge(outputs, expected, None)
    for row in range(rows):
        scores = list(outputs[row])
        label = expected[row]
        assert outcome.passed[row] == (scores.index(max(scores)) == label)
        best_other = max(score for column, score in enumerate(scores) if column != label)
        assert outcome.value[row] == scores[label] - best_other
    assert outcome.passed.dtype == bool
    assert outcome.value.dtype == np.float32


def test_nothing_handed_over_is_changed():
    outputs, labels = SCORES.copy(), np.array([0, 0, 1])
    for oracle in (
        oracles.Label(),
        oracles.Consistency(),
        oracles.Tolerance(0.1),
        oracles.Function(lambda o, e, c: e == 0),
    ):
        clean = oracle.reference(outputs)
        oracle.judge(outputs, labels, clean)
        assert np.array_equal(outputs, SCORES)
        assert labels.tolist() == [0, 0, 1]


def test_a_model_of_labels_has_no_margin():
    outcome = oracles.resolve("label").judge(np.array([1, 2, 0]), np.array([1, 1, 0]), None)
    assert outcome.passed.tolist() == [True, False, True]
    assert outcome.value is None


def test_labels_as_floats_or_one_column_are_labels():
    assert oracles.predicted(np.array([2.0, 0.0])).tolist() == [2, 0]
    assert oracles.predicted(np.array([[2], [0]])).tolist() == [2, 0]


def test_fractions_are_no_labels():
    with pytest.raises(InputError, match=r"returned 0\.25 where a class is needed"):
        oracles.predicted(np.array([[1.0], [0.25]]))


@given(st.data())
def test_sets_of_labels_agree_with_sets_and_sklearn(data):
    rows, columns = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 5))
    expected = np.array(data.draw(hnp.arrays(np.uint8, (rows, columns), elements=st.integers(0, 1))))
    outputs = np.array(
        data.draw(hnp.arrays(np.float64, (rows, columns), elements=st.sampled_from([0.0, 0.49, 0.5, 0.9])))
    )
    equal = oracles.Label().judge(outputs, expected, None)
    f1 = oracles.Label(f1=0.6).judge(outputs, expected, None)
    for row in range(rows):
        given_set = {column for column in range(columns) if outputs[row, column] >= 0.5}
        wanted_set = {column for column in range(columns) if expected[row, column]}
        assert equal.passed[row] == (given_set == wanted_set)
        by_sklearn = f1_score(expected[row], outputs[row] >= 0.5, zero_division=1.0)
        assert equal.value[row] == pytest.approx(by_sklearn)
        assert f1.passed[row] == (by_sklearn >= 0.6)


def test_classes_that_never_occur_in_the_labels_may_be_missing_from_the_table():
    outcome = oracles.Label().judge(np.array([[0.9, 0.1, 0.8], [0.9, 0.1, 0.1]]), np.array([[1, 0], [1, 0]]), None)
    assert outcome.passed.tolist() == [False, True]


def test_threshold_of_sets():
    outputs, expected = np.array([[0.3, 0.1]]), np.array([[1, 0]])
    assert not oracles.Label().judge(outputs, expected, None).passed[0]
    assert oracles.Label(threshold=0.2).judge(outputs, expected, None).passed[0]


def test_consistency_compares_with_the_clean_label():
    oracle = oracles.resolve("consistency")
    clean = oracle.reference(SCORES)
    assert clean.tolist() == [0, 0, 1]
    outcome = oracle.judge(SCORES[:, ::-1].copy(), None, clean)
    assert outcome.passed.tolist() == [False, False, True]  # reversed: 2.5 1 3 | -1 0 0 | 2 4 1
    assert outcome.value.tolist() == [-0.5, -1.0, 2.0]


def test_consistency_of_sets():
    oracle = oracles.Consistency(threshold=0.5)
    clean = oracle.reference(np.array([[0.9, 0.6], [0.9, 0.6]]))
    assert oracle.judge(np.array([[0.5, 0.9], [0.9, 0.4]]), None, clean).passed.tolist() == [True, False]


def test_tolerance_is_the_largest_distance_and_includes_eps():
    oracle = oracles.resolve({"use": "tolerance", "eps": 0.5})
    clean = oracle.reference(np.array([[1.0, 2.0], [1.0, 2.0]]))
    outcome = oracle.judge(np.array([[1.25, 1.5], [1.0, 2.75]]), None, clean)
    assert outcome.value.tolist() == [0.5, 0.75]
    assert outcome.passed.tolist() == [True, False]


def test_tolerance_against_the_truth_and_as_a_share_of_it():
    outputs, truth = np.array([[9.0], [100.0], [1.3]]), np.array([10.0, 130.0, 1.0])
    found = oracles.Tolerance(5, "truth").judge(outputs, truth, None)
    assert found.passed.tolist() == [True, False, True]
    np.testing.assert_allclose(found.value, [1, 30, 0.3], rtol=1e-6)
    found = oracles.Tolerance(0.25, "truth", True).judge(outputs[:, 0], truth, None)
    assert found.passed.tolist() == [True, True, False]
    np.testing.assert_allclose(found.value, [1, 30, 0.3], rtol=1e-6)
    relative = oracles.Tolerance(0.25, relative=True)
    assert relative.judge(np.array([0.0, -4.0]), None, np.array([0.0, -5.0])).passed.tolist() == [True, True]
    with pytest.raises(InputError, match="needs the true values"):
        oracles.Tolerance(5, "truth").judge(outputs, None, None)
    with pytest.raises(InputError, match="needs true values, and the data have none"):
        oracles.Tolerance(5, "truth").check(None, None)
    with pytest.raises(InputError, match="the model gives 3 numbers"):
        oracles.Tolerance(5, "truth").check(truth, 3)


def test_tolerance_of_one_number_per_input_and_of_unsigned_integers():
    oracle = oracles.Tolerance(1)
    outcome = oracle.judge(np.array([1, 9], dtype=np.uint8), None, np.array([2, 7], dtype=np.uint8))
    assert outcome.value.tolist() == [1.0, 2.0]
    assert outcome.passed.tolist() == [True, False]


def test_a_function_of_the_users():
    def close_to_truth(outputs, expected, clean):
        return abs(outputs - expected) < abs(clean - expected)

    oracle = oracles.resolve(close_to_truth)
    outcome = oracle.judge(np.array([1.0, 5.0]), np.array([1.5, 1.5]), oracle.reference(np.array([3.0, 2.0])))
    assert outcome.passed.tolist() == [True, False]
    assert "close_to_truth" in oracle.describe()["function"]


def test_a_function_may_give_values():
    oracle = oracles.resolve(lambda o, e, c: oracles.Outcome(o > 0, o))
    outcome = oracle.judge(np.array([0.5, -1.0]), None, None)
    assert outcome.passed.tolist() == [True, False]
    assert outcome.value.tolist() == [0.5, -1.0]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda o, e, c: True, r"returned shape \(\) for 2 inputs"),
        (lambda o, e, c: [True], r"returned shape \(1,\) for 2 inputs"),
        (lambda o, e, c: [0.5, 1.0], "returned float64 values; true or false"),
        (lambda o, e, c: [2, 1], "true or false"),
        (lambda o, e, c: o["x"], "failed with IndexError"),
    ],
)
def test_what_a_function_may_not_return(function, message):
    with pytest.raises(InputError, match=message):
        oracles.resolve(function).judge(np.array([1.0, 2.0]), None, None)


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        (None, 10, "needs labels, and the data have none"),
        (np.array([3, 10, 11]), 10, r"labels: 10 \(input 1; 2 of 3 labels\) cannot be produced .* 0 … 9"),
        (np.array([3, -1]), None, "labels: -1"),
        (np.array([0.5, 1.0]), 2, "dtype float64"),
        (np.array([0, 0]), 1, "one output column"),
        (np.zeros((2, 4), np.uint8), 3, "4 columns; the model has 3 classes"),
    ],
)
def test_labels_that_cannot_be_judged(labels, classes, message):
    with pytest.raises(InputError, match=message):
        oracles.Label().check(labels, classes)


def test_labels_that_can_be_judged():
    oracles.Label().check(np.array([0, 9], dtype=np.uint8), 10)
    oracles.Label().check(np.array([0, 900]), None)
    oracles.Label().check(np.zeros((2, 3), np.uint8), 4)
    oracles.Consistency().check(None, 10)
    oracles.Tolerance(0.1).check(None, None)


def test_a_function_that_needs_labels_says_so():
    oracle = oracles.resolve({"use": "function", "function": lambda o, e, c: e == 0, "needs_labels": True})
    assert oracle.needs_labels
    with pytest.raises(InputError, match="needs labels"):
        oracle.check(None, 10)


@pytest.mark.parametrize(
    "oracle",
    [
        oracles.Label(),
        oracles.Label(0.3, 0.8),
        oracles.Consistency(),
        oracles.Consistency(0.5),
        oracles.Tolerance(2),
        oracles.Tolerance(2, "truth", True),
    ],
)
def test_described_and_made_again(oracle):
    again = oracles.resolve(oracle.describe())
    assert type(again) is type(oracle)
    assert vars(again) == vars(oracle)
    assert oracles.resolve(oracle) is oracle


@pytest.mark.parametrize(
    ("oracle", "message"),
    [
        ("lable", "'lable' is not known; did you mean 'label'"),
        ({"eps": 1}, "has no 'use'"),
        ("tolerance", "tolerance needs eps"),
        ({"use": "tolerance", "epsilon": 1}, "no option 'epsilon'; did you mean 'eps'"),
        ({"use": "tolerance", "eps": -1}, "eps: must be a number, at least 0, got -1"),
        ({"use": "tolerance", "eps": "small"}, "eps: must be a number, at least 0, got 'small'"),
        ({"use": "tolerance", "eps": float("nan")}, "eps: must be a number, at least 0, got nan"),
        ({"use": "label", "f1": 1.5}, r"f1: must be a number, above 0 and at most 1, got 1\.5"),
        ({"use": "function", "function": "pkg:f"}, "cannot be called"),
        (7, "oracle: 7 is not accepted"),
        (oracles.Label, "is not accepted"),
    ],
)
def test_oracles_that_do_not_exist(oracle, message):
    with pytest.raises(InputError, match=message) as caught:
        oracles.resolve(oracle)
    assert "\n" not in str(caught.value)
