"""Difficulties of inputs from few trials: against simulated ones, and against nothing but the rates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from testifai.statistics.difficulty import NODES, Tried, difficulties, spread_of

SEVERITIES = np.array([-3.0, -1.5, 0.0, 1.0])
INPUTS = 3000


@pytest.fixture(scope="module", params=[0.5, 2.0, 4.0])
def simulated(request):
    random = np.random.default_rng(1)
    hard = random.normal(0, request.param, INPUTS)
    chance = expit(SEVERITIES[:, None] + hard)
    test, number = random.integers(0, 4, 4 * INPUTS), random.integers(0, INPUTS, 4 * INPUTS)
    failed = random.random(4 * INPUTS) < chance[test, number]
    return request.param, hard, chance, Tried(test, number, failed)


def test_the_spread_is_found(simulated):
    spread, _, chance, tried = simulated
    assert spread_of(chance.mean(axis=1), tried, INPUTS) == pytest.approx(spread, rel=0.3)


def test_hard_inputs_are_told_from_easy_ones(simulated):
    spread, hard, chance, tried = simulated
    found = difficulties(chance.mean(axis=1), spread, tried, INPUTS)
    foreseen = found.failing(np.arange(4))
    # Calibrated: among trials foreseen to fail at some rate, about that share does.
    for low, high in ((0.0, 0.1), (0.1, 0.3), (0.3, 0.6), (0.6, 1.0)):
        among = (foreseen >= low) & (foreseen < high)
        if among.sum() > 500:
            assert foreseen[among].mean() == pytest.approx(chance[among].mean(), abs=0.03)
    if spread > 1:
        assert np.corrcoef(found.weights @ NODES, hard)[0, 1] > 0.6


def test_without_trials_every_input_fails_at_the_rate_of_its_test():
    rates, never = np.array([0.001, 0.2, 0.9]), np.empty(0, np.intp)
    found = difficulties(rates, 1.5, Tried(never, never, never.astype(bool)), 5).failing(np.arange(3))
    assert found.shape == (3, 5)
    np.testing.assert_allclose(found, np.repeat(rates[:, None], 5, axis=1), atol=0.02)
