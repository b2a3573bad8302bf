"""r chosen from the first labels: the estimate stays unbiased and as good as chance's, with more failures found."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.operational import deepest
from testifai.operational.base import Frame, Sample, conclude, draw
from testifai.operational.deepest import Combined, Confidence, DistanceSurprise, LikelihoodSurprise


def links(risk, threshold):
    """The whole matrix of the reference implementation: from any example into j."""
    return np.where(risk > threshold, risk, 0.0)[None, :] * np.ones((len(risk), 1))


def chance(matrix, before, chosen, share=0.8):
    """Equation 5 as it stands, from the matrix of weights."""
    size = len(matrix)
    if not before:
        return 1 / size
    rest = [j for j in range(size) if j not in before]
    into = {j: sum(matrix[i, j] for i in before) for j in rest}
    total = sum(into.values())
    if total == 0:
        return 1 / len(rest)
    return share * into[chosen] / total + (1 - share) / len(rest)


def exact(risk, threshold, tests, share):
    """Every ordered sample with its probability."""
    matrix = links(risk, threshold)
    for order in itertools.permutations(range(len(risk)), tests):
        steps = [chance(matrix, order[:k], order[k], share) for k in range(tests)]
        yield order, np.array(steps)


RISK = np.array([0.9, 0.1, 0.4, 0.2, 0.35])
FAILED = np.array([True, False, True, True, False])


SHARES = [0.0, 0.5, 0.8]


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("tests", [1, 2, 3, 5])
def test_published_estimate_is_exactly_unbiased(tests, share):
    technique, frame, mean, total = Confidence(share=share), Frame(5, RISK), 0.0, 0.0
    for order, steps in exact(RISK, 0.3, tests, share):
        chosen = np.array(order)
        facts = {"chance": steps, "level": np.ones(tests, int), "suspects": np.full(tests, 5)}
        facts["share"] = np.full(tests, share)
        mean += steps.prod() * technique.estimate(frame, Sample(chosen, FAILED[chosen], facts))[0]
        total += steps.prod()
    assert total == pytest.approx(1)
    assert mean == pytest.approx(1 - FAILED.mean())


@pytest.mark.parametrize("share", SHARES)
def test_draws_have_the_probabilities_of_equation_5(share):
    repetitions = 8_000
    rng = np.random.default_rng(0)
    weights = Confidence().weights(RISK)
    seen: dict[tuple[int, ...], int] = {}
    for _ in range(repetitions):
        order = tuple(deepest._Draws(weights, rng).take(4, share).tolist())
        seen[order] = seen.get(order, 0) + 1
    for order, steps in exact(RISK, 0.3, 4, share):
        probability = steps.prod()
        deviation = np.sqrt(probability * (1 - probability) / repetitions)
        assert abs(seen.get(order, 0) / repetitions - probability) < 4.5 * deviation


@given(st.integers(2, 12), st.integers(0, 10**6), st.floats(0, 0.9), st.floats(0, 0.99))
@settings(deadline=None)
def test_recorded_chances_are_those_of_the_matrix(size, seed, threshold, share):
    rng = np.random.default_rng(seed)
    risk = rng.random(size) * rng.choice([1e-6, 1.0, 1e5], size)
    sample = draw(Confidence(threshold=threshold, share=share), Frame(size, risk), size, rng, lambda i: i > 3)
    order = sample.selected.tolist()
    matrix = links(risk, threshold)
    expected = [chance(matrix, order[:k], order[k], share) for k in range(size)]
    np.testing.assert_allclose(sample.facts["chance"], expected, rtol=1e-9)
    suspect = risk > threshold
    left = [sum(suspect[j] for j in range(size) if j not in order[:k]) for k in range(size)]
    assert sample.facts["suspects"].tolist() == left
    assert (sample.facts["level"] > 0).tolist() == suspect[order].tolist()


def test_the_first_part_of_a_sample_estimates_as_a_shorter_one_would():
    risk = np.random.default_rng(0).random(100)
    long = draw(Confidence(), Frame(100, risk), 80, np.random.default_rng(1), lambda i: risk[i] > 0.8).first(20)
    np.testing.assert_allclose(long.facts["chance"], deepest._chances(Confidence().weights(risk), 0.8, long.selected))
    answer = conclude(Confidence(), Frame(100, risk), long)
    assert len(answer.selected) == 20
    assert answer.low <= answer.high


def population(size=3000, seed=0):
    """Few risky examples that fail often, many that rarely do."""
    rng = np.random.default_rng(seed)
    risk = rng.beta(0.25, 3, size)
    return risk, rng.random(size) < risk**1.5


@pytest.mark.parametrize(("tests", "share"), [(20, 0.8), (60, 0.8), (200, 0.8), (60, 0.3), (60, 0.95)])
def test_coverage_without_being_idle(tests, share):
    risk, failed = population()
    frame, technique, truth, repetitions = Frame(len(risk), risk), Confidence(share=share), 1 - failed.mean(), 150
    answers = []
    for seed in range(repetitions):
        sample = draw(technique, frame, tests, np.random.default_rng(seed), failed.__getitem__)
        answers.append(technique.estimate(frame, sample))
    accuracy, low, high = np.array(answers).T
    covered = ((low <= truth) & (truth <= high)).mean()
    assert covered >= 0.93 - 3 * np.sqrt(0.93 * 0.07 / repetitions)
    assert (high - low).mean() < 4 * 2 * 1.96 * np.sqrt(((accuracy - truth) ** 2).mean())
    assert abs(accuracy.mean() - truth) < 3.5 * accuracy.std() / np.sqrt(repetitions)


@pytest.mark.parametrize("size", [1, 2, 50])
@pytest.mark.parametrize("wrong", [0, 1])
def test_everything_labelled_leaves_little_or_no_doubt(size, wrong):
    risk = np.linspace(0, 1, size)
    answer = conclude(
        Confidence(),
        Frame(size, risk),
        draw(Confidence(), Frame(size, risk), size, np.random.default_rng(0), lambda i: np.full(len(i), wrong == 1)),
    )
    assert answer.failures == wrong * size
    assert answer.low <= 1 - wrong <= answer.high


@pytest.mark.parametrize("risk", [np.zeros(200), np.full(200, 0.2), np.full(200, 0.9), np.full(200, -3.0)])
@pytest.mark.parametrize("technique", [Confidence, Combined, DistanceSurprise, LikelihoodSurprise])
def test_equal_risks_sample_uniformly(technique, risk):
    failed = np.arange(200) < 20
    answer = conclude(
        technique(),
        Frame(200, risk),
        draw(technique(), Frame(200, risk), 60, np.random.default_rng(0), failed.__getitem__),
    )
    assert answer.low <= answer.accuracy <= answer.high
    chances = deepest._chances(technique().weights(risk), 0.8, answer.selected)
    np.testing.assert_allclose(chances, 1 / (200 - np.arange(60)))


def test_negative_surprises_are_counted_from_the_lowest():
    risk = np.array([-50.0, -45, -20, -10])
    assert LikelihoodSurprise(threshold=-30).weights(risk).tolist() == [0, 0, 30, 40]
    assert LikelihoodSurprise(threshold=70).weights(risk + 100).tolist() == [0, 0, 80, 90]


def test_thresholds_are_the_published_rules():
    risk = np.array([0.0, 1.0, 2.0, 9.0])
    assert (Confidence().rule(risk), Combined().rule(risk)) == (0.3, 0.3)
    assert DistanceSurprise().rule(risk) == pytest.approx(3 + 2 * np.sqrt(12.5))
    assert LikelihoodSurprise().rule(risk) == pytest.approx(3 + 12.5)


def test_a_larger_share_finds_more_failures_and_none_is_random_sampling():
    risk, failed = population()
    found = []
    for share in (0.0, 0.4, 0.95):
        sample = draw(Confidence(share=share), Frame(3000, risk), 200, np.random.default_rng(0), failed.__getitem__)
        found.append(sample.failed.sum())
        if share == 0:
            np.testing.assert_allclose(sample.facts["chance"], 1 / (3000 - np.arange(200)))
    assert found[0] < found[1] < found[2]


@pytest.mark.parametrize("share", [-0.1, 1, float("nan")])
def test_a_share_that_leaves_no_chance_to_some_is_refused(share):
    with pytest.raises(InputError, match="share: must be a number, at least 0 and below 1, got"):
        Confidence(share=share)


def test_mistakes():
    with pytest.raises(InputError, match="threshold: must be a number, got nan"):
        Confidence(threshold=float("nan"))
    with pytest.raises(InputError, match="risk: technique 'dsa'"):
        next(DistanceSurprise().plan(Frame(10), 3, np.random.default_rng(0)))


def population_shares(size=4000, seed=0, sharp=1.5):
    """Few risky examples that fail often, many that rarely do; the sharper, the more the risk tells."""
    rng = np.random.default_rng(seed)
    risk = rng.beta(0.4, 3, size)
    return risk, rng.random(size) < risk**sharp


def test_with_a_share_chosen_by_labels_the_estimate_is_exactly_unbiased(monkeypatch):
    """Every ordered sample of a small population_shares with its probability, r chosen after two labels."""
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
    risk, failed = population_shares(300)
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
    risk, failed = population_shares(sharp=sharp)
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
    risk, _ = population_shares()
    drawn = np.argsort(-risk)[:400:10]
    weights = Confidence().weights(risk)
    telling = deepest.chosen(risk, weights, drawn, risk[drawn] > 0.4, 200)
    idle = deepest.chosen(risk, weights, drawn, np.arange(len(drawn)) % 3 == 0, 200)
    assert telling > idle


def test_with_few_labels_or_no_suspects_it_is_what_it_was():
    risk, failed = population_shares(500)
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
