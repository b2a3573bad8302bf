"""Regions given by a sample of their tests: the bounds allow for the draw."""

import numpy as np
import pytest

from testifai.surrogates.base import Surrogate, drawn_from, sampling_variance
from testifai.surrogates.process import Process


class Known(Surrogate):
    """Knows every rate: what is left is the draw."""

    name = "known"

    def fit(self, features, passes, trials, *, single=None):
        return self

    def predict(self, features):
        rates = np.asarray(features)[:, 0] / 100
        return rates, np.zeros(len(rates))


def test_bounds_of_a_sample_cover_the_mean_of_all():
    everything = np.arange(101)[:, None]
    covered = 0
    for seed in range(400):
        rows = np.random.default_rng(seed).choice(everything, 25, replace=False)
        _, low, high = Known().region(rows, of=101)
        covered += low <= 0.5 <= high
    assert 0.92 <= covered / 400 <= 0.975


def test_all_tests_are_no_sample():
    everything = np.arange(101)[:, None]
    assert Known().region(everything) == Known().region(everything, of=101)
    assert sampling_variance(np.array([0.1, 0.9]), 2) == 0


def test_the_draw_adds_to_what_a_fit_does_not_know():
    process = Process().fit([[0], [1], [2], [3]], passes=[96, 90, 79, 61], trials=[100] * 4)
    rows = [[0], [3]]
    estimate, low, high = process.region(rows)
    sampled = process.region(rows, of=4)
    assert sampled[0] == estimate
    spread = 1.96 * sampling_variance(process.predict(rows)[0], 4) ** 0.5
    assert estimate - sampled[1] == pytest.approx(np.hypot(estimate - low, spread), rel=1e-3)
    assert sampled[2] == 1.0 or sampled[2] > high
    assert drawn_from(np.array([0.5, 0.5]), (0.5, 0.4, 0.6), 10, 0.95) == (0.5, 0.4, 0.6)
