from __future__ import annotations

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.operational import TECHNIQUES, estimate, frame, resolve

SIZE = 400
RISK = np.linspace(0, 1, SIZE) ** 2
FAILED = np.random.default_rng(0).random(SIZE) < RISK
FEATURES = np.column_stack([RISK, np.arange(SIZE) % 7])
GIVEN = {"risk": RISK, "features": FEATURES, "failed": FAILED}
PUBLISHED = sorted(set(TECHNIQUES) - {"balanced"})


@pytest.mark.parametrize("technique", PUBLISHED)
def test_every_technique_answers_the_same_questions(technique):
    answer = estimate(technique, **GIVEN, tests=80, seed=3)
    assert answer.technique == technique
    assert answer.selected.shape == (80,)
    assert answer.failures == np.count_nonzero(FAILED[answer.selected]) == len(answer.failing)
    assert answer.low <= answer.accuracy <= answer.high
    assert answer.low <= 1 - FAILED.mean() <= answer.high


@pytest.mark.parametrize("technique", PUBLISHED)
def test_a_function_is_asked_once_for_each_chosen_example_and_for_no_other(technique):
    asked = []

    def failed(example):
        asked.append(example)
        return FAILED[example]

    answer = estimate(technique, risk=RISK, features=FEATURES, failed=failed, tests=50, seed=1)
    assert all(type(example) is int for example in asked)
    assert asked == answer.selected.tolist()
    known = estimate(technique, **GIVEN, tests=50, seed=1)
    assert (known.accuracy, known.low, known.high) == (answer.accuracy, answer.low, answer.high)


def test_with_replacement_the_same_example_is_not_asked_about_twice():
    asked = []
    answer = estimate("srs", size=20, failed=lambda i: bool(asked.append(i)), tests=20, replacement=True)
    assert len(asked) == len(set(asked)) == answer.labels < 20


@pytest.mark.parametrize("technique", PUBLISHED)
def test_the_seed_decides(technique):
    first, again, other = (estimate(technique, **GIVEN, tests=60, seed=seed) for seed in (5, 5, 6))
    assert first.selected.tolist() == again.selected.tolist() != other.selected.tolist()


@pytest.mark.parametrize("technique", PUBLISHED)
@pytest.mark.parametrize("tests", [1, 2, 3, SIZE])
def test_budgets_from_one_to_all(technique, tests):
    answer = estimate(technique, **GIVEN, tests=tests)
    assert len(np.unique(answer.selected)) == tests
    assert 0 <= answer.low <= answer.high <= 1


def test_the_threshold_reaches_the_technique():
    narrow = estimate("confidence", **GIVEN, tests=60, threshold=0.9)
    usual = estimate("confidence", **GIVEN, tests=60)
    assert np.mean(RISK[narrow.selected] > 0.9) > np.mean(RISK[usual.selected] > 0.9)


@pytest.mark.parametrize(
    ("technique", "change", "words"),
    [
        ("srs", {"tests": SIZE + 1}, "tests: 401 is more than the 400 examples"),
        ("srs", {"tests": 0}, "tests: must be a whole number, at least 1, got 0"),
        ("srs", {"tests": 2.5}, "tests: must be a whole number, at least 1, got 2.5"),
        (
            "confidence",
            {"risk": np.where(np.arange(SIZE) == 7, np.nan, RISK)},
            "risk: not a finite number at example 7",
        ),
        ("confidence", {"risk": RISK[:-1]}, "risk: 399 rows, but there are 400 examples"),
        ("confidence", {"risk": FEATURES}, "risk: shape"),
        ("confidence", {"risk": 0.5}, "risk: a single number"),
        ("confidence", {"risk": ["high"] * SIZE}, "risk: expected numbers"),
        ("confidence", {"risk": None}, "risk: technique 'confidence' needs one value per example"),
        ("ces", {"features": None}, "features: technique 'ces' needs one row per example"),
        ("ces", {"features": FEATURES[:5]}, "features: 5 rows, but there are 400 examples"),
        ("srs", {"failed": np.full(SIZE, 2)}, "failed: expected True or False"),
        ("srs", {"failed": FEATURES}, "failed: shape"),
        ("srs", {"threshold": 0.3}, "technique: srs has no option 'threshold'; known: replacement"),
        ("ces", {"threshold": 0.3}, "technique: ces has no option 'threshold'; it takes none"),
        ("srs", {"seed": -1}, "seed: must be a whole number, at least 0, got -1"),
        ("srs", {"size": 3}, "size: 3, but failed has 400 examples"),
        ("confidense", {}, "technique: 'confidense' is not known; did you mean 'confidence'"),
        (3, {}, "technique: expected one of"),
    ],
)
def test_mistakes_are_told_in_one_line(technique, change, words):
    with pytest.raises(InputError, match="^" + words) as caught:
        estimate(technique, **{**GIVEN, **change})
    assert "\n" not in str(caught.value)


def test_without_anything_to_count_the_examples_by():
    with pytest.raises(InputError, match="size: no examples"):
        estimate("srs", failed=lambda i: False)
    assert estimate("srs", failed=lambda i: False, size=300).accuracy == 1


def test_a_technique_can_be_given_as_an_object():
    assert (
        estimate(resolve("srs"), **GIVEN, tests=9).selected.tolist()
        == estimate("srs", **GIVEN, tests=9).selected.tolist()
    )
    with pytest.raises(InputError, match="threshold: is set on the technique itself"):
        estimate(resolve("confidence"), **GIVEN, threshold=0.2)


def test_a_frame_knows_its_size_from_what_it_has():
    assert frame(features=FEATURES).size == frame(size=SIZE).size == SIZE
