from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from testifai.data import from_arrays
from testifai.errors import InputError
from testifai.operational.answer import answer
from testifai.operational.rounds import Collected
from testifai.operational.selection import choose

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
