from __future__ import annotations

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.operational.base import Frame, conclude, draw
from testifai.operational.random_sampling import Stratified


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
    frame, technique, repetitions = Frame(2000, risk), Stratified(), 1500
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
    ends = np.array([technique.estimate(frame, run(risk, failed, 100, seed))[1:] for seed in range(400)])
    covered = ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean()
    assert covered >= 0.93 - 3 * np.sqrt(0.93 * 0.07 / 400)


@pytest.mark.parametrize("tests", [50, 200])
def test_coverage_where_the_safest_fail_most(tests):
    """A risk that misleads: nobody may conclude from it that a stratum without failures has none."""
    rng = np.random.default_rng(1)
    risk = rng.random(4000)
    failed = rng.random(4000) < 0.06 * (1 - risk)
    frame, technique, truth = Frame(4000, risk), Stratified(), 1 - failed.mean()
    ends = np.array([technique.estimate(frame, run(risk, failed, tests, seed))[1:] for seed in range(300)])
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
