from __future__ import annotations

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.operational import ces
from testifai.operational.base import Frame, draw
from testifai.operational.ces import CrossEntropy


def features(size=2000, count=5, seed=0):
    return np.random.default_rng(seed).gamma(1.0, size=(size, count)).astype(np.float32)


def cross_entropy(bins, chosen, count):
    """Mean over features of minus the sum of population times log sample share, straight from the definition."""
    total = 0.0
    for column in bins.T:
        whole = np.bincount(column, minlength=ces.BINS) / len(bins)
        sample = np.bincount(column[chosen], minlength=ces.BINS) / len(chosen)
        whole[whole < 0.5 / count] = 0
        total -= (whole * np.log(np.maximum(sample, ces.FLOOR))).sum()
    return total


def test_bins_are_equal_steps_from_lowest_to_highest():
    rows = np.column_stack([np.linspace(0, 9, 10), np.full(10, 3.0), np.linspace(5, -4, 10)])
    bins = ces.binned(rows)
    assert bins.shape == (10, 2)
    assert bins[:, 0].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 8]


@pytest.mark.parametrize("seed", range(5))
def test_gains_rank_groups_as_the_cross_entropy_itself(seed):
    rng = np.random.default_rng(seed)
    bins = ces.binned(features(seed=seed))
    drawn = rng.permutation(2000)[:40]
    groups = np.array([rng.permutation(2000)[:5] for _ in range(30)])
    population = ces._histogram(bins) / 2000
    aim = np.where(population < 0.5 / 45, 0, population)
    gains = ces._gains(aim, ces._histogram(bins[drawn]), 40, bins[groups])
    direct = [cross_entropy(bins, np.concatenate([drawn, group]), 45) for group in groups]
    # Up to a constant, and up to an unreached bin's share being 1e-10 of 40 draws here and of 45 there.
    np.testing.assert_allclose(gains - gains[0], np.array(direct[0]) - direct, atol=2e-2)
    assert np.argmax(gains) == np.argmin(direct)


@pytest.mark.parametrize("tests", [1, 30, 33, 200])
def test_draws_are_different_examples(tests):
    sample = draw(CrossEntropy(), Frame(400, features=features(400)), tests, np.random.default_rng(0), lambda i: i < 40)
    assert len(np.unique(sample.selected)) == tests


def test_everything_can_be_drawn():
    sample = draw(CrossEntropy(), Frame(64, features=features(64)), 64, np.random.default_rng(0), lambda i: i < 10)
    assert sorted(sample.selected.tolist()) == list(range(64))


def test_the_sample_is_closer_to_all_examples_than_random_ones():
    rows = features()
    bins = ces.binned(rows)
    chosen = next(CrossEntropy().plan(Frame(2000, features=rows), 100, np.random.default_rng(0)))
    random = [np.random.default_rng(seed).permutation(2000)[:100] for seed in range(200)]
    ours = cross_entropy(bins, chosen, 100)
    assert ours < min(cross_entropy(bins, each, 100) for each in random)


def test_estimates_average_to_the_truth_where_features_tell_nothing():
    rows, failed = features(1000, 3), np.arange(1000) % 10 == 0
    technique, frame = CrossEntropy(), Frame(1000, features=rows)
    answers, covered = [], 0
    for seed in range(150):
        sample = draw(technique, frame, 60, np.random.default_rng(seed), failed.__getitem__)
        accuracy, low, high = technique.estimate(frame, sample)
        answers.append(accuracy)
        covered += low <= 0.9 <= high
    assert abs(np.mean(answers) - 0.9) < 3.5 * np.sqrt(0.09 / 60 / 150)
    assert covered >= 150 * (0.93 - 3 * np.sqrt(0.93 * 0.07 / 150))


def test_new_features_are_binned_anew():
    technique, rng = CrossEntropy(), np.random.default_rng(0)
    next(technique.plan(Frame(500, features=features(500)), 40, rng))
    other = features(700, 2, seed=1)
    again = next(technique.plan(Frame(700, features=other), 40, np.random.default_rng(3)))
    fresh = next(CrossEntropy().plan(Frame(700, features=other), 40, np.random.default_rng(3)))
    assert again.tolist() == fresh.tolist()


def test_features_that_never_vary_make_it_a_random_sample():
    sample = draw(CrossEntropy(), Frame(100, features=np.ones((100, 3))), 50, np.random.default_rng(0), lambda i: i < 9)
    assert len(np.unique(sample.selected)) == 50


def test_features_are_needed():
    with pytest.raises(InputError, match="features: technique 'ces'"):
        next(CrossEntropy().plan(Frame(10, np.zeros(10)), 3, np.random.default_rng(0)))
