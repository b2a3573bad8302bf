"""`balanced`: a valid sample at every setting, an estimate without bias, intervals that hold, more failures."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.operational import conclude, draw, estimate
from testifai.operational.balanced import (
    CELLS,
    FIRST_ROUND,
    BalancedSampling,
    best_design,
    cells_of,
    curves,
    deal_out,
    fill,
    scale,
    systematic,
)
from testifai.operational.base import Frame

FOLDER = Path(os.environ.get("TESTIFAI_DATA", "../shared")) / "reference" / "deepest"


def repeat(failed, risk, balance, *, tests=100, repetitions=60, first=None):
    """Columns accuracy, low, high, failures."""
    technique, frame = BalancedSampling(balance=balance), Frame(len(failed), np.asarray(risk, float))
    rows = []
    for seed in range(repetitions):
        sample = draw(technique, frame, tests, np.random.default_rng(seed), failed.__getitem__)
        answer = conclude(technique, frame, sample if first is None else sample.first(first))
        rows.append((answer.accuracy, answer.low, answer.high, answer.failures))
    return np.array(rows).T


def three_errors(values):
    return 3 * values.std() / np.sqrt(len(values)) + 1e-12


@given(
    size=st.integers(1, 300),
    share=st.floats(0.001, 1),
    balance=st.floats(0, 1),
    rate=st.floats(0, 1),
    levels=st.integers(1, 50),
    seed=st.integers(0, 9),
)
@settings(max_examples=40, deadline=None)
def test_any_request_gives_different_examples_and_an_interval_around_the_estimate(
    size, share, balance, rate, levels, seed
):
    rng = np.random.default_rng(seed)
    tests = max(1, round(share * size))
    risk, failed = rng.integers(levels, size=size).astype(float), rng.random(size) < rate
    technique, frame = BalancedSampling(balance=balance), Frame(size, risk)
    sample = draw(technique, frame, tests, rng, failed.__getitem__)
    assert len(np.unique(sample.selected)) == tests
    for count in (1, (tests + 1) // 2, tests):
        answer = conclude(technique, frame, sample.first(count))
        assert 0 <= answer.low <= answer.accuracy <= answer.high <= 1
        found = sample.failed[:count].sum()
        assert found / size - 1e-9 <= 1 - answer.accuracy <= 1 - (count - found) / size + 1e-9
    if tests == size:
        assert answer.low == pytest.approx(1 - failed.mean()) == answer.high


def test_a_seed_gives_one_answer_and_monotone_risks_the_same():
    rng = np.random.default_rng(1)
    risk, failed = rng.random(1000), rng.random(1000) < 0.2
    answers = [estimate("balanced", risk=values, failed=failed, seed=4) for values in (risk, risk, np.exp(9 * risk))]
    assert len({(a.accuracy, a.low, a.high, *a.selected) for a in answers}) == 1


def test_two_rounds_and_one_where_labels_are_few():
    failed = np.zeros(500, bool)
    for tests, rounds in ((200, [round(FIRST_ROUND * 200), 200 - round(FIRST_ROUND * 200)]), (20, [20])):
        sizes = []
        draw(
            BalancedSampling(),
            Frame(500, np.arange(500.0)),
            tests,
            np.random.default_rng(0),
            lambda batch, sizes=sizes: (sizes.append(len(batch)), failed[batch])[1],
        )
        assert sizes == rounds


@pytest.mark.simulation
@pytest.mark.parametrize("balance", [0.3, 1])
@pytest.mark.parametrize("kind", ["useful", "useless", "misleading", "steps"])
def test_no_bias_and_honest_intervals_whatever_the_risk_is_worth(kind, balance):
    rng = np.random.default_rng(3)
    risk = rng.random(3000)
    chance = {
        "useful": risk**6,
        "useless": np.full(3000, 0.15),
        "misleading": 0.3 * (1 - risk),
        "steps": np.where(risk > 0.9, 0.5, 0.04),
    }[kind]
    failed = rng.random(3000) < chance
    accuracy, low, high, _ = repeat(failed, np.round(risk, 1) if kind == "steps" else risk, balance)
    truth = 1 - failed.mean()
    assert abs(accuracy.mean() - truth) < three_errors(accuracy)
    covered = ((low <= truth) & (truth <= high)).mean()
    assert covered >= 0.9 - 3 * np.sqrt(0.9 * 0.1 / len(low))


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("accuracy", "sharpness", "tests"),
    [(0.97, 0, 200), (0.5, 8, 800)],  # a risk that is worth nothing; half fail, where weights must add up
)
def test_intervals_hold_where_the_curve_is_hard_to_tell_and_where_half_fail(accuracy, sharpness, tests):
    technique, held, repetitions = BalancedSampling(), 0, 120
    for seed in range(repetitions):
        rng = np.random.default_rng([seed, tests])
        risk = rng.random(10_000)
        failed = np.zeros(10_000, bool)
        failed[np.argsort(-(sharpness * np.log(risk) + rng.gumbel(size=10_000)))[: round(10_000 * (1 - accuracy))]] = 1
        frame = Frame(10_000, risk)
        answer = conclude(technique, frame, draw(technique, frame, tests, rng, failed.__getitem__))
        held += answer.low <= accuracy <= answer.high
    assert held / repetitions >= 0.93 - np.sqrt(0.93 * 0.07 / repetitions)


@pytest.mark.parametrize("first", [15, 60])
def test_the_first_part_of_the_labels_gives_an_unbiased_estimate_too(first):
    rng = np.random.default_rng(5)
    risk = rng.random(2000)
    failed = rng.random(2000) < risk**3
    accuracy, low, high, _ = repeat(failed, risk, 0.3, first=first, repetitions=120)
    truth = 1 - failed.mean()
    # Within what the labels prove it is not quite linear any more: a tenth of the error is allowed.
    assert abs(accuracy.mean() - truth) < three_errors(accuracy) + 0.1 * accuracy.std()
    assert ((low <= truth) & (truth <= high)).mean() >= 0.9 - 3 * np.sqrt(0.9 * 0.1 / 120)


def test_none_and_all_failing_are_told_exactly():
    risk = np.random.default_rng(0).random(2000)
    for failed in (np.zeros(2000, bool), np.ones(2000, bool)):
        accuracy, low, high, _ = repeat(failed, risk, 0.3, repetitions=20)
        assert (accuracy == 1 - failed.mean()).all()
        assert ((low <= accuracy) & (accuracy <= high) & (high - low > 0.005)).all()


def test_the_knob_trades_error_for_failures():
    rng = np.random.default_rng(8)
    risk = rng.random(5000)
    failed = rng.random(5000) < 1 / (1 + np.exp(12 * np.sqrt(1 - risk) - 1.5))
    results = [repeat(failed, risk, balance, tests=200, repetitions=30) for balance in (0, 0.3, 1)]
    found = [failures.mean() for _, _, _, failures in results]
    errors = [((accuracy - 1 + failed.mean()) ** 2).mean() for accuracy, *_ in results]
    simple = failed.mean() * (1 - failed.mean()) / 200
    assert 3 * 200 * failed.mean() < found[0] < 0.8 * found[1] < found[1] < found[2]
    assert errors[0] < 0.5 * simple
    assert errors[1] < simple
    assert errors[0] < errors[2]


@pytest.mark.parametrize("balance", [-0.1, 1.1, float("nan"), "much", True, None])
def test_a_balance_that_is_none(balance):
    with pytest.raises(InputError, match="balance: must be a number, at least 0 and at most 1, got"):
        BalancedSampling(balance=balance)


def test_it_needs_risks():
    with pytest.raises(InputError, match="'balanced' needs"):
        estimate("balanced", failed=np.zeros(50, bool), tests=10)


@pytest.mark.simulation
def test_inclusion_in_either_round_is_what_the_weights_say():
    """Counted over many draws: an example's weight is one over how often it is drawn."""
    rng = np.random.default_rng(2)
    risk, size = rng.random(150), 150
    failed = rng.random(size) < risk**3
    technique, frame = BalancedSampling(balance=0.3), Frame(size, risk)
    repetitions = 300
    weights = np.zeros((repetitions, size))
    for seed in range(repetitions):
        sample = draw(technique, frame, 60, np.random.default_rng(seed), failed.__getitem__)
        facts = sample.facts
        together = facts["first"] + (1 - facts["first"]) * facts["second"]
        weights[seed, sample.selected] = facts["correction"] / together
    # An example weighs 1 on average, 0 where it is not drawn: that is unbiasedness for any outcomes.
    error = weights.std(axis=0) / np.sqrt(repetitions)
    assert (np.abs(weights.mean(axis=0) - 1) < 4.5 * error + 1e-9).all()
    assert weights.mean() == pytest.approx(1, abs=0.02)


