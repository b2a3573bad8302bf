"""The contract of techniques finds each way to break it."""

import itertools

import numpy as np
import pytest

from testifai.operational.random_sampling import SimpleRandom
from testifai.testing import check_technique

counter = itertools.count()


def planning(choose):
    def plan(self, frame, tests, rng):
        yield choose(frame, tests, rng)
        return {}

    return {"plan": plan}


def spoils(self, frame, tests, rng):
    frame.risk[:] = 0
    yield np.arange(tests)
    return {}


def wrong_facts(self, frame, tests, rng):
    yield np.arange(tests)
    return {"weight": np.ones(3)}


def estimating(*found):
    return {"estimate": lambda self, frame, sample: found}


BREACHES = {
    "its name is 7": {"name": 7},
    "asks about none of the 300": planning(lambda frame, tests, rng: np.array([frame.size])),
    "asks for 300 labels of at most 60": planning(lambda frame, tests, rng: np.arange(frame.size)),
    "asks for 0 labels": planning(lambda frame, tests, rng: np.arange(0)),
    "other examples with the same seed": planning(lambda frame, tests, rng: np.arange(tests) + next(counter) % 9),
    "changes its arguments": {"plan": spoils},
    "has 3 facts": {"plan": wrong_facts},
    "within 0..1": estimating(0.5, -0.1, 0.9),
    "is outside": estimating(0.5, 0.6, 0.9),
    "estimates nan": estimating(np.nan, 0.0, 1.0),
    "where every example fails": estimating(0.5, 0.0, 1.0),
    "differently from the same sample": {"estimate": lambda self, f, s: (0.5 + 1e-3 * (next(counter) % 5), 0.0, 1.0)},
}


@pytest.mark.parametrize("words", BREACHES)
def test_each_breach_is_named(words):
    with pytest.raises(AssertionError, match=words) as caught:
        check_technique(type("Broken", (SimpleRandom,), BREACHES[words]))
    assert "\n" not in str(caught.value)
