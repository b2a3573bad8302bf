"""Tests of locality.measure."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import testifai as ta
from testifai.errors import InputError
from testifai.locality import from_run, local
from testifai.locality.measure import PerClass, allocate, candidate_mask, class_weights, single_ids
from testifai.runs.outcomes import Outcomes, visiting_order
from testifai.strategies.base import Progress

from .synthetic import Known, confusions


def same(a, b) -> bool:
    return a.as_dict() == b.as_dict()


def test_rates_and_confusions_converge_to_the_models_own():
    truth = confusions(0, classes=3, outputs=4)
    model = Known(truth, scores=True)  # labels alone may not be outside those of the data
    inputs, labels = model.data(4000, wrong=0.3)
    for per_class, seed in ((200, 0), (2500, 1)):
        found = local(model, (inputs, labels), model.properties(), per_class=per_class, seed=seed)
        error = found.answers - np.moveaxis(truth, 2, 0)
        # 3 x 2 x 2 x 4 shares, each binomial.
        assert np.abs(error).max() < 4.5 * np.sqrt(0.25 / per_class)
        assert (found.trials == per_class).all()
    assert found.available.tolist() == [int((inputs[labels == one, 0] % 1 == 0).sum()) for one in range(3)]
    assert (inputs[found.sampled.ids, 0] % 1 == 0).all()
    assert found.outputs == ("0", "1", "2", "3")


def test_wilson_intervals_hold_the_models_own_rates():
    truth = confusions(1)
    model = Known(truth)
    wanted = np.moveaxis(np.diagonal(truth, axis1=2, axis2=3), 2, 0)
    held = []
    for seed in range(25):
        found = local(model, model.data(60), model.properties(), per_class=50, seed=seed)
        held.append((found.low <= wanted) & (wanted <= found.high))
    cells = np.size(held)
    assert np.mean(held) > 0.95 - 4 * np.sqrt(0.05 * 0.95 / cells)


def test_the_same_seed_gives_the_same_table_whatever_the_batches():
    model = Known(confusions(2))
    data, properties = model.data(60, wrong=0.2), model.properties()
    first = local(model, data, properties, per_class=20, seed=4)
    assert same(first, local(model, data, properties, per_class=20, seed=4, batch_size=7))
    assert not same(first, local(model, data, properties, per_class=20, seed=5))


def test_a_run_file_holds_the_table_and_is_continued(tmp_path):
    model = Known(confusions(3), scores=True)
    data, properties, path = model.data(60, wrong=0.2), model.properties(), tmp_path / "run.db"
    whole = local(model, data, properties, per_class=20)
    calls = []

    class Failing(Known):
        def __call__(self, batch):
            calls.append(len(batch))
            if len(calls) == 25:
                raise RuntimeError("out of memory")
            return super().__call__(batch)

    interrupted = ta.models.PythonModel(Failing(model.truth, scores=True).__call__, name="known")
    resumed = ta.models.PythonModel(model.__call__, name="known")
    interrupted.fingerprint = resumed.fingerprint = "same"
    with pytest.raises(InputError, match="out of memory"):
        local(interrupted, data, properties, per_class=20, store=path, batch_size=10)
    spent = sum(calls[:-1])
    calls.clear()
    steps = []
    found = local(resumed, data, properties, per_class=20, store=path, batch_size=10, progress=steps.append)
    assert same(found, whole)
    assert same(from_run(path), whole)
    assert steps[0].done == spent + 10
    # The same file as a scan's: the clean test on all inputs, single perturbations on the sample.
    assert ta.open(path).trials.ravel()[0] == 180
    assert sqlite3.connect(path).execute("SELECT count(DISTINCT configuration) FROM outcomes").fetchone()[0] == 5


def test_another_sample_is_another_run(tmp_path):
    model = Known(confusions(3))
    data, path = model.data(20), tmp_path / "run.db"
    local(model, data, model.properties(), per_class=5, store=path)
    with pytest.raises(InputError, match="belongs to another run: strategy"):
        local(model, data, model.properties(), per_class=6, store=path)


@pytest.mark.parametrize("options", [{"among": "all"}, {"weights": {"0": 3, "2": 1}}, {"exclude": [0, 1, 50]}])
def test_options_are_in_the_run_file_too(tmp_path, options):
    model = Known(confusions(4))
    path = tmp_path / "run.db"
    found = local(model, model.data(30, wrong=0.3), model.properties(), per_class=10, store=path, **options)
    assert same(from_run(path), found)


def test_all_inputs_are_drawn_whether_right_or_not():
    model = Known(confusions(4))
    inputs, labels = model.data(50, wrong=0.5)
    found = local(model, (inputs, labels), model.properties(), per_class=None, among="all")
    assert found.available.tolist() == [50, 50, 50]
    assert len(found.sampled.ids) == 150


def test_operational_weights_choose_classes_and_weigh_means():
    model = Known(confusions(5))
    found = local(model, model.data(100), model.properties(), per_class=20, weights={"0": 3, "2": 1})
    assert found.classes == ("0", "2")
    assert found.outputs == ("0", "2", "1")
    assert found.trials[:, 0, 0].tolist() == [30, 10]
    np.testing.assert_allclose(found.by_property().rate, 0.75 * found.rate[0].mean(1) + 0.25 * found.rate[1].mean(1))
    truth = np.moveaxis(model.truth, 2, 0)[[0, 2]][..., [0, 2, 1]]
    assert np.abs(found.answers - truth).max() < 0.5


def test_a_scan_that_kept_its_predictions_is_read_too(tmp_path):
    model = Known(confusions(6))
    data, path = model.data(40, wrong=0.25), tmp_path / "scan.db"
    space = ta.Space(model.properties())
    ta.scan(model, data, space, strategy="full", store=path, keep=["predicted"])
    found = from_run(path)
    measured = local(model, data, space, per_class=None)
    np.testing.assert_array_equal(found.confusion, measured.confusion)
    np.testing.assert_array_equal(found.available, measured.available)


def test_a_run_without_predictions_or_labels_is_refused(tmp_path):
    model = Known(confusions(6))
    data, space = model.data(10), ta.Space(model.properties())
    ta.scan(model, data, space, strategy="full", store=tmp_path / "a.db")
    with pytest.raises(InputError, match="keep = \\['predicted'\\]"):
        from_run(tmp_path / "a.db")
    ta.scan(model, data[0], space, strategy="full", oracle="consistency", store=tmp_path / "b.db", keep=["predicted"])
    with pytest.raises(InputError, match="no single label"):
        from_run(tmp_path / "b.db")


def test_classes_are_called_as_the_model_and_the_data_call_them(tmp_path):
    class Numbered(Known):
        """Knows its three classes as 3, 5 and 8."""

        class_values = (3, 5, 8)
        fingerprint, outputs, classes = "numbered", "labels", 3

    model = Numbered(confusions(7))
    inputs, labels = model.data(30)
    values = np.array([3, 5, 8])[labels]
    found = local(model, (inputs, values), model.properties(), per_class=10, store=tmp_path / "run.db")
    assert found.classes == found.outputs == ("3", "5", "8")
    np.testing.assert_array_equal(
        found.confusion, local(Known(model.truth), (inputs, labels), model.properties(), per_class=10).confusion
    )
    assert same(from_run(tmp_path / "run.db"), found)
    words = local(Known(model.truth), (inputs, np.array(["cat", "dog", "fox"])[labels]), model.properties(), 10)
    assert words.classes == ("cat", "dog", "fox")


def test_confidence_is_the_mean_highest_probability():
    model = Known(confusions(8), scores=True)
    found = local(model, model.data(20), model.properties(), per_class=10)
    np.testing.assert_allclose(found.confidence, np.exp(2) / (np.exp(2) + 2), rtol=1e-6)
    labels_only = local(Known(model.truth), model.data(20), model.properties(), per_class=10)
    assert np.isnan(labels_only.confidence).all()


def test_a_class_the_model_never_gets_right_is_named_and_nothing_is_lost(tmp_path):
    model = Known(confusions(9))
    inputs, labels = model.data(20)
    inputs[labels == 1, 0] += 0.5
    with pytest.raises(InputError, match="class '1': has no input that the model gets right"):
        local(model, (inputs, labels), model.properties(), store=tmp_path / "run.db")
    assert ta.open(tmp_path / "run.db").base == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"per_class": 0}, "per_class: must be a whole number, at least 1"),
        ({"per_class": 1.5}, "per_class"),
        ({"among": "wrong"}, "among: must be one of correct, all"),
        ({"weights": {"7": 1}}, "weights: '7' is not a class"),
        ({"exclude": [99]}, "exclude: input numbers from 0 to 29"),
        ({"properties": {}}, "space"),
    ],
)
def test_mistakes_are_one_line(options, message):
    model = Known(confusions(9))
    given = {"properties": model.properties(), **options}
    with pytest.raises(InputError, match=message) as caught:
        local(model, model.data(10), given.pop("properties"), **given)
    assert "\n" not in str(caught.value)


def test_data_without_one_label_each_are_refused():
    model = Known(confusions(9))
    with pytest.raises(InputError, match="needs labels"):
        local(model, model.data(10)[0], model.properties())
    with pytest.raises(InputError, match="several labels per input"):
        local(model, (model.data(10)[0], np.eye(30, 3, dtype=int)), model.properties())


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
