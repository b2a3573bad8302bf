"""Differences of mean scores: limits that hold, and p-values that go with them."""

import numpy as np
import pytest

from testifai.statistics.differences import solve_paired_means as solve_paired
from testifai.statistics.differences import solve_separate_means as solve_apart


@pytest.mark.parametrize("gain", [0.0, 0.05])
def test_paired_differences_are_covered_and_seldom_found_where_there_is_none(gain):
    random = np.random.default_rng(1)
    a = random.beta(5, 2, (300, 60))
    b = np.clip(a + gain * (random.random((300, 60)) < 0.5) + 0.02 * random.normal(size=a.shape), 0, 1)
    everyone = random.beta(5, 2, 400_000)
    shift = np.clip(everyone + gain * (random.random(400_000) < 0.5) + 0.02 * random.normal(size=400_000), 0, 1)
    truth = float((shift - everyone).mean())
    low, high, p = solve_paired(list(b - a), None)
    assert np.mean((low <= truth) & (truth <= high)) > 0.93
    assert ((p < 0.05) == ((low > 0) | (high < 0))).mean() > 0.97
    assert (p < 0.05).mean() < 0.06 if not gain else (p < 0.05).mean() >= 0


def test_a_population_tried_whole_leaves_no_doubt():
    differences = np.array([0.1, -0.05, 0.2, 0.0])
    low, high, p = solve_paired([differences], 4)
    assert low[0] == pytest.approx(high[0]) == pytest.approx(differences.mean())
    assert p[0] < 1e-9


@pytest.mark.parametrize("stopped", [False, True])
def test_means_measured_apart(stopped):
    random = np.random.default_rng(2)
    a, b = random.beta(8, 2, (200, 80)), random.beta(6, 4, (200, 80))
    low, high, p = solve_apart(list(a), list(b), None, stopped=stopped)
    assert np.mean((low <= -0.2) & (high >= -0.2)) > 0.94
    assert (p < 0.05).all() if not stopped else (high - low).mean() > 0.3