def test_designs():
    members = np.bincount(cells_of(10_000), minlength=CELLS).astype(float)
    assert members.sum() == 10_000
    rate = np.linspace(0.9, 0.01, CELLS)
    variance = rate * (1 - rate)
    designs = [best_design(rate, variance, np.zeros(CELLS), members, 200, balance) for balance in (0, 0.3, 0.5, 1)]
    for chances in designs:
        assert chances @ members == pytest.approx(200)
        assert chances.max() <= 1
    # Neyman: proportional to the standard deviation.
    np.testing.assert_allclose(designs[0] / np.sqrt(variance), (designs[0] / np.sqrt(variance))[0], rtol=1e-6)
    found = [chances @ (rate * members) for chances in designs]
    spread = [(1 / chances - 1) @ (variance * members) for chances in designs]
    assert found == sorted(found)
    assert spread == sorted(spread)
    share = rate @ members / 10_000
    assert spread[2] <= 10_000 * 9_800 * share * (1 - share) / 200 * 1.0001


def test_the_least_chances_are_kept():
    least = np.full(CELLS, 0.01)
    chances = fill(np.linspace(1, 0.001, CELLS)[None], least, np.full(CELLS, 10.0), 40)[0]
    assert chances.min() == 0.01
    assert chances @ np.full(CELLS, 10.0) == pytest.approx(40)


