"""The adaptive strategy on known surfaces, without a model."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import norm

import testifai as ta
from testifai.engine.plan import Work
from testifai.errors import InputError
from testifai.runs.outcomes import Outcomes
from testifai.strategies.adaptive import Adaptive, mild_first, risk
from testifai.strategies.base import Progress
from testifai.strategies.draws import shared_out
from testifai.tomogram import EstimatorSettings


def space(levels=4, axes=2):
    keep = ta.Perturbation("keep", lambda batch, parameter, rng: batch, range(levels))
    return ta.Space({f"axis_{number}": keep for number in range(axes)})


def surface(shape, inputs, seed=0):
    """Which inputs pass: each has a strength, each severity takes from it."""
    strength = np.random.default_rng(seed).normal(2.0, 1.0, inputs)
    load = np.array([sum(sigma) for sigma in itertools.product(*map(range, shape))]) * 0.6
    return strength > load[:, None]


def run(strategy, shape=(4, 4), inputs=400, needs_clean=False, stop_after=None, **options):
    """Drive a strategy to its end: outcomes, passes of all, and the work it asked for."""
    passed = surface(shape, inputs)
    outcomes, asked = Outcomes(inputs), []
    progress = Progress(space(shape[0], len(shape)), outcomes, needs_clean=needs_clean, **options)
    while (work := strategy.propose(progress)) is not None:
        asked.append(work)
        for test, places in zip(work.configurations.tolist(), work.places, strict=True):
            outcomes.record(test, places, passed[test, places])
        if stop_after is not None and len(asked) == stop_after:
            break
    return outcomes, passed, asked


@pytest.mark.parametrize("budget", [2, 7, 16, 100, 1000, 1601, 6399, 10**6])
@pytest.mark.parametrize("needs_clean", [False, True])
def test_a_budget_is_spent_and_never_exceeded(budget, needs_clean):
    outcomes, _, _ = run(Adaptive(), budget=budget, needs_clean=needs_clean)
    assert outcomes.total() <= min(budget, 16 * 400)
    if not needs_clean:
        assert outcomes.total() == min(budget, 16 * 400)
    else:
        clean = np.flatnonzero(outcomes.attempted(0, np.arange(400)))
        for test in outcomes:
            assert np.isin(np.flatnonzero(outcomes.attempted(test, np.arange(400))), clean).all()


@pytest.mark.parametrize("raised", [1000, 1700, 2500])
def test_a_raised_budget_is_not_exceeded_either(raised):
    outcomes, passed, _ = run(Adaptive(), budget=1000)
    progress = Progress(space(), outcomes, budget=raised)
    while (work := Adaptive().propose(progress)) is not None:
        for test, places in zip(work.configurations.tolist(), work.places, strict=True):
            outcomes.record(test, places, passed[test, places])
    assert outcomes.total() == raised


@pytest.mark.parametrize("budget", [16 * 20, 16 * 300])
def test_little_and_plenty_are_spread_evenly_at_once(budget):
    outcomes, _, asked = run(Adaptive(focus="even"), budget=budget)
    _, trials = outcomes.counts(np.arange(16))
    assert len(asked) == 1
    assert trials[0] == min(400, budget // 2)
    assert np.ptp(trials[1:]) <= 1
    assert trials.sum() == budget


def test_the_second_half_goes_where_the_error_is_largest():
    outcomes, passed, asked = run(Adaptive(focus="even"), budget=2000)
    assert len(asked) == 2
    _, first = outcomes.counts(np.arange(16))
    rates = passed.mean(axis=1)
    middle, ends = np.abs(rates - 0.5) < 0.3, np.minimum(rates, 1 - rates) < 0.1
    ends[0] = False  # the clean test has a share of its own
    assert first[middle].mean() > 1.2 * first[ends].mean()


def test_mild_tests_get_more_trials():
    assert mild_first(space(3, 2)).round(3).tolist() == [1, 0.707, 0.577, 0.707, 0.577, 0.707, 0.577, 0.707, 1]
    outcomes, _, _ = run(Adaptive(), shape=(4, 4, 4), inputs=3000, budget=64 * 60)
    _, trials = outcomes.counts(np.arange(1, 64))
    steps = np.array([sum(sigma) for sigma in itertools.product(range(4), repeat=3)])[1:]
    assert trials[steps == 1].mean() > 1.5 * trials[(steps == 4) | (steps == 5)].mean()
    assert trials.min() > 0


def test_a_query_in_focus_gets_half_of_the_trials():
    query = "axis_0 == 3 and axis_1 == 3"
    outcomes, _, _ = run(Adaptive(focus=query), inputs=4000, budget=16 * 20)
    _, trials = outcomes.counts(np.arange(16))
    assert trials[1:].sum() / 2 < trials[15] < trials[1:].sum() * 0.6


@pytest.mark.parametrize(
    ("focus", "message"),
    [(3, 'strategy: focus: expected "mild", "even" or a query, got 3'), ("zoom > 2", "zoom"), ("order > 7", "focus")],
)
def test_a_focus_that_selects_nothing_is_an_error(focus, message):
    with pytest.raises(InputError, match=message):
        run(Adaptive(focus=focus), budget=100)


def test_a_target_ends_the_run_once_every_half_width_is_small():
    strategy = Adaptive()
    coarse, fine = (run(strategy, inputs=2000, target=target)[0] for target in (0.05, 0.03))
    assert 16 * 10 < coarse.total() < fine.total() < 16 * 2000
    rates = surface((4, 4), 2000).mean(axis=1)
    tomogram = ta.Tomogram(space(), fine, np.arange(2000), settings=EstimatorSettings(surrogate="process"))
    assert ((tomogram.high - tomogram.low) / 2).max() <= 0.03
    assert np.abs(tomogram.estimate.ravel() - rates).max() < 0.06


def test_queries_draw_the_trials_to_their_tests():
    query = "axis_0 >= 2 and axis_1 >= 2"
    outcomes, _, _ = run(Adaptive(for_queries=[query]), inputs=2000, budget=2800)
    _, trials = outcomes.counts(np.arange(16))
    asked_for = (np.arange(16) // 4 >= 2) & (np.arange(16) % 4 >= 2)
    assert trials[asked_for].mean() > 2 * trials[~asked_for].mean()
    whole = run(Adaptive(), inputs=2000, target=0.03)[0].total()
    assert run(Adaptive(for_queries=[query]), inputs=2000, target=0.03)[0].total() < whole


@pytest.mark.parametrize("stop_after", [1, 2])
def test_a_run_goes_on_where_it_was_interrupted(stop_after):
    expected, passed, _ = run(Adaptive(), budget=1600)
    outcomes, _, _ = run(Adaptive(), budget=1600, stop_after=stop_after)
    progress = Progress(space(), outcomes, budget=1600)
    strategy, half = Adaptive(), True
    while (work := strategy.propose(progress)) is not None:
        rows = range(0, len(work.configurations), 2) if half else range(len(work.configurations))
        half = False  # the first work is left half done
        for row in rows:
            test, places = int(work.configurations[row]), work.places[row]
            outcomes.record(test, places, passed[test, places])
    assert all(np.array_equal(outcomes.bits(test), expected.bits(test)) for test in expected)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("shape", [(2,), (2, 2), (6,)])
def test_constant_models_few_levels_and_little_data(constant, shape):
    inputs, outcomes = 50, Outcomes(50)
    progress = Progress(space(shape[0], len(shape)), outcomes, target=0.05)
    while (work := Adaptive().propose(progress)) is not None:
        assert isinstance(work, Work)
        for test, places in zip(work.configurations.tolist(), work.places, strict=True):
            outcomes.record(test, places, np.full(len(places), constant))
    tomogram = ta.Tomogram(progress.space, outcomes, np.arange(inputs), settings=EstimatorSettings(surrogate="process"))
    assert np.abs(tomogram.estimate - constant).max() < 0.05


@pytest.mark.parametrize("given", ["axis_0 > 1", [3], 5])
def test_queries_are_a_list_of_texts(given):
    with pytest.raises(InputError, match=r"^strategy: for_queries must be a list of queries"):
        Adaptive(for_queries=given)


def test_a_query_that_selects_nothing_is_refused_before_anything_is_spent():
    with pytest.raises(InputError, match="selects no test"):
        run(Adaptive(for_queries=["axis_0 > 7"]), budget=100)


@pytest.mark.parametrize("seed", range(20))
def test_shares_are_whole_fit_and_add_up(seed):
    rng = np.random.default_rng(seed)
    need, room = rng.exponential(size=30) * (rng.random(30) < 0.8), rng.integers(0, 40, 30)
    size = int(rng.integers(0, 1500))
    shares = shared_out(size, need, room)
    assert shares.sum() == min(size, room.sum())
    assert (shares >= 0).all()
    assert (shares <= room).all()


@pytest.mark.parametrize("growth", [1.25, 1.6, 2.0, 4.0])
def test_looking_again_and_again_errs_in_five_per_cent_at_most(growth):
    """Normal sums looked at while their information grows from 10 trials to all of 10,000, as in a run."""
    looks = min(40, 1 + int(np.log(1000) / np.log(growth)))
    information = growth ** np.arange(looks)
    generator = np.random.default_rng(0)
    steps = generator.normal(size=(40_000, looks)) * np.sqrt(np.diff(information, prepend=0.0))
    values = np.abs(steps.cumsum(axis=1) / np.sqrt(information))
    limits = norm.isf(np.array([risk(look) for look in range(1, looks + 1)]) / 2)
    wrong = (values > limits).any(axis=1).mean()
    assert wrong < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 40_000)


def test_a_budget_is_planned_without_a_fit_where_counts_are_even(monkeypatch):
    from testifai.surrogates.process import Process

    def refuse(*_, **__):
        raise AssertionError("a fit would take longer than fast inferences")

    monkeypatch.setattr(Process, "fit", refuse)
    outcomes, _, asked = run(Adaptive(), budget=2000)
    assert len(asked) == 2
    assert outcomes.total() == 2000


def test_a_round_knows_of_nothing_but_the_rounds_before_it():
    """What is planned does not depend on whether later outcomes are there already, as in a run that is resumed."""
    _, passed, (first, second) = run(Adaptive(), budget=2000)
    outcomes = Outcomes(400)
    for test, places in zip(first.configurations.tolist(), first.places, strict=True):
        outcomes.record(test, places, passed[test, places])
    done = int(second.configurations[0])
    outcomes.record(done, second.places[0][:3], passed[done, second.places[0][:3]])
    again = Adaptive().propose(Progress(space(), outcomes, budget=2000))
    assert again.configurations.tolist() == second.configurations.tolist()
    assert np.array_equal(again.places[0], second.places[0][3:])
    assert all(map(np.array_equal, again.places[1:], second.places[1:]))


@pytest.mark.parametrize("kept", [True, False])
def test_rounds_towards_a_target_are_planned_with_scores_where_the_run_keeps_them(kept, monkeypatch):
    from testifai.surrogates.process import Process

    seen = []
    fit = Process.fit

    def noting(process, *counts, single):
        seen.append(single.value)
        return fit(process, *counts, single=single)

    monkeypatch.setattr(Process, "fit", noting)
    passed = surface((4, 4), 400)
    margins = np.random.default_rng(1).normal(np.where(passed, 1.0, -1.0), 0.2).astype(np.float32)
    outcomes = Outcomes(400)
    progress = Progress(space(), outcomes, target=0.06)
    while (work := Adaptive().propose(progress)) is not None:
        for test, places in zip(work.configurations.tolist(), work.places, strict=True):
            values = {"value": margins[test, places]} if kept else None
            outcomes.record(test, places, passed[test, places], values)
    assert seen
    assert all((values is not None) == kept for values in seen)
    if kept:
        assert all(np.isfinite(values).all() for values in seen)
