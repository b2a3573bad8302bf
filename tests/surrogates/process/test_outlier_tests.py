"""One bad test on an otherwise smooth surface: its own trials count, and its neighbours keep their estimates."""

import itertools

import numpy as np
import pytest

from testifai.surrogates.process import Process
from testifai.surrogates.process.kernel import rate
from testifai.surrogates.process.outlier_tests import OutlierTests, find_outliers

SIGMAS = np.array(list(itertools.product(range(6), repeat=2)))
SMOOTH = 0.95 * np.exp(-0.02 * SIGMAS.sum(axis=1) ** 1.5)
BAD = 14


def fitted(rates: np.ndarray, trials: int, seed: int) -> tuple[Process, np.ndarray]:
    passes = np.random.default_rng(seed).binomial(trials, rates)
    return Process().fit(SIGMAS, passes, np.full(len(rates), trials)), passes


def test_a_bad_test_is_covered_and_known_as_one():
    rates = SMOOTH.copy()
    rates[BAD] -= 0.4
    covered, chances, others = 0, [], []
    for seed in range(20):
        process, _ = fitted(rates, 100, seed)
        low, high = process.bounds(SIGMAS)
        inside = (low <= rates) & (rates <= high)
        covered += inside[BAD]
        others.append(np.delete(inside, BAD).mean())
        chances.append(process.off_surface(SIGMAS))
    assert covered >= 17  # 19 are expected; 16 or fewer have a probability of .01
    assert np.median(chances, axis=0)[BAD] > 0.9
    assert np.delete(np.mean(chances, axis=0), BAD).max() < 0.2
    assert np.mean(others) > 0.93


def test_a_smooth_surface_has_no_odd_tests_and_hardly_wider_intervals():
    process, _ = fitted(SMOOTH, 100, 1)
    assert process.off_surface(SIGMAS).max() < 0.3
    low, high = process.bounds(SIGMAS)
    process._outliers = None
    before = process.bounds(SIGMAS)
    assert (high - low).mean() < 1.05 * (before[1] - before[0]).mean()


def test_both_explanations_meet_in_the_middle():
    one = OutlierTests(np.array([0.0, 0.5, 1.0]), np.full(3, 0.6), np.full(3, 0.01**2))
    eta, variance = np.full(3, 0.2), np.full(3, 0.02**2)
    mean, spread = one.moments(np.arange(3), eta, variance)
    np.testing.assert_allclose(mean, [0.2, 0.4, 0.6])
    np.testing.assert_allclose(np.sqrt(spread), [0.02, np.sqrt((0.02**2 + 0.01**2) / 2 + 0.2**2), 0.01])
    low, high = (one.quantile(np.arange(3), eta, variance, q) for q in (0.025, 0.975))
    np.testing.assert_allclose(low, [0.2 - 1.96 * 0.02, 0.2 - 1.645 * 0.02, 0.6 - 1.96 * 0.01], atol=1e-4)
    np.testing.assert_allclose(high, [0.2 + 1.96 * 0.02, 0.6 + 1.645 * 0.01, 0.6 + 1.96 * 0.01], atol=1e-4)


@pytest.mark.parametrize("passes", [0, 100])
def test_a_test_that_always_fails_or_passes_gets_finite_numbers(passes):
    found = find_outliers(np.array([0.8]), np.array([1e-4]), np.array([float(passes)]), np.array([100.0]), np.inf)
    assert 0.999 < found.chance[0] <= 1
    assert 0 <= rate(found.eta)[0] <= 1


def test_a_test_tried_on_all_inputs_has_nothing_left_to_err_in():
    found = find_outliers(np.array([0.8]), np.array([1e-4]), np.array([10.0]), np.array([100.0]), 100)
    assert found.variance[0] == 0