def test_curves_learn():
    labelled = np.full((1, CELLS), 50.0)
    truth = 1 / (1 + np.exp(-(1 - 9 * (np.arange(CELLS) + 0.5) / CELLS)))
    for trusting in (True, False):
        rate, spread = curves(trusting=trusting).given(labelled * truth, labelled)
        np.testing.assert_allclose(rate[0], truth, atol=0.02)
        np.testing.assert_allclose(spread[0], truth * (1 - truth), atol=0.02)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(0, 30))
def test_scaled_chances_add_up(chances, tests):
    chances = np.maximum(np.array(chances), 1e-6)
    tests = min(tests, len(chances))
    scaled = scale(chances, tests)
    assert scaled.sum() == pytest.approx(tests)
    assert scaled.max() <= 1
    drawn = systematic(scaled, tests, np.random.default_rng(0))
    assert len(drawn) == tests
    assert (np.diff(drawn) >= 0).all()


def test_first_chances_add_up_in_every_fold():
    deal = deal_out(1003, 200)
    for fold, size in enumerate(deal.opening):
        assert deal.first[fold :: deal.folds].sum() == pytest.approx(size)
    assert deal.opening.sum() + deal.closing.sum() == 200


@pytest.mark.skipif(not FOLDER.is_dir(), reason="no tables of DeepEST (set TESTIFAI_DATA)")
@pytest.mark.parametrize(
    ("subject", "failures"),
    # 0.9 (MNIST) or 0.65 of the mean failures of the best variant of DeepEST with 200 labels.
    [
        ("CN5_MNIST", 0.9 * 44.5),
        ("LN5_MNIST", 0.9 * 65.5),
        ("CN12_CIFAR10", 0.65 * 103.9),
        ("VGG16_CIFAR10", 0.65 * 83.9),
        ("VGG16_CIFAR100", 0.65 * 129.9),
    ],
)
def test_on_published_subjects(subject, failures):
    with (FOLDER / f"{subject}.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))[1:]
    failed = np.array([row[1].strip().lower() == "fail" for row in rows])
    risk = 1 - np.array([float(row[3]) for row in rows])
    accuracy, low, high, found = repeat(failed, risk, 0.3, tests=200, repetitions=30)
    truth = 1 - failed.mean()
    squared = (accuracy - truth) ** 2
    assert abs(accuracy.mean() - truth) < three_errors(accuracy)
    assert found.mean() >= failures - three_errors(found)
    assert squared.mean() - three_errors(squared) <= truth * (1 - truth) / 200
    assert ((low <= truth) & (truth <= high)).mean() >= 0.93 - 3 * np.sqrt(0.93 * 0.07 / 30)
