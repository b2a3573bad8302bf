from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from testifai.operational.base import Frame, Sample, conclude, draw
from testifai.operational.random_sampling import SimpleRandom


def repeat(technique, failed, tests, repetitions):
    frame = Frame(len(failed))
    for seed in range(repetitions):
        yield conclude(technique, frame, draw(technique, frame, tests, np.random.default_rng(seed), failed.__getitem__))


@pytest.mark.parametrize("replacement", [False, True])
def test_mean_and_variance_are_equations_1_to_3(replacement):
    failed = np.arange(300) < 45
    rate, tests, repetitions = 0.15, 100, 4000
    answers = np.array([a.accuracy for a in repeat(SimpleRandom(replacement=replacement), failed, tests, repetitions)])
    variance = rate * (1 - rate) / tests * (1 if replacement else (300 - tests) / (300 - 1))
    assert abs(answers.mean() - 0.85) < 3.5 * np.sqrt(variance / repetitions)
    assert answers.var() == pytest.approx(variance, rel=3.5 * np.sqrt(2 / repetitions))


def test_draws_repeat_only_with_replacement():
    frame, rng = Frame(50), np.random.default_rng(1)
    once = next(SimpleRandom().plan(frame, 50, rng))
    assert sorted(once.tolist()) == list(range(50))
    assert len(set(next(SimpleRandom(replacement=True).plan(frame, 50, rng)).tolist())) < 50


def coverage(rate, draws, population, replacement):
    """The chance that the interval holds the rate, summed over all that can be seen."""
    technique, frame, failures = SimpleRandom(replacement=replacement), Frame(population), np.arange(draws + 1)
    failing = round(population * rate)
    chances = binom.pmf(failures, draws, rate) if replacement else hypergeom.pmf(failures, population, failing, draws)
    seen = [number for number in failures if chances[number] > 1e-9]
    ends = [technique.estimate(frame, Sample(np.arange(draws), np.arange(draws) < number))[1:] for number in seen]
    return sum(chances[n] for n, (low, high) in zip(seen, ends, strict=True) if low <= 1 - rate + 1e-12 <= high + 2e-12)


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("draws", [50, 200])
@pytest.mark.parametrize("accuracy", [0.5, 0.97, 0.99, 0.995, 1.0])
def test_intervals_hold_the_truth_as_often_as_stated(accuracy, draws, replacement):
    assert coverage(1 - accuracy, draws, 10_000, replacement) >= 0.95


def test_labelling_everything_gives_the_truth():
    failed = np.arange(20) < 3
    answer = next(repeat(SimpleRandom(), failed, 20, 1))
    assert (answer.accuracy, answer.low, answer.high) == (0.85, 0.85, 0.85)
