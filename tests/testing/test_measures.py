"""The contract of quality measures finds each way to break it."""

import itertools

import numpy as np
import pytest

from testifai.quality import Measure
from testifai.quality.base import PerInputReference, sample_of
from testifai.testing import check_measure

counter = itertools.count()


class Difference(Measure):
    """How far grey levels are from the clean ones."""

    name, higher_is_better, sample = "difference", False, 20
    inferences = 0

    def describe(self):
        return {"use": self.name}

    def compare(self, clean, perturbed):
        return np.abs(clean.astype(float) - perturbed).mean(axis=(1, 2))

    def reference(self, clean, model, *, seed):
        rows, chosen = sample_of(self.name, clean, self.sample, seed)
        return PerInputReference(self.name, rows, lambda batch: self.compare(chosen, batch), self.inferences)


def test_good_ones_pass():
    check_measure(Difference)
    check_measure(Difference())
    check_measure(lambda clean, perturbed: (clean == perturbed).mean(axis=(1, 2)))


def spoils(self, clean, perturbed):
    perturbed[:] = 0
    return np.ones(len(clean))


def looks_at(rows):
    def reference(self, clean, model, *, seed):
        return PerInputReference(self.name, rows(clean), lambda batch: np.ones(len(batch)))

    return reference


BREACHES = {
    "higher_is_better is 'no'": {"higher_is_better": "no"},
    "its sample is 1": {"sample": 1},
    "share is 2": {"share": 2},
    "not plain data": {"describe": lambda self: {"use": "difference", "at": object()}},
    "describe themselves differently": {"describe": lambda self: {"use": "difference", "at": next(counter)}},
    "looks at 0 inputs": {"reference": looks_at(lambda clean: np.arange(0))},
    "do not exist": {"reference": looks_at(lambda clean: np.array([0, 60]))},
    "looks at an input twice": {"reference": looks_at(lambda clean: np.array([0, 0]))},
    "depends on what the inputs are": {"reference": looks_at(lambda clean: np.argsort(clean.mean(axis=(1, 2)))[:9])},
    "changes its arguments": {"compare": spoils},
    "better than clean": {"higher_is_better": True},
    "cannot tell": {"compare": lambda self, clean, perturbed: np.ones(len(clean))},
    "does not repeat itself": {"compare": lambda self, c, p: Difference.compare(self, c, p) + 1e-3 * next(counter)},
    "contradict": {"inferences": 5},
}


@pytest.mark.parametrize("words", BREACHES)
def test_each_breach_is_named(words):
    with pytest.raises(AssertionError, match=words) as caught:
        check_measure(type("Broken", (Difference,), BREACHES[words]))
    assert "\n" not in str(caught.value)
