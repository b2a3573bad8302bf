"""Oracles from elsewhere."""

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.oracles import Outcome, resolve


class Positive:
    def judge(self, outputs, expected, clean):
        return Outcome(outputs > 0)


class Rich(Positive):
    name, needs_labels, needs_clean, decides_classes = "rich", True, True, True

    def reference(self, outputs):
        return outputs * 2

    def check(self, labels, classes):
        raise InputError("labels: not these")

    def describe(self):
        return {"use": "rich", "option": 1}


def test_an_object_with_judge_gets_the_rest():
    oracle = resolve(Positive())
    assert (oracle.name, oracle.needs_labels, oracle.needs_clean, oracle.decides_classes) == ("Positive", *[False] * 3)
    assert oracle.judge(np.array([1, -1]), None, None).passed.tolist() == [True, False]
    assert oracle.reference(np.ones((3, 2))).shape == (3, 0)
    assert oracle.describe() == {"use": "Positive"}
    oracle.check(None, 3)


def test_what_it_has_of_its_own_is_used():
    oracle = resolve(Rich())
    assert (oracle.name, oracle.needs_labels, oracle.needs_clean, oracle.decides_classes) == ("rich", *[True] * 3)
    assert oracle.reference(np.ones(2)).tolist() == [2, 2]
    assert oracle.describe()["option"] == 1
    with pytest.raises(InputError, match="not these"):
        oracle.check(None, 3)
