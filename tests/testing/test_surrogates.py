"""The contract of surrogates finds each way to break it."""

import itertools

import numpy as np
import pytest

from testifai.surrogates.base import PoolingSurrogate, Surrogate
from testifai.testing import check_surrogate

counter = itertools.count()


class Mean(Surrogate):
    """The mean rate of all tests, with its variance."""

    name = "mean"

    def fit(self, features, passes, trials, *, single=None):
        self.rate = np.sum(passes) / np.sum(trials)
        return self

    def predict(self, features):
        return np.full(len(features), self.rate), np.full(len(features), self.rate * (1 - self.rate) / 100)


class Reusable(Mean, PoolingSurrogate):
    """The same, by the longer interface."""

    def update(self, features, passes, trials, *, single=None):
        return self.fit(features, passes, trials)

    deviate = update

    def learned(self):
        return {}

    def recall(self, learned):
        assert learned == {}

    def off_surface(self, features):
        return np.zeros(len(features))


def test_a_good_one_passes():
    check_surrogate(Mean)
    check_surrogate(Reusable)
    check_surrogate(Mean())


def broken(**methods):
    return type("Broken", (Mean,), methods)


def changes(self, features, passes, trials, *, single=None):
    Mean.fit(self, features, passes, trials)
    passes[0] += 1
    return self


def first_counts(self, features, passes, trials, *, single=None):
    self.rate = passes[0] / trials[0]
    return self


def scaled(by, spread=1.0):
    def predict(self, features):
        mean, variance = Mean.predict(self, features)
        return by * mean, spread * variance

    return predict


def by_place(self, features):
    mean, variance = Mean.predict(self, features)
    return mean * np.linspace(0.9, 1, len(mean)), variance


def unsteady(self, features, passes, trials, *, single=None):
    self.rate = 0.4 + 1e-3 * (next(counter) % 7)
    return self


BREACHES = {
    "its name is 3": {"name": 3},
    "pools is 'yes'": {"pools": "yes"},
    "fit does not return the surrogate": {"fit": lambda self, *a, **k: None},
    "changes its arguments": {"fit": changes},
    "predicts shape": {"predict": lambda self, features: (np.ones(3), None)},
    "no numbers": {"predict": scaled(np.nan)},
    "outside 0..1": {"predict": scaled(3.0)},
    "negative": {"predict": scaled(1.0, -1.0)},
    "depends on those asked for with it": {"predict": by_place},
    "do not hold the estimate": {"bounds": lambda self, f, confidence=0.95: (np.zeros(len(f)), np.zeros(len(f)))},
    "widen": {"bounds": lambda self, f, confidence=0.95: (np.full(len(f), confidence / 9), np.ones(len(f)))},
    "the estimate of a region": {"region": lambda self, f, confidence=0.95: (0.1, 0.0, 1.0)},
    "bounds of a region lie outside": {"region": lambda self, f, confidence=0.95: (self.rate, 0.0, 1.0)},
    "not symmetric": {"covariance": lambda self, f: np.triu(np.ones((len(f), len(f))))},
    "two fits": {"fit": unsteady},
    "order of the tests": {"fit": first_counts},
    "whether every trial passes or none": {"fit": lambda self, *a, **k: setattr(self, "rate", 0.5) or self},
}


@pytest.mark.parametrize("words", BREACHES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_each_breach_is_named(words):
    with pytest.raises(AssertionError, match=words) as caught:
        check_surrogate(broken(**BREACHES[words]))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "methods"),
    [
        ("update on what it was fitted on", {"update": lambda self, *a, **k: self.fit([[0, 0, 0]], [1], [9])}),
        ("update does not return", {"update": lambda self, *a, **k: None}),
        ("off_surface is no probability", {"off_surface": lambda self, f: np.full(len(f), 2.0)}),
    ],
)
def test_each_breach_of_a_reusable_fit_is_named(words, methods):
    with pytest.raises(AssertionError, match=words):
        check_surrogate(type("Broken", (Reusable,), methods))
