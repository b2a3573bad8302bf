"""Budgets below a few inputs per test."""

from __future__ import annotations

import numpy as np
import pytest

import testifai as ta
from testifai.runs.outcomes import Outcomes
from testifai.strategies.adaptive import Adaptive
from testifai.strategies.base import Progress
from testifai.strategies.sparse import FEWEST, MOST, low_first


def space(levels=6, axes=4):
    keep = ta.Perturbation("keep", lambda batch, parameter, rng: batch, range(levels))
    return ta.Space({f"axis_{number}": keep for number in range(axes)})


def planned(budget, inputs=5000, made=None, **options):
    progress = Progress(made or space(), Outcomes(inputs), budget=budget, **options)
    work = Adaptive().propose(progress)
    return work.configurations, np.array([len(places) for places in work.places])


@pytest.mark.parametrize("budget", [650, 3000, 6001])
def test_low_orders_come_first_and_each_test_run_has_a_few_trials(budget):
    made = space()
    tests, trials = planned(budget, made=made)
    assert trials.sum() == budget
    assert np.count_nonzero(trials < FEWEST) <= 1, "but for what is left over"
    order = np.count_nonzero(made.matrix(np.arange(made.size)), axis=1)
    severity = made.matrix(np.arange(made.size)).sum(axis=1)
    ahead = tests[: round(len(tests) / 2)]
    last = max(zip(order[ahead], severity[ahead], strict=True))
    earlier = [test for test in range(made.size) if (order[test], severity[test]) < last]
    assert np.isin(earlier, ahead).all(), "nothing of lower order or severity is left out"
    assert order[tests].max() == 4, "and some of the highest order are looked at"


def test_a_larger_budget_buys_trials_instead_of_ever_more_tests():
    tests, trials = planned(20_000, made=space(axes=6))
    assert len(tests) <= MOST
    assert trials.sum() == 20_000
    assert trials.min() >= 20


def test_a_budget_of_a_few_inputs_per_test_is_spread_evenly():
    tests, trials = planned(14_400)
    assert len(tests) == 1296
    assert trials[tests == 0].tolist() == [1440]  # a tenth of it is for the clean test
    assert set(trials[tests != 0].tolist()) == {FEWEST, FEWEST + 1}


def test_a_comparing_oracle_has_the_clean_outputs_of_all_inputs_used():
    made = space()
    work = Adaptive().propose(Progress(made, Outcomes(5000), budget=650, needs_clean=True))
    clean = work.places[int(np.flatnonzero(work.configurations == 0)[0])]
    assert all(np.isin(places, clean).all() for places in work.places)
    assert sum(map(len, work.places)) == 650


def test_the_clean_test_can_have_more_than_the_others():
    tests, places = low_first(space(), 3000, 2000, np.random.default_rng(0), clean=1000)
    assert tests[0] == 0
    assert len(places[0]) == 1000
    assert sum(map(len, places)) == 3000


@pytest.mark.slow
def test_single_perturbations_are_known_well_and_intervals_hold():
    """On a simulated surface: order 1 within .08 instead of .2, and 95 % intervals cover 93 % of all tests."""
    made, inputs = space(), 2000
    severity = made.matrix(np.arange(made.size)).sum(axis=1)
    covered = []
    for seed in range(4):
        random = np.random.default_rng(seed)
        strength = random.normal(2.5, 1.0, inputs)[random.permutation(inputs)]
        passed = strength > 0.2 * severity[:, None]
        progress = Progress(made, Outcomes(inputs), budget=650, seed=seed)
        work = Adaptive().propose(progress)
        for test, places in zip(work.configurations.tolist(), work.places, strict=True):
            progress.outcomes.record(test, places, passed[test, places])
        tomogram = ta.Tomogram(made, progress.outcomes, np.arange(inputs), surrogate="process", seed=seed)
        answer = tomogram.query("order == 1")
        assert answer.high - answer.low < 0.16
        truth = passed.mean(axis=1)
        covered.append(((tomogram.low.ravel() <= truth) & (truth <= tomogram.high.ravel())).mean())
    assert np.mean(covered) >= 0.93
