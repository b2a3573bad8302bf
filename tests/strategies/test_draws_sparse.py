"""Budgets below a few inputs per test."""

from __future__ import annotations

import numpy as np
import pytest

import testifai as ta
from testifai.runs.outcomes import Outcomes
from testifai.strategies.adaptive import Adaptive
from testifai.strategies.base import Progress
from testifai.strategies.draws import FEWEST, MOST, low_first
from testifai.tomogram import EstimatorSettings


def space(levels=6, axes=4):
    keep = ta.Perturbation("keep", lambda batch, parameter, rng: batch, range(levels))
    return ta.Space({f"axis_{number}": keep for number in range(axes)})


def planned(budget, inputs=5000, made=None, focus="mild", **options):
    progress = Progress(made or space(), Outcomes(inputs), budget=budget, **options)
    work = Adaptive(focus=focus).propose(progress)
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
    tests, trials = planned(14_400, focus="even")
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
        tomogram = ta.Tomogram(
            made, progress.outcomes, np.arange(inputs), settings=EstimatorSettings(surrogate="process", seed=seed)
        )
        answer = tomogram.query("order == 1")
        assert answer.high - answer.low < 0.16
        truth = passed.mean(axis=1)
        covered.append(((tomogram.low.ravel() <= truth) & (truth <= tomogram.high.ravel())).mean())
    assert np.mean(covered) >= 0.93


def orders_of(made, tests):
    return np.bincount(np.count_nonzero(made.matrix(tests), axis=1), minlength=len(made.axes) + 1)


@pytest.mark.parametrize("budget", [3_000, 50_000])
def test_a_space_that_cannot_be_listed_is_planned_in_a_moment(budget):
    made = space(axes=15)
    tests, trials = planned(budget, made=made)
    assert trials.sum() == budget
    assert len(np.unique(tests)) == len(tests)
    assert tests[0] == 0
    orders = orders_of(made, tests)
    assert orders[1] == 75, "every single perturbation"
    assert (orders[2:] > 0).sum() >= 12, "and most higher orders"


def test_what_is_drawn_at_random_goes_by_tests_or_by_orders():
    made = space(axes=15)
    drawn = {}
    for weights in ("tests", "orders", "mixed"):
        progress = Progress(made, Outcomes(5000), budget=50_000)
        tests = Adaptive(weights=weights).propose(progress).configurations
        drawn[weights] = orders_of(made, tests)[3:]
    assert drawn["tests"][:4].sum() == 0, "tests of order 3 to 6 are rare among 4.7e11"
    assert np.ptp(drawn["orders"]) <= 1
    assert (drawn["mixed"][:4] > 5).all()
    assert Adaptive(weights="orders").describe()["weights"] == "orders"
    with pytest.raises(ta.InputError, match="weights"):
        Adaptive(weights="rare")


def test_a_large_space_without_a_budget_gets_one_and_a_target_must_say_of_what():
    made = space(axes=15)
    assert Adaptive().expected(Progress(made, Outcomes(5000))) == 100_000
    with pytest.raises(ta.InputError, match="for_queries"):
        Adaptive().propose(Progress(made, Outcomes(5000), target=0.02))
    queries = Adaptive(for_queries=["order <= 2"])
    assert len(queries.propose(Progress(made, Outcomes(5000), target=0.02)).configurations) > 500


@pytest.mark.slow
def test_rounds_of_a_large_space_go_to_measured_tests_and_to_fresh_ones():
    made, inputs = space(axes=8), 2000
    strength = np.random.default_rng(0).normal(4, 1.5, inputs)
    progress = Progress(made, Outcomes(inputs), target=0.02, seed=1)
    strategy, rounds, tests = Adaptive(for_queries=["order <= 2", "axis_0 >= 3"]), 0, []
    while (work := strategy.propose(progress)) is not None and rounds < 3:
        severity = made.matrix(work.configurations).sum(axis=1)
        for test, total, places in zip(work.configurations.tolist(), severity, work.places, strict=True):
            progress.outcomes.record(test, places, strength[places] > 0.2 * total)
        rounds += 1
        tests.append(len(progress.outcomes))
    assert rounds > 1
    assert tests[-1] > tests[0]


@pytest.mark.parametrize("budget", [1500, 3000])
def test_pairs_are_looked_at_in_both_orders(budget):
    keep = ta.Perturbation("keep", lambda batch, parameter, rng: batch, range(6))
    made = ta.Space({f"axis_{number}": keep for number in range(4)}, order_sensitive=True)  # 18,321 tests
    tests, trials = planned(budget, made=made)
    assert trials.sum() == budget
    rows = made.matrix(tests)
    pairs = rows[np.count_nonzero(rows[:, :4], axis=1) == 2]
    first = {(a, b) for row in pairs for a in range(4) for b in range(4) if row[4 + a] == 1 and row[4 + b] == 2}
    assert len(first) >= 10, "of the twelve sequences of two"
    assert np.count_nonzero(rows[:, :4], axis=1).max() == 4
