"""Intervals for samples looked at several times, against enumeration and simulation."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from testifai.statistics.multiplicity import interval, sizes


def test_sizes_grow_to_all_inputs() -> None:
    for inputs in (1, 10, 64, 65, 1000, 10_000):
        found = sizes(inputs)
        assert found[-1] == inputs
        assert list(found) == sorted(set(found))
        assert all(after <= 1.5 * before for before, after in pairwise(found))


def test_all_inputs_leave_no_doubt_about_themselves() -> None:
    assert interval(37, 50, 50, "data", 0.05) == (0.74, 0.74)
    low, high = interval(37, 50, 50, "future", 0.05)
    assert low < 0.74 < high


def hypergeometric(passes: int, inputs: int, total: int, trials: int) -> float:
    return math.comb(total, passes) * math.comb(inputs - total, trials - passes) / math.comb(inputs, trials)


@pytest.mark.parametrize(("passes", "trials", "inputs"), [(60, 64, 90), (64, 64, 200), (0, 96, 144), (50, 96, 100)])
def test_limits_are_those_of_the_exact_tests_by_enumeration(passes: int, trials: int, inputs: int) -> None:
    tail = 0.05 / (len(sizes(inputs)) - 1) / 2
    kept = []
    for total in range(passes, inputs - (trials - passes) + 1):
        chances = [hypergeometric(k, inputs, total, trials) for k in range(trials + 1)]
        if sum(chances[passes:]) > tail and sum(chances[: passes + 1]) > tail:
            kept.append(total / inputs)
    assert interval(passes, trials, inputs, "data", 0.05) == pytest.approx((min(kept), max(kept)))


@pytest.mark.parametrize("population", ["data", "future"])
@pytest.mark.parametrize("rate", [0.5, 0.8, 0.97])
def test_every_look_covers_at_once(population: str, rate: float) -> None:
    seeds, inputs = 300, 500
    rng = np.random.default_rng(5)
    misses = 0
    for _ in range(seeds):
        outcomes = rng.uniform(size=inputs) < rate
        truth = outcomes.mean() if population == "data" else rate
        for size in sizes(inputs):
            low, high = interval(int(outcomes[:size].sum()), size, inputs, population, 0.1)
            if not low - 1e-12 <= truth <= high + 1e-12:
                misses += 1
                break
    # At most 10 % are promised: three standard deviations of the count above that.
    assert misses <= 0.1 * seeds + 3 * math.sqrt(0.1 * 0.9 * seeds)
