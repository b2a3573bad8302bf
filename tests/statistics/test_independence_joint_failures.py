from __future__ import annotations

import numpy as np
import pytest

from testifai.statistics.independence import JointFailures

GRID = np.array([[0.02, 0.02], [0.02, 0.05], [0.05, 0.02], [0.05, 0.05]])  # losses by either, of four joint tests
RARE = JointFailures(0.9, GRID[:, 0], GRID[:, 1], np.full(4, 1000))


def test_the_variance_is_that_of_departures_where_single_outcomes_decide():
    rng = np.random.default_rng(0)
    clean, one, other = rng.random((3, 20_000, 400))
    passed = np.stack([clean < 0.9, (clean < 0.9) & (one > 0.3), (clean < 0.9) & (other > 0.2)]).mean(axis=2)
    both = ((clean < 0.9) & (one > 0.3) & (other > 0.2)).mean(axis=1)
    departures = both - passed[1] * passed[2] / passed[0]
    least = JointFailures(0.9, np.array([0.3]), np.array([0.2]), np.array([400])).variance
    assert departures.var() == pytest.approx(least[0], rel=0.05)


def test_where_nothing_was_found_all_of_the_poisson_count_is_missing():
    drawn = RARE.missing(np.zeros(4), 40_000, np.random.default_rng(0))
    counts = drawn * 1000
    assert np.abs(drawn.mean(axis=0)).max() < 4 * np.sqrt(RARE.variance.max() / 40_000)
    np.testing.assert_allclose(drawn.var(axis=0), RARE.variance, rtol=0.05)
    # The thinned counts themselves are whole, and where they are none so with the chance that Poisson says.
    means = RARE.variance * 1000**2
    np.testing.assert_allclose(counts + means, np.round(counts + means), atol=1e-9)
    np.testing.assert_allclose((np.round(counts + means) == 0).mean(axis=0), np.exp(-means), atol=0.01)


def test_an_input_counts_in_all_tests_that_reach_it():
    counts = RARE.missing(np.zeros(4), 20_000, np.random.default_rng(1)) * 1000
    mildest, strongest = counts[:, 0], counts[:, 3]
    # Those of the mildest test are among those of the strongest: the covariance is nearly its variance.
    assert np.cov(mildest, strongest)[0, 1] == pytest.approx(mildest.var(), rel=0.1)


@pytest.mark.parametrize("share", [0.25, 1.0, 3.0])
def test_only_what_lacks_is_added(share):
    drawn = RARE.missing(share * RARE.variance, 40_000, np.random.default_rng(2))
    np.testing.assert_allclose(drawn.var(axis=0), max(1 - share, 0) * RARE.variance, rtol=0.05, atol=1e-15)


def test_tests_with_trials_of_their_own_numbers():
    trials = np.array([1000, 500, 250, 1000])
    rare = JointFailures(0.9, GRID[:, 0], GRID[:, 1], trials)
    drawn = rare.missing(np.zeros(4), 40_000, np.random.default_rng(3))
    np.testing.assert_allclose(drawn.var(axis=0), rare.variance, rtol=0.06)


@pytest.mark.parametrize("losses", [[0.0, 0.0], [1.0, 1.0]])
def test_where_nothing_or_everything_is_lost_nothing_varies(losses):
    rare = JointFailures(0.9, np.array(losses), np.array(losses), np.array([100, 100]))
    assert not rare.missing(np.zeros(2), 50, np.random.default_rng(0)).any()
