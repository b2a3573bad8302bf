"""More tests than a covariance matrix is held for."""

import numpy as np
import pytest

from testifai.surrogates.process import Process
from testifai.surrogates.process.kernel import Prior
from testifai.surrogates.process.low_rank import Effects, LowRankPosterior, SeenTests

SIZES = (4, 3, 3)
PRIOR = Prior([list(range(size)) for size in SIZES])
GRID = np.indices(SIZES).reshape(3, -1).T


def seen(places, rates, trials, inputs=np.inf, offset=0.0):
    tried = np.full(len(places), float(trials))
    return SeenTests(places, rates * tried, tried, inputs, offset)


def test_with_all_effects_it_is_the_process_of_the_prior():
    places = GRID[np.random.default_rng(0).permutation(36)[:25]]
    rates = np.exp(-0.05 - 0.1 * places.sum(axis=1))
    wide = LowRankPosterior(PRIOR, PRIOR.mean, seen(places, rates, 50), level=0.9)
    kernel = PRIOR.kernel(PRIOR.mean, GRID, places)
    inverse = np.linalg.inv(PRIOR.kernel(PRIOR.mean, places, places) + np.eye(25) * 0.25 / 50)
    eta, variance = wide.values(GRID)
    assert np.allclose(
        variance, PRIOR.variance(PRIOR.mean, GRID) - np.sum(kernel @ inverse * kernel, axis=1), atol=1e-6
    )
    assert np.allclose(eta, 0.9 + kernel @ inverse @ (wide._values - 0.9), atol=1e-5)
    expected = PRIOR.kernel(PRIOR.mean, GRID, GRID) - kernel @ inverse @ kernel.T
    assert np.allclose(wide.covariance(GRID), expected, atol=1e-6)
    weights = np.linspace(0, 1, len(GRID))
    assert np.allclose(wide.along(GRID, weights[:, None])[:, 0], expected @ weights, atol=1e-5)


def test_what_the_effects_leave_out_is_each_tests_own():
    effects = Effects(PRIOR, PRIOR.mean, most=8)(GRID)
    assert effects.shape[1] <= 10
    wide = LowRankPosterior(PRIOR, PRIOR.mean, seen(GRID[:20], np.full(20, 0.7), 10), level=0.9)
    wide._effects = Effects(PRIOR, PRIOR.mean, most=8)
    assert (wide._rest(GRID, effects) > 0).all()
    assert (effects**2).sum(axis=1).max() <= PRIOR.variance(PRIOR.mean, GRID).max()


def test_inputs_in_common_keep_a_region_from_being_known():
    apart = LowRankPosterior(PRIOR, PRIOR.mean, seen(GRID, np.full(36, 0.7), 10_000), 0.9)
    together = LowRankPosterior(PRIOR, PRIOR.mean, seen(GRID, np.full(36, 0.7), 10_000, offset=0.001), 0.9)
    mean = np.full((36, 1), 1 / 36)
    assert mean.T @ together.along(GRID, mean) == pytest.approx(mean.T @ apart.along(GRID, mean) + 0.001)


def test_a_fit_of_more_tests_than_are_held_uses_them_all(monkeypatch):
    """Errors are those of all trials, and intervals hold; a part of the tests, as before, would do worse."""
    monkeypatch.setattr("testifai.surrogates.process.process.LARGEST", 150)
    random = np.random.default_rng(0)
    rows = np.unique(random.integers(0, 6, (1200, 7)), axis=0)
    strength = np.linspace(0.02, 0.12, 7)
    rates = np.exp(-rows @ strength)
    passes = random.binomial(20, rates)
    levels = [range(6)] * 7
    process = Process(levels, population=False).fit(rows, passes, np.full(len(rows), 20))
    part = Process(levels, population=False).fit(rows[:150], passes[:150], np.full(150, 20))
    fresh = random.integers(0, 6, (500, 7))
    truth = np.exp(-fresh @ strength)
    errors = [np.abs(one.predict(fresh)[0] - truth).mean() for one in (process, part)]
    assert errors[0] < 0.7 * errors[1]
    low, high = process.bounds(fresh)
    assert ((low <= truth) & (truth <= high)).mean() > 0.93
    _, low, high = process.region(fresh, of=6**7)
    assert low <= np.prod([np.exp(-np.arange(6) * s).mean() for s in strength]) <= high
    assert process.covariance(fresh[:5]).shape == (5, 5)
    again = process.update(rows, passes, np.full(len(rows), 20))
    assert np.abs(again.predict(fresh)[0] - truth).mean() < errors[1]
