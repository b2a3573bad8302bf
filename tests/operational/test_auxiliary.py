"""Tests of operational.auxiliary."""

from __future__ import annotations

import logging
import threading

import numpy as np
import pytest
from scipy.special import softmax

from testifai.data import from_arrays
from testifai.data.sample import demo_data, demo_model_path
from testifai.errors import InputError
from testifai.models.onnx import OnnxModel
from testifai.operational import estimate, resolve
from testifai.operational.auxiliary import Observed, few_suspects, observe, risk_of
from testifai.operational.deepest import Confidence, LikelihoodSurprise
from testifai.operational.selection import choose

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


RISK = np.random.default_rng(0).gamma(0.2, 100, 1000)  # spread so wide that no risk exceeds mean + variance
FAILED = np.random.default_rng(1).random(1000) < RISK / RISK.max()


def test_a_quantile_suspects_that_share_whatever_the_scale():
    for scale in (1e-3, 1.0, 1e6):
        weights = LikelihoodSurprise(threshold="q0.9").weights(RISK * scale)
        assert np.count_nonzero(weights) == 100
        assert weights[weights > 0].min() >= np.sort(RISK * scale)[-100]


def test_a_quantile_finds_failures_where_the_published_rule_suspects_nobody():
    given = {"failed": FAILED, "risk": RISK, "tests": 100}
    adapted = estimate("lsa", **given, threshold="q0.9")
    assert adapted.failures > 3 * estimate("lsa", **given).failures
    assert adapted.low <= 1 - FAILED.mean() <= adapted.high


@pytest.mark.parametrize("threshold", ["q90", "q1", "q0", "q", "0.9", "median", "q-0.1", "qnan", True, [0.9]])
def test_other_spellings_are_refused_in_one_line(threshold):
    with pytest.raises(InputError, match=r"^threshold: ") as caught:
        Confidence(threshold=threshold)
    assert "\n" not in str(caught.value)


def test_few_suspects_are_told_with_a_threshold_that_works(caplog):
    estimate("lsa", failed=FAILED, risk=RISK, tests=100)
    (told,) = caplog.messages
    assert told.startswith("technique 'lsa': 0 of 1,000 examples have a risk above its threshold ")
    assert told.endswith('it behaves as simple random sampling; try threshold = "q0.9"')
    caplog.clear()
    estimate("lsa", failed=FAILED, risk=RISK, tests=100, threshold="q0.9")
    assert not caplog.messages


def test_a_selection_tells_before_anybody_labels(caplog):
    scores = np.random.default_rng(0).dirichlet([1, 1], 300).astype(np.float32)
    with caplog.at_level(logging.WARNING):
        choose(lambda rows: rows, from_arrays(scores), technique={"use": "confidence", "threshold": 0.4999}, tests=40)
    assert 'try threshold = "q0.9"' in caplog.text


@pytest.mark.parametrize(
    ("risk", "above", "words"),
    [
        (np.arange(1000.0), 989.5, None),
        (
            np.arange(1000.0),
            990.5,
            "9 of 1,000 examples have a risk above its threshold 990.5; beyond these it",
        ),
        (np.minimum(np.arange(1000.0), 850), 900, 'try threshold = "q0.8"'),
        (np.ones(1000), 1.0, "no threshold would tell the examples apart"),
    ],
)
def test_when_there_are_few(risk, above, words):
    told = few_suspects("lsa", risk, above)
    assert told is None if words is None else words in told
