"""Tests of operational.answer."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from testifai.data import from_arrays
from testifai.errors import InputError
from testifai.operational.answer import answer, judge, more_labels
from testifai.operational.rounds import Collected
from testifai.operational.selection import choose
from testifai.statistics.intervals import half_widths, wilson
from testifai.statistics.multiplicity import confidence_each

SCORES = np.random.default_rng(0).dirichlet(np.ones(3), 200)
PREDICTED = SCORES.argmax(axis=1)
OUT = Path("a.csv")


def collected(labels, tests=200):
    chosen = choose(
        lambda rows: rows, from_arrays(SCORES), technique="srs", tests=tests, classes=("cat", "dog", "frog")
    )
    given = {example: labels[example] for example in chosen.first.tolist() if example in labels}
    return Collected(chosen, given, frozenset(chosen.first.tolist()), {example: f"x[{example}]" for example in given})


def test_every_label_makes_it_exact():
    wrong = {3: 1, 8: 2, 9: 1}
    found = answer(collected({n: (int(PREDICTED[n]) + wrong.get(n, 0)) % 3 for n in range(200)}), 0.985)
    assert (found.accuracy, found.low, found.high) == (0.985, 0.985, 0.985)
    assert found.verdict.passed
    assert [one.example for one in found.failing] == [3, 8, 9]
    text = "\n".join(found.lines(OUT))
    assert "Accuracy 0.9850" in text
    assert "x[3] is" in text
    assert "PASS: accuracy of at least 0.985 required" in text
    assert "empty" not in text
    json.dumps(found.as_dict())


def test_what_the_interval_takes_for_granted_is_said():
    found = answer(collected(dict.fromkeys(range(200), 0)))
    assert found.lines(OUT)[1].startswith("The interval takes for granted nothing but the labels")
    assert found.as_dict()["assumes"] == found.assumes


def test_confusions_come_most_often_first():
    found = answer(collected(dict.fromkeys(range(200), 0)))
    counts = np.bincount(PREDICTED)
    expected = {"dog": int(counts[1]), "frog": int(counts[2])}
    assert [count for _, _, count in found.confusions] == sorted(expected.values(), reverse=True)
    assert {predicted: count for label, predicted, count in found.confusions if label == "cat"} == expected
    assert "… and" in found.lines(OUT)[13]  # ten failures are shown, the rest is counted
    assert len(found.as_dict()["failing"]) == sum(expected.values())


def test_no_failure_is_said():
    assert "No failure among the labels." in answer(collected(dict(enumerate(PREDICTED.tolist())))).lines(OUT)


def test_an_undecided_answer_says_how_to_go_on():
    labels = dict(enumerate(PREDICTED.tolist()))
    half = collected(labels, tests=50)
    found = answer(half, 0.99)
    assert found.verdict.status == "undecided"
    text = "\n".join(found.lines(OUT))
    assert f"about {found.verdict.more} more labels needed" in text
    assert "a projection" in text
    assert f"--tests {50 + found.verdict.more} --known a.csv" in text


def test_the_requirement_is_checked():
    with pytest.raises(InputError, match="require"):
        answer(collected({}), 2.0)


WHOLE = {"labelled": 200, "planned": 200, "size": 10_000}


@pytest.mark.parametrize(
    ("accuracy", "low", "high", "require", "status"),
    [
        (0.97, 0.95, 0.98, 0.95, "pass"),
        (0.97, 0.9499, 0.98, 0.95, "undecided"),
        (0.90, 0.86, 0.95, 0.95, "undecided"),
        (0.90, 0.86, 0.9499, 0.95, "fail"),
        (1.0, 1.0, 1.0, 1.0, "pass"),
        (0.5, math.nan, math.nan, 0.4, "undecided"),
        (1.3, 0.9, 1.0, 0.95, "undecided"),  # unbiased estimates can leave 0 … 1
    ],
)
def test_the_bounds_decide(accuracy, low, high, require, status):
    verdict = judge(accuracy, low, high, require=require, **WHOLE)
    assert verdict.status == status
    assert verdict.passed is (status == "pass")
    assert verdict.more is None or 1 <= verdict.more <= 9_800


def test_without_a_label_nothing_is_decided():
    verdict = judge(math.nan, math.nan, math.nan, require=0.9, labelled=0, planned=200, size=1000)
    assert (verdict.status, verdict.reason) == ("undecided", "no label yet")


@pytest.mark.parametrize("require", [0, -1, 1.01, 95, math.nan])
def test_what_is_no_accuracy(require):
    with pytest.raises(InputError, match="require"):
        judge(0.9, 0.8, 0.95, require=require, **WHOLE)


def test_early_looks_ask_for_more():
    half = {"labelled": 100, "planned": 200, "size": 10_000}
    bounds = (0.97, 0.955, 0.98)
    assert judge(*bounds, require=0.95, **WHOLE).status == "pass"
    assert judge(*bounds, require=0.95, **half).status == "undecided"
    assert judge(*bounds, require=0.93, **half).status == "pass"


def test_looking_after_every_few_labels_keeps_the_error():
    """A model exactly at the requirement, looked at after every 10 of 200 labels, passes or fails by mistake seldom."""
    rng = np.random.default_rng(0)
    require, runs, size = 0.9, 600, 10_000
    wrong = naive = 0
    for _ in range(runs):
        passes = np.cumsum(rng.random(200) < require)
        looks = np.arange(20, 201, 10)
        low, high = wilson(passes[looks - 1], looks, size)
        rate = passes[looks - 1] / looks
        naive += bool(((low > require) | (high < require)).any())
        wrong += any(
            judge(a, b, c, require=require, labelled=int(n), planned=200, size=size).status != "undecided"
            for a, b, c, n in zip(rate, low, high, looks, strict=True)
        )
    error = 3 * math.sqrt(0.07 * 0.93 / runs)
    assert wrong / runs <= 0.07 + error  # 0.05 at the last look, a little for all the early ones
    assert naive / runs > 0.15  # what it would be without


def test_the_bound_of_early_looks():
    # P(|B| exceeds c before time 1) is about 2 P(|B(1)| > c), by reflection.
    assert 4 * norm.sf(half_widths(confidence_each(2))) == pytest.approx(0.05, abs=1e-9)


@given(st.floats(0.5, 0.999), st.floats(0.001, 0.2), st.floats(0.5, 1.0), st.integers(1, 999), st.integers(1000, 10**6))
def test_projections_are_possible_numbers(accuracy, half, require, labelled, size):
    asked = {"require": require, "labelled": labelled, "size": size}
    low, high = accuracy - half, min(1.0, accuracy + half)
    assert 1 <= more_labels(accuracy, low, high, **asked) <= size - labelled
    if accuracy > require:
        assert more_labels(accuracy, low - 0.1, high, **asked) >= more_labels(accuracy, low, high, **asked)


@pytest.mark.parametrize(
    ("accuracy", "require", "labelled", "size"),
    [(0.95, 0.93, 200, 100_000), (0.97, 0.99, 100, 100_000), (0.95, 0.93, 200, 2000), (0.99, 0.95, 100, 10_000)],
)
def test_so_many_labels_decide_four_times_in_five(accuracy, require, labelled, size):
    """Simple random samples: project from a first few, take so many more, and see how often that decides."""
    low, high = (float(bound) for bound in wilson(accuracy * labelled, labelled, size))
    total = labelled + more_labels(accuracy, low, high, require=require, labelled=labelled, size=size)
    right = round(accuracy * size)
    passes = np.random.default_rng(1).hypergeometric(right, size - right, total, 4000)
    least, most = wilson(passes, total, size)
    decided = (least >= require).mean() if accuracy > require else (most < require).mean()
    # Counts are whole numbers and not normal: near four in five, not exactly.
    assert 0.7 < decided < 0.9


def test_early_looks_do_not_change_the_projection():
    bounds = {"require": 0.95, "labelled": 100, "size": 10_000}
    whole, early = (judge(0.96, 0.91, 0.98, planned=planned, **bounds) for planned in (100, 101))
    assert whole.more == early.more
    assert judge(0.96, 0.91, 0.98, planned=9_000, **bounds).more == 8_900  # what is planned is needed anyway
