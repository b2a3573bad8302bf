"""Strategies from elsewhere."""

import numpy as np
import pytest

from testifai.engine.plan import Work
from testifai.errors import InputError
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Outcomes
from testifai.space import Space
from testifai.strategies import Progress, resolve

FADE = Perturbation("fade", lambda batch, parameter, rng: batch, (0, 1, 2))


def progress(**options):
    return Progress(Space({"a": FADE}), Outcomes(10), **options)


class Clean:
    def propose(self, progress):
        return None if 0 in progress.outcomes else Work(np.array([0]), np.arange(progress.inputs))


class Rich(Clean):
    name, surrogate, uses_target, splits = "rich", None, True, False

    def expected(self, progress):
        return 7

    def describe(self):
        return {"use": self.name, "option": 1}


def test_an_object_with_propose_gets_the_rest():
    strategy = resolve(Clean())
    assert (strategy.name, strategy.surrogate) == ("Clean", "forest")
    assert (strategy.uses_target, strategy.splits) == (False, True)
    assert strategy.propose(progress()).configurations.tolist() == [0]
    assert (strategy.expected(progress()), strategy.expected(progress(budget=12))) == (30, 12)
    assert strategy.describe() == {"use": "Clean"}


def test_what_it_has_of_its_own_is_used():
    strategy = resolve(Rich())
    assert (strategy.name, strategy.surrogate, strategy.uses_target, strategy.splits) == ("rich", None, True, False)
    assert (strategy.expected(progress()), strategy.describe()["option"]) == (7, 1)


@pytest.mark.parametrize("wrong", [3, Clean, object()])
def test_anything_else_is_refused(wrong):
    with pytest.raises(InputError, match=r"expected one of adaptive, .* or an object with propose\(\)"):
        resolve(wrong)
