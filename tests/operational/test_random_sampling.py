"""Tests of operational.random_sampling."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from testifai.errors import InputError
from testifai.operational.base import Frame, Sample, conclude, draw
from testifai.operational.random_sampling import SimpleRandom, Stratified


def repeat(technique, failed, tests, repetitions):
    frame = Frame(len(failed))
    for seed in range(repetitions):
        yield conclude(technique, frame, draw(technique, frame, tests, np.random.default_rng(seed), failed.__getitem__))


@pytest.mark.parametrize("replacement", [False, True])
def test_mean_and_variance_are_equations_1_to_3(replacement):
    failed = np.arange(300) < 45
    rate, tests, repetitions = 0.15, 100, 1500
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


def population(size=4000, seed=0):
    """Examples whose failure rate is their risk, which is small for most."""
    rng = np.random.default_rng(seed)
    risk = rng.beta(0.3, 3, size)
    return risk, rng.random(size) < risk


def run(risk, failed, tests, seed, technique=None):
    technique, frame = technique or Stratified(), Frame(len(risk), risk)
    return draw(technique, frame, tests, np.random.default_rng(seed), failed.__getitem__)


def test_labels_go_to_the_published_shares_of_the_strata():
    risk, failed = population()
    sample = run(risk, failed, 200, 0)
    rank = np.argsort(np.argsort(risk))[sample.selected]
    assert np.histogram(rank, [0, 3200, 3600, 4000])[0].tolist() == [40, 80, 80]
    assert len(np.unique(sample.selected)) == 200


@pytest.mark.parametrize("part", range(3, 60))
def test_any_first_part_keeps_to_the_shares(part):
    risk, failed = population(size=500)
    drawn = np.bincount(run(risk, failed, 60, 1).first(part).facts["stratum"], minlength=3)
    assert np.abs(drawn - part * np.array([0.2, 0.4, 0.4])).max() <= 1


@pytest.mark.parametrize("tests", [200, 37])
def test_unbiased_with_the_variance_of_stratified_sampling(tests):
    risk, failed = population(size=2000)
    frame, technique, repetitions = Frame(2000, risk), Stratified(), 600
    answers = [technique.estimate(frame, run(risk, failed, tests, seed))[0] for seed in range(repetitions)]
    groups = np.split(np.argsort(risk, kind="stable"), [1600, 1800])
    drawn = np.bincount(run(risk, failed, tests, 0).facts["stratum"])
    sizes, rates = np.array([len(g) for g in groups]), np.array([failed[g].mean() for g in groups])
    variance = ((sizes / 2000) ** 2 * rates * (1 - rates) / drawn * (sizes - drawn) / (sizes - 1)).sum()
    assert abs(np.mean(answers) - (1 - failed.mean())) < 3.5 * np.sqrt(variance / repetitions)
    assert np.var(answers) == pytest.approx(variance, rel=0.15)


@pytest.mark.parametrize("trusting", [False, True])
def test_coverage_where_failures_follow_risk(trusting):
    risk, failed = population()
    frame, technique, truth = Frame(len(risk), risk), Stratified(trusting=trusting), 1 - failed.mean()
    ends = np.array([technique.estimate(frame, run(risk, failed, 100, seed))[1:] for seed in range(150)])
    covered = ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean()
    assert covered >= 0.93 - 3 * np.sqrt(0.93 * 0.07 / 400)


@pytest.mark.parametrize("tests", [50, 200])
def test_coverage_where_the_safest_fail_most(tests):
    """A risk that misleads: nobody may conclude from it that a stratum without failures has none."""
    rng = np.random.default_rng(1)
    risk = rng.random(4000)
    failed = rng.random(4000) < 0.06 * (1 - risk)
    frame, technique, truth = Frame(4000, risk), Stratified(), 1 - failed.mean()
    ends = np.array([technique.estimate(frame, run(risk, failed, tests, seed))[1:] for seed in range(120)])
    covered = ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean()
    assert covered >= 0.93 - 2 * np.sqrt(0.93 * 0.07 / 300)


def test_risks_have_no_say_in_the_interval_but_by_their_order_unless_they_are_trusted():
    risk, _ = population()
    sample = run(risk, np.zeros(4000, bool), 200, 0)
    careful, trusting = Stratified(), Stratified(trusting=True)
    assert careful.estimate(Frame(4000, risk), sample) == careful.estimate(Frame(4000, risk**9), sample)
    lows = [trusting.estimate(Frame(4000, given), sample)[1] for given in (risk, risk**9)]
    assert careful.estimate(Frame(4000, risk), sample)[1] < lows[0] < lows[1]
    assert "nothing about the risks" in careful.assumes
    assert "as their risks say" in trusting.assumes


def test_without_failures_the_interval_is_not_a_point():
    risk, _ = population()
    accuracy, low, high = Stratified().estimate(Frame(len(risk), risk), run(risk, np.zeros(4000, bool), 200, 0))
    assert accuracy == high == 1
    assert 0.9 < low < 1


@pytest.mark.parametrize("risk", [np.zeros(300), np.full(300, 0.5), np.linspace(-40, -2, 300)])
def test_risks_that_are_equal_or_negative_are_strata_too(risk):
    failed = np.arange(300) % 10 == 0
    answer = conclude(Stratified(), Frame(300, risk), run(risk, failed, 100, 0))
    assert answer.low <= answer.accuracy <= answer.high


def test_a_stratum_that_is_used_up_leaves_its_turns_to_the_others_and_everything_labelled_is_the_truth():
    risk, failed = population(size=50)
    assert len(np.unique(run(risk, failed, 40, 0).selected)) == 40
    answer = conclude(Stratified(), Frame(50, risk), run(risk, failed, 50, 0))
    assert (answer.low, answer.accuracy, answer.high) == pytest.approx((1 - failed.mean(),) * 3)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_few_examples_and_few_labels(size):
    answer = conclude(
        Stratified(), Frame(size, np.arange(size) / size), run(np.arange(size) / size, np.ones(size, bool), 1, 0)
    )
    assert 0 <= answer.low <= answer.accuracy <= answer.high <= 1


def test_mistakes():
    with pytest.raises(InputError, match="shares"):
        Stratified(shares=(0.5, 0.4))
    with pytest.raises(InputError, match="labels"):
        Stratified(labels=(0.5, 0.5))
    with pytest.raises(InputError, match="trusting"):
        Stratified(trusting="yes")
    with pytest.raises(InputError, match="risk: technique 'css'"):
        next(Stratified().plan(Frame(10), 3, np.random.default_rng(0)))
