from __future__ import annotations

import numpy as np
import pytest

from testifai.operational.base import Frame, Sample, conclude, draw
from testifai.operational.srs import SimpleRandom
from testifai.statistics.intervals import wilson


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


def test_intervals_are_wilsons_for_the_population_at_hand_or_for_new_draws():
    sample = Sample(np.arange(40), np.arange(40) < 4)
    low, high = wilson(36, 40, 100)
    assert SimpleRandom().estimate(Frame(100), sample) == (0.9, float(low), float(high))
    low, high = wilson(36, 40)
    assert SimpleRandom(replacement=True).estimate(Frame(100), sample) == (0.9, float(low), float(high))


def test_labelling_everything_gives_the_truth():
    failed = np.arange(20) < 3
    answer = next(repeat(SimpleRandom(), failed, 20, 1))
    assert (answer.accuracy, answer.low, answer.high) == (0.85, 0.85, 0.85)
