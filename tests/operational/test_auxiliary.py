from __future__ import annotations

import threading

import numpy as np
import pytest
from scipy.special import softmax

from testifai.data.sample import demo_data, demo_model_path
from testifai.errors import InputError
from testifai.models.onnx import OnnxModel
from testifai.operational import resolve
from testifai.operational.auxiliary import Observed, observe, risk_of

RNG = np.random.default_rng(0)


def test_observe_is_the_model_batch_by_batch():
    model, data = OnnxModel(demo_model_path()), demo_data()
    inputs = data.inputs[:600]
    steps = []
    seen = observe(model, inputs, traces=True, progress=steps.append)
    scores = model(inputs)
    assert seen.classes == 10
    assert np.array_equal(seen.predicted, scores.argmax(axis=1))
    np.testing.assert_allclose(seen.confidence, softmax(scores, axis=1).max(axis=1), rtol=1e-4)
    np.testing.assert_allclose(seen.traces, model.features(inputs), rtol=1e-3, atol=1e-4)
    assert steps == [256, 512, 600]


def test_observe_gives_the_same_to_the_last_digit_whatever_the_workers(monkeypatch):
    model, inputs = OnnxModel(demo_model_path()), demo_data().inputs[:700]
    made = []
    for workers in (1, 3):
        monkeypatch.setattr("testifai.operational.auxiliary.default_workers", lambda model, n=workers: n)
        made.append(observe(model, inputs))
    assert np.array_equal(made[0].confidence, made[1].confidence)


def test_models_that_are_not_safe_in_threads_get_one():
    threads = set()

    def model(rows):
        threads.add(threading.get_ident())
        return rows[:, 0].astype(int)

    seen = observe(model, np.arange(1000)[:, None])
    assert len(threads) == 1
    assert (seen.confidence, seen.traces, seen.classes) == (None, None, None)
    assert seen.predicted.tolist() == list(range(1000))


def test_texts_are_observed_too():
    seen = observe(lambda texts: [len(text) % 2 for text in texts], ["a", "bb", "ccc"])
    assert seen.predicted.tolist() == [1, 0, 1]


def test_what_a_model_does_wrong_is_one_line():
    def fails(rows):
        raise RuntimeError("no memory\nmore")

    for model, problem in (
        (fails, r"model: raised RuntimeError: no memory \(batch of 4 inputs\)$"),
        (lambda rows: np.full((len(rows), 2), np.nan), "returned NaN"),
        (lambda rows: rows[:1], "returned 1 outputs for 4"),
    ):
        with pytest.raises(InputError, match=problem):
            observe(model, np.zeros((4, 2)))
    with pytest.raises(InputError, match="does not show its layers"):
        observe(lambda rows: rows, np.zeros((4, 2)), traces=True)


def test_risk_of_every_technique():
    traces = RNG.normal(size=(40, 3)).astype(np.float32)
    training = Observed(np.arange(40) % 2, RNG.random(40), traces + np.arange(40)[:, None] % 2, 2)
    seen = Observed(np.arange(40) % 2, RNG.random(40), traces, 2)
    from testifai.operational.surprise import dsa, lsa

    surprise = dsa(training.traces, training.predicted, traces, seen.predicted)
    expected = {
        "srs": None,
        "ces": None,
        "css": 1 - seen.confidence,
        "confidence": 1 - seen.confidence,
        "balanced": 1 - seen.confidence,
        "dsa": surprise,
        "lsa": lsa(training.traces, training.predicted, traces, seen.predicted),
        "combined": 1 - seen.confidence * (1 - surprise / surprise.max()),
    }
    for technique, risk in expected.items():
        found = risk_of(resolve(technique), seen, training)
        assert found is None if risk is None else np.allclose(found, risk), technique
    with pytest.raises(InputError, match="'dsa': measures surprise against training data"):
        risk_of(resolve("dsa"), seen)
    with pytest.raises(InputError, match="returns labels alone"):
        risk_of(resolve("confidence"), Observed(seen.predicted))


def test_surprise_without_bound_is_the_largest_with_one():
    # The second input lies on a training trace of its class that coincides with one of the other class.
    training = Observed(np.array([0, 1, 0, 1]), None, np.array([[0.0], [0.0], [4.0], [9.0]], np.float32))
    seen = Observed(np.array([0, 0]), None, np.array([[3.0], [0.5]], np.float32))
    risk = risk_of(resolve("dsa"), seen, training)
    assert risk.tolist() == pytest.approx([0.25, 0.25])
