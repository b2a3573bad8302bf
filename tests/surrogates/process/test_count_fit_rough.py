"""A first look at a grid from counts alone, beside a fit of the process on the same trials."""

from __future__ import annotations

import itertools

import numpy as np

from testifai.surrogates.process import Process, sketch

LEVELS = [range(4), range(3), range(5)]
GRID = np.array(list(itertools.product(*LEVELS)))
RATES = np.clip(1 - 0.08 * GRID.sum(axis=1), 0.05, 0.97)


def counts(trials, seed=0):
    return np.random.default_rng(seed).binomial(trials, RATES)


def test_a_sketch_is_close_to_a_fit():
    trials = np.full(len(GRID), 60)
    passes = counts(trials)
    rates, variances = sketch(LEVELS, GRID, passes, trials)
    process = Process([list(axis) for axis in LEVELS]).fit(GRID, passes, trials)
    fitted, variance = process.predict(GRID)
    assert np.abs(rates - fitted).mean() < 0.005
    on_it = process.off_surface(GRID) < 0.05  # of single tests off the surface a sketch knows nothing
    assert np.corrcoef(np.sqrt(variances)[on_it], np.sqrt(variance)[on_it])[0, 1] > 0.8
    assert np.abs(rates - RATES).mean() < np.abs(passes / trials - RATES).mean() / 1.5


def test_the_order_of_the_tests_does_not_matter():
    trials = np.full(len(GRID), 40)
    passes, turned = counts(trials), np.random.default_rng(1).permutation(len(GRID))
    rates, variances = sketch(LEVELS, GRID, passes, trials)
    others = sketch(LEVELS, GRID[turned], passes[turned], trials)
    np.testing.assert_allclose(others[0], rates[turned], rtol=1e-6)
    np.testing.assert_allclose(others[1], variances[turned], rtol=1e-6)


def test_many_trials_of_the_clean_test_are_no_hindrance():
    trials = np.full(len(GRID), 40)
    trials[0] = 4000
    assert sketch(LEVELS, GRID, counts(trials), trials) is not None


def test_uneven_trials_and_missing_tests_are_left_to_a_fit():
    trials = np.full(len(GRID), 40)
    assert sketch(LEVELS, GRID[1:], counts(trials)[1:], trials[1:]) is None
    trials[: len(GRID) // 2] = 1000
    assert sketch(LEVELS, GRID, counts(trials), trials) is None
