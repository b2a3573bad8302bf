"""r chosen from the first labels: the estimate stays unbiased and as good as chance's, with more failures found."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.operational import deepest
from testifai.operational.base import Frame, Sample, draw
from testifai.operational.deepest import Confidence


def population(size=4000, seed=0, sharp=1.5):
    """Few risky examples that fail often, many that rarely do; the sharper, the more the risk tells."""
    rng = np.random.default_rng(seed)
    risk = rng.beta(0.4, 3, size)
    return risk, rng.random(size) < risk**sharp


def test_with_a_share_chosen_by_labels_the_estimate_is_exactly_unbiased(monkeypatch):
    """Every ordered sample of a small population with its probability, r chosen after two labels."""
    monkeypatch.setattr(deepest, "chosen", lambda risk, weights, drawn, failed, tests: 0.9 if failed.any() else 0.1)
    risk, failed = np.array([0.9, 0.1, 0.4, 0.2, 0.35]), np.array([True, False, False, True, False])
    weights = Confidence().weights(risk)
    technique, mean, total = Confidence(share="auto"), 0.0, 0.0
    for order in itertools.permutations(range(5), 4):
        drawn = np.array(order)
        later = deepest.chosen(risk, weights, drawn[:2], failed[drawn[:2]], 4)
        made = np.array([0.5, 0.5, later, later])
        steps = []
        for k in range(4):
            rest = [j for j in range(5) if j not in order[:k]]
            pull = weights[order[k]] / weights[rest].sum() if weights[rest].sum() > 0 else 1 / len(rest)
            share = made[k] if k else 0.0
            steps.append(share * pull + (1 - share) / len(rest))
        facts = {"chance": np.array(steps), "level": np.ones(4, int), "suspects": np.full(4, 5), "share": made}
        mean += np.prod(steps) * technique.estimate(Frame(5, risk), Sample(drawn, failed[drawn], facts))[0]
        total += np.prod(steps)
    assert total == pytest.approx(1)
    assert mean == pytest.approx(1 - failed.mean())


def test_recorded_chances_follow_the_share_of_each_draw():
    risk, failed = population(300)
    sample = draw(Confidence(share="auto"), Frame(300, risk), 60, np.random.default_rng(3), failed.__getitem__)
    weights, taken = Confidence().weights(risk), np.zeros(300, bool)
    made = sample.facts["share"]
    assert (made[:12] == deepest.OPENING).all()
    assert len(set(made[12:])) == 1
    for k, example in enumerate(sample.selected.tolist()):
        left = weights[~taken].sum()
        pull = weights[example] / left if left > 0 else 1 / (~taken).sum()
        share = made[k] if k else 0.0
        expected = share * pull + (1 - share) / (~taken).sum()
        assert sample.facts["chance"][k] == pytest.approx(expected)
        taken[example] = True


@pytest.mark.parametrize("sharp", [1.5, 0.3])
def test_over_many_seeds_unbiased_as_good_as_chance_and_covered(sharp):
    risk, failed = population(sharp=sharp)
    technique, frame, truth, tests, repetitions = (
        Confidence(share="auto"),
        Frame(len(risk), risk),
        1 - failed.mean(),
        150,
        400,
    )
    found, answers = [], []
    for seed in range(repetitions):
        sample = draw(technique, frame, tests, np.random.default_rng(seed), failed.__getitem__)
        answers.append(technique.estimate(frame, sample))
        found.append(sample.failed.sum())
    accuracy, low, high = np.array(answers).T
    assert abs(accuracy.mean() - truth) < 3.5 * accuracy.std() / np.sqrt(repetitions)
    assert ((low <= truth) & (truth <= high)).mean() >= 0.93 - 3 * np.sqrt(0.93 * 0.07 / repetitions)
    chance = truth * (1 - truth) / tests * (len(risk) - tests) / (len(risk) - 1)
    assert ((accuracy - truth) ** 2).mean() < 1.6 * chance
    assert np.mean(found) > tests * (1 - truth)


def test_the_share_grows_with_what_the_risk_tells():
    risk, _ = population()
    drawn = np.argsort(-risk)[:400:10]
    weights = Confidence().weights(risk)
    telling = deepest.chosen(risk, weights, drawn, risk[drawn] > 0.4, 200)
    idle = deepest.chosen(risk, weights, drawn, np.arange(len(drawn)) % 3 == 0, 200)
    assert telling > idle


def test_with_few_labels_or_no_suspects_it_is_what_it_was():
    risk, failed = population(500)
    assert deepest.rounds("auto", 30) == (deepest.WEIGHTED, 30)
    samples = [
        draw(Confidence(share=share), Frame(500, risk), 30, np.random.default_rng(0), failed.__getitem__)
        for share in ("auto", 0.8)
    ]
    assert (samples[0].selected == samples[1].selected).all()
    none = draw(Confidence(share="auto"), Frame(500, 0.1 * risk), 60, np.random.default_rng(0), failed.__getitem__)
    np.testing.assert_allclose(none.facts["chance"], 1 / (500 - np.arange(60)))


def test_another_word_is_one_line():
    with pytest.raises(InputError, match="share: 'much' is not accepted; a number from 0 to below 1 is, or 'auto'"):
        Confidence(share="much")
    with pytest.raises(InputError, match="share"):
        Confidence(share=1.0)
