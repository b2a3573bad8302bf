"""The contract of oracles finds each way to break it."""

import itertools

import numpy as np
import pytest

from testifai.oracles import Label, Oracle, Outcome
from testifai.testing import check_oracle

counter = itertools.count()


class First(Oracle):
    """Passes where the first score is positive."""

    name = "first"

    def judge(self, outputs, expected, clean):
        return Outcome(outputs[:, 0] > 0, outputs[:, 0])


class Duck:
    """Has one method of an oracle."""

    def judge(self, outputs, expected, clean):
        return Outcome(outputs[:, 0] > 0)


class Scored(First):
    """Has a score."""

    name, score = "scored", "closeness"

    def judge(self, outputs, expected, clean):
        return Outcome(outputs[:, 0] > 0, 1 / (1 + np.exp(-outputs[:, 0])))


def test_scores_lie_in_0_to_1_and_are_named():
    check_oracle(Scored)
    check_oracle({"use": "tolerance", "eps": 0.5, "scale": 2.0})
    for breach, words in [
        ({"score": "a score"}, "no name of letters and digits"),
        (judging(lambda o: o[:, 0] > 0), "gives no values"),
        (judging(lambda o: o[:, 0] > 0, lambda o: o[:, 0]), "outside 0..1"),
        (judging(lambda o: o[:, 0] > 0, lambda o: np.full(len(o), np.nan)), "outside 0..1"),
    ]:
        with pytest.raises(AssertionError, match=words):
            check_oracle(type("Broken", (Scored,), breach))


def test_good_ones_pass():
    check_oracle(First)
    check_oracle(First())
    check_oracle(Duck())


def judging(passed, value=None):
    return {"judge": lambda self, o, e, c: Outcome(passed(o), None if value is None else value(o))}


def spoils(self, outputs, expected, clean):
    outputs[:] = 0
    return Outcome(outputs[:, 0] > 0)


BREACHES = {
    "its name is None": {"name": None},
    "needs_clean is 1": {"needs_clean": 1},
    "does not refuse data that have none": {"needs_labels": True, "check": lambda self, labels, classes: None},
    "does not refuse label 4": {"needs_labels": True, "decides_classes": True},
    "changes its arguments": {"judge": spoils},
    "outcomes for 23 inputs": judging(lambda o: np.ones(3, bool)),
    "neither true nor false": judging(lambda o: np.ones(len(o))),
    "values for 23 inputs": judging(lambda o: np.ones(len(o), bool), lambda o: np.ones(2)),
    "does not repeat itself": judging(lambda o: np.full(len(o), next(counter) % 2 == 0)),
    "depends on the batch": judging(lambda o: o[:, 0] > o[:, 0].mean()),
    "remembers 1 rows": {"needs_clean": True, "reference": lambda self, outputs: outputs[:1]},
    "not plain data": {"describe": lambda self: {"use": "first", "of": object()}},
}


@pytest.mark.parametrize("words", BREACHES)
def test_each_breach_is_named(words):
    with pytest.raises(AssertionError, match=words) as caught:
        check_oracle(type("Broken", (First,), BREACHES[words]))
    assert "\n" not in str(caught.value)


def test_a_description_has_to_lead_back():
    class Liar(Label):
        def describe(self):
            return {"use": "tolerance", "eps": 1.0}

    with pytest.raises(AssertionError, match="does not lead back"):
        check_oracle(Liar)
