"""Means of tests that share inputs: variances by brute force."""

import itertools
import math

import numpy as np
import pytest

from testifai.statistics.clustered import ClusteredTrials, interval


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
