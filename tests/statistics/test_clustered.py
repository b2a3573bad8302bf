"""Means of tests that share inputs: variances by brute force."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtri

from testifai.statistics.clustered import ClusteredTrials, interval, interval_of_few


def sample(passed, places) -> ClusteredTrials:
    """Test t tried on the inputs places[t]."""
    test = np.repeat(np.arange(len(places)), [len(chosen) for chosen in places])
    place = np.concatenate(places)
    return ClusteredTrials.of(test, np.unique(place, return_inverse=True)[1], passed[test, place])


def test_the_influences_are_those_of_the_definition():
    rng = np.random.default_rng(1)
    passed = rng.random((5, 20)) < 0.5
    places = [rng.permutation(20)[:n] for n in (2, 5, 5, 9, 1)]
    found = sample(passed, places)
    rates = [passed[t, p].mean() for t, p in enumerate(places)]
    expected = {}
    for t, p in enumerate(places):
        n = len(p)
        centre, factor = (rates[t], n / (n - 1)) if n > 1 else (np.mean(rates), 5 / 4)
        for i in p.tolist():
            moved = math.sqrt(factor) * (passed[t, i] - centre) / (n * 5)
            expected[i] = expected.get(i, 0) + moved
    assert found.moved == pytest.approx([expected[i] for i in sorted(expected)])


@pytest.mark.parametrize(
    "pattern",
    [
        [[0, 1, 2], [0, 1, 2]],  # the same inputs
        [[0, 1, 2], [2, 3, 4]],  # one in common
        [[0, 1], [0, 1, 2, 3]],  # one test's within the other's
        [[0, 1, 2], [3, 4, 5]],  # none
    ],
)
def test_the_variance_over_all_ways_to_draw_inputs(pattern):
    """Over all 720 orders of six inputs, the mean of the estimated variance is the variance, or a little more."""
    passed = np.array([[1, 1, 0, 1, 0, 1], [1, 1, 0, 0, 0, 1]], bool)
    estimates, variances = [], []
    for order in itertools.permutations(range(6)):
        found = sample(passed, [np.array(order)[part] for part in pattern])
        estimates.append(found.estimate)
        variances.append(found.variance(6))
    assert np.mean(estimates) == pytest.approx(passed.mean())
    assert np.var(estimates) <= np.mean(variances) * (1 + 1e-12)


def test_one_test_has_the_textbook_variance():
    passed = np.arange(50)[None] < 30
    found = sample(passed, [np.arange(20, 40)])
    assert found.variance(None) == pytest.approx(0.25 / 19)
    assert found.variance(50) == pytest.approx(0.25 / 19 * (1 - 20 / 50))


def test_the_interval_closes_once_every_input_was_tried():
    found = sample(np.arange(50)[None] < 30, [np.arange(50)])
    assert interval(found, population=50) == (0.6, 0.6)
    low, high = interval(found)
    assert low < 0.6 < high


# -- few inputs ---------------------------------------------------------------------------------------------------


def test_few_inputs_that_were_all_tried_leave_no_width():
    passed = np.arange(10)[None] >= np.array([[2], [5]])
    few = sample(passed, [np.arange(10)] * 2)
    assert interval_of_few(few, 2, population=10) == pytest.approx((0.65, 0.65))


def test_what_was_tried_of_few_inputs_is_certain():
    passed = np.arange(10)[None] >= np.array([[2], [5]])
    few = sample(passed, [np.arange(9)] * 2)
    low, high = interval_of_few(few, 2, population=10)
    assert (low, high) == pytest.approx((11 / 20, 13 / 20))  # eleven of twenty passed, seven failed


def test_tests_that_were_not_tried_widen():
    passed = np.arange(20)[None] >= np.array([[2], [12]])
    few = sample(passed, [np.arange(8), np.arange(8, 16)])
    all_low, all_high = interval_of_few(few, 2, population=20)
    low, high = interval_of_few(few, 8, population=20)
    assert low < all_low < few.estimate < all_high < high


def test_few_inputs_are_covered():
    """Simulated: 25 inputs, most of whose luck is their own, of 800 that sixteen tests draw from."""
    random, covered = np.random.default_rng(0), []
    bounds = ndtri(np.clip(0.9 - 0.05 * np.indices((4, 4)).sum(axis=0).ravel(), 0.02, 0.99))[:, None]
    for _ in range(400):
        luck = 0.9**0.5 * random.normal(size=25) + 0.1**0.5 * random.normal(size=(16, 25))
        passed, pool = luck < bounds, random.permutation(800)[:500]
        drawn = [random.permutation(pool)[:94] for _ in range(16)]
        few = sample_of_tried(passed, [np.sort(places[places < 25]) for places in drawn])
        low, high = interval_of_few(few, 16, population=25)
        covered.append(low <= passed.mean() <= high)
    assert np.mean(covered) > 0.92  # 0.89 with the interval for many inputs


def sample_of_tried(passed, places) -> ClusteredTrials:
    """Of tests without any trial nothing is said, and inputs are numbered among those used."""
    tried = [(row, chosen) for row, chosen in zip(passed, places, strict=True) if len(chosen)]
    test = np.repeat(np.arange(len(tried)), [len(chosen) for _, chosen in tried])
    _, place = np.unique(np.concatenate([chosen for _, chosen in tried]), return_inverse=True)
    return ClusteredTrials.of(test, place, np.concatenate([row[chosen] for row, chosen in tried]))
