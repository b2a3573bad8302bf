from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import testifai as ta
from testifai.errors import InputError
from testifai.locality.measure import PerClass, allocate, candidate_mask, class_weights, single_ids
from testifai.runs.outcomes import Outcomes, visiting_order
from testifai.strategies.base import Progress

NAMES = {0: "cat", 1: "dog", 2: "fox"}


def space() -> ta.Space:
    fade = ta.Perturbation("fade", lambda x, by, rng: x * by, [1.0, 0.8, 0.6])
    return ta.Space({"a": fade, "b": (fade, [0, 2])})


def clean(labels, right, seed: int = 0) -> Outcomes:
    outcomes = Outcomes(len(labels))
    outcomes.record(0, np.arange(len(labels)), np.asarray(right)[visiting_order(len(labels), seed)])
    return outcomes


@given(st.integers(1, 500), st.lists(st.floats(0.01, 100), min_size=1, max_size=8))
def test_shares_are_whole_and_near_their_proportion(total, weights):
    shares = allocate(total, weights)
    exact = np.array(weights) / sum(weights) * total
    assert min(shares) >= 1
    assert all(abs(share - wanted) < 1 or share == 1 for share, wanted in zip(shares, exact, strict=True))
    if exact.min() >= 1:
        assert sum(shares) == total


def test_only_inputs_that_the_model_gets_right_are_drawn_equally_many_of_each_class():
    labels = np.repeat([0, 1, 2], [50, 80, 20])
    right = np.random.default_rng(0).random(150) < 0.7
    sampling = PerClass(labels, NAMES, per_class=25)
    places, available = sampling.sample(clean(labels, right), seed=0)
    ids = visiting_order(150, 0)[places]
    assert right[ids].all()
    assert available == {one: int((right & (labels == one)).sum()) for one in range(3)}
    counts = np.bincount(labels[ids])
    assert counts.tolist() == [min(25, available[one]) for one in range(3)]


def test_every_right_input_is_as_likely_as_another():
    labels, right = np.zeros(12, int), np.arange(12) % 3 > 0
    drawn = np.zeros(12)
    for seed in range(2000):
        places, _ = PerClass(labels, NAMES, per_class=2).sample(clean(labels, right, seed), seed)
        drawn[visiting_order(12, seed)[places]] += 1
    assert not drawn[~right].any()
    # Each of 8 inputs is in a sample of 2 with probability 1/4.
    assert np.abs(drawn[right] / 2000 - 0.25).max() < 4.5 * np.sqrt(0.25 * 0.75 / 2000)


def test_a_larger_sample_contains_a_smaller_one():
    labels = np.repeat([0, 1], 40)
    outcomes = clean(labels, np.ones(80, bool))
    small, large = (set(PerClass(labels, NAMES, per_class=n).sample(outcomes, 3)[0].tolist()) for n in (5, 20))
    assert small < large


def test_all_inputs_weights_and_excluded_ones():
    labels = np.repeat([0, 1, 2], 40)
    outcomes = Outcomes(120)
    sampling = PerClass(labels, NAMES, 10, "all", {0: 3.0, 2: 1.0}, candidate_mask(120, exclude=np.arange(20)))
    places, available = sampling.sample(outcomes, 0)
    ids = visiting_order(120, 0)[places]
    assert available == {0: 20, 2: 40}
    assert np.bincount(labels[ids], minlength=3).tolist() == [15, 0, 5]
    assert ids.min() >= 20


def test_work_is_the_clean_test_then_single_perturbations_then_nothing():
    labels, right = np.repeat([0, 1], 10), np.arange(20) % 2 == 0
    sampling, outcomes = PerClass(labels, NAMES, per_class=3), Outcomes(20)
    progress = Progress(space(), outcomes)
    work = sampling.propose(progress)
    assert (work.configurations.tolist(), len(work.places)) == ([0], 20)
    outcomes.record(0, work.places, right[visiting_order(20, 0)[work.places]])
    work = sampling.propose(progress)
    matrix = space().matrix(work.configurations)
    assert matrix.tolist() == [[1, 0], [2, 0], [0, 2]]
    assert len(work.places) == 6
    assert sampling.expected(progress) == 20 + 6 * 3
    for test in work.configurations:
        outcomes.record(int(test), work.places, np.ones(6, bool))
    assert sampling.propose(progress) is None


def test_single_tests_are_in_the_order_of_the_table():
    assert space().matrix(single_ids(space())).tolist() == [[1, 0], [2, 0], [0, 2]]


def test_a_class_with_no_right_input_is_named():
    labels = np.repeat([0, 1], 10)
    with pytest.raises(InputError, match="class 'dog': has no input that the model gets right") as caught:
        PerClass(labels, NAMES).sample(clean(labels, labels == 0), 0)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("even", "weights: 'even' is not accepted"),
        ({"cow": 1}, "'cow' is not a class of the data; known: cat, dog"),
        ({"cat": -1}, "'cat': must be a number, at least 0, got -1"),
        ({"cat": "much"}, "'cat': must be a number, at least 0, got 'much'"),
        ({"cat": 0}, "leaves no class"),
    ],
)
def test_wrong_weights_are_refused(weights, message):
    with pytest.raises(InputError, match=message):
        class_weights(weights, np.array([0, 1]), NAMES)


def test_weights_by_name_and_from_the_data():
    labels = np.array([0, 0, 0, 2])
    assert class_weights(None, labels, NAMES) is None
    assert class_weights("data", labels, NAMES) == {0: 3.0, 2: 1.0}
    assert class_weights({"fox": 2, "cat": 0}, labels, NAMES) == {2: 2.0}


@pytest.mark.parametrize("wrong", [[10], [-1], [0.5]])
def test_inputs_that_do_not_exist_are_refused(wrong):
    with pytest.raises(InputError, match="exclude: input numbers from 0 to 9"):
        candidate_mask(10, exclude=wrong)
