"""The contract of strategies finds each way to break it."""

import itertools

import numpy as np
import pytest

from testifai.engine.plan import Work
from testifai.strategies import Full, Ordered
from testifai.strategies.base import Strategy
from testifai.testing import check_strategy

counter = itertools.count()


class Everything(Strategy):
    """All tests on all inputs, one test a round."""

    name = "everything"

    def propose(self, progress):
        left = self.expected(progress) - progress.outcomes.total()
        for test in range(progress.space.size):
            missing = np.flatnonzero(~progress.outcomes.attempted(test, np.arange(progress.inputs)))
            if progress.needs_clean and not progress.outcomes.attempted(0, missing).all():
                left //= 2
            if len(missing) and left > 0:
                return Work(np.array([test]), missing[:left])
        return None

    def expected(self, progress):
        everything = progress.space.size * progress.inputs
        return everything if progress.budget is None else min(progress.budget, everything)

    def describe(self):
        return {"use": self.name}


def test_good_ones_pass():
    check_strategy(Everything)
    check_strategy(Everything())


def work(tests, places=(0, 1)):
    return lambda self, progress: Work(np.array(tests), np.array(places))


def spoils(self, progress):
    progress.outcomes.record(3, np.array([next(counter) % 30]), np.array([True]))
    return Everything.propose(self, progress)


def wanders(self, progress):
    found = Everything.propose(self, progress)
    return found and Work(found.configurations, np.array([next(counter) % 30]))


def remembers(self, progress):
    self.rounds = getattr(self, "rounds", 0) + 1
    found = Everything.propose(self, progress)
    return found if found is None or self.rounds < 5 else Work(found.configurations, found.union()[:1])


BREACHES = {
    "its name is ''": {"name": ""},
    "splits is None": {"splits": None},
    "not plain data": {"describe": lambda self: {"use": self.name, "array": np.ones(2)}},
    'no "use"': {"describe": lambda self: {"name": self.name}},
    "none of the 27": {"propose": work([27])},
    "twice in one round": {"propose": work([1, 1])},
    "none of the 30": {"propose": work([1], [30])},
    "not measured already": {"propose": work([0])},
    "changes the outcomes": {"propose": spoils},
    "the same progress": {"propose": wanders},
    "could not resume": {"propose": remembers},
    "of a budget of 200": {"propose": Full.propose, "tests": lambda self, progress: np.arange(27)},
    "proposes nothing": {"propose": lambda self, progress: None},
    "after expecting": {"expected": lambda self, progress: 30, "propose": lambda self, p: Ordered().propose(p)},
}
# A full run that never looks at its budget.
BREACHES["of a budget of 200"] = {"propose": lambda self, p: Full().propose(type(p)(p.space, p.outcomes))}


@pytest.mark.parametrize("words", BREACHES)
def test_each_breach_is_named(words):
    with pytest.raises(AssertionError, match=words) as caught:
        check_strategy(type("Broken", (Everything,), BREACHES[words]))
    assert "\n" not in str(caught.value)


def test_a_description_has_to_lead_back():
    class Liar(Ordered):
        def describe(self):
            return {"use": "ordered", "max_order": 1}

    with pytest.raises(AssertionError, match="does not lead back"):
        check_strategy(Liar)
