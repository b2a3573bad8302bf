"""The process on scores: how far they scatter is learned, and intervals follow it."""

import numpy as np
import pytest

from testifai.runs.outcomes import Trials
from testifai.surrogates.process import Process
from testifai.surrogates.process.input_correlation import Dispersion

LEVELS = 6
ROWS = np.indices((LEVELS, LEVELS)).reshape(2, -1).T
MEANS = 0.95 - 0.07 * ROWS.sum(axis=1)


def fitted(scores_of, trials=12, seed=0, inputs=500):
    random = np.random.default_rng(seed)
    test = np.repeat(np.arange(len(ROWS)), trials)
    place = np.concatenate([random.permutation(inputs)[:trials] for _ in ROWS])
    scores = scores_of(random, MEANS[test])
    total = np.bincount(test, scores)
    single = Trials(test, place, scores, inputs)
    return Process(population=False).fit(ROWS, total, np.full(len(ROWS), trials), single=single)


@pytest.mark.parametrize(
    ("scores_of", "expected"),
    [
        (lambda random, mean: (random.random(len(mean)) < mean).astype(float), 1.0),
        (lambda random, mean: random.beta(9 * mean, 9 * (1 - mean)), 0.1),
    ],
)
def test_dispersion_is_learned(scores_of, expected):
    found = fitted(scores_of)._dispersion(MEANS)
    assert found.mean() == pytest.approx(expected, abs=0.1 * expected + 0.02)


def test_scores_that_scatter_less_are_known_better():
    _, wide = fitted(lambda random, mean: (random.random(len(mean)) < mean).astype(float)).predict(ROWS)
    rates, narrow = fitted(lambda random, mean: random.beta(9 * mean, 9 * (1 - mean))).predict(ROWS)
    assert np.sqrt(narrow).mean() < 0.6 * np.sqrt(wide).mean()
    assert np.abs(rates - MEANS).mean() < 0.02


def test_equal_scores_are_believed_and_not_for_certain():
    process = fitted(lambda random, mean: np.full(len(mean), 0.8))
    low, high = process.bounds(ROWS)
    assert (low < 0.8).all()
    assert (high > 0.8).all()
    assert 0.001 < (high - low).mean() < 0.1


def test_one_trial_per_test_does_not_make_the_surface_look_certain():
    found = fitted(lambda random, mean: random.beta(4 * mean, 4 * (1 - mean)), trials=1)
    assert found._dispersion(MEANS).mean() == pytest.approx(0.2, abs=0.12)


def test_sums_alone_count_as_passes():
    total = 0.8 * np.full(len(ROWS), 20.0)
    scored, passed = (Process().fit(ROWS, won, np.full(len(ROWS), 20)) for won in (total, total.astype(int)))
    assert np.allclose(scored.predict(ROWS)[1], passed.predict(ROWS)[1])


def test_no_dispersion_exceeds_that_of_passes():
    eta = np.full(50, 0.8)
    assert (Dispersion.of(eta, np.tile([0.0, 1.0], 25), np.full(50, 0.1)).values <= 1).all()
