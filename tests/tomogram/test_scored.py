"""Tomograms of means of scores: what they say, held against the truth."""

from dataclasses import replace

import numpy as np
import pytest
from replay import Grid, replay
from scipy.special import betaincinv, ndtr

import testifai as ta
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Outcomes, ScoredOutcomes
from testifai.space import Space
from testifai.surrogates import Forest
from testifai.tomogram import EstimatorSettings, Tomogram
from testifai.tomogram.region_estimator import raw_mean
from testifai.tomogram.regions import standard_queries
from testifai.tomogram.trust import assess

LEVELS, INPUTS = 5, 300
PLACES = np.indices((LEVELS,) * 3).reshape(3, -1).T


def two_points(mean, luck):
    return (luck < mean).astype(float)


def skewed(mean, luck):
    return betaincinv(9 * mean, 9 * (1 - mean), luck)


def constant(mean, luck):
    return np.broadcast_to(mean, luck.shape)


def mixed(mean, luck):
    return np.where(luck < 0.5 * (1 - mean) ** 2, 0.0, np.where(luck > 1 - mean**2, 1.0, skewed(mean, luck)))


KINDS = {one.__name__: one for one in (two_points, skewed, constant, mixed)}


def grid(kind, seed, inputs=INPUTS):
    random = np.random.default_rng(seed)
    mean = 0.96 * np.exp(-0.06 * (PLACES @ random.uniform(0.2, 0.7, 3)) ** 1.5)[:, None]
    luck = ndtr(0.75 * random.normal(size=inputs) + 0.66 * random.normal(size=(len(mean), inputs)))
    scores = np.clip(KINDS[kind](mean, luck), 0, 1).astype(np.float32).reshape((LEVELS,) * 3 + (inputs,))
    return Grid(("a", "b", "c"), inputs, np.packbits(scores >= 0.5, axis=-1), score="f1", scores=scores)


def held(low, truth, high):
    return (low <= truth + 1e-6) & (truth <= high + 1e-6)


def coverage(kind, seeds, budget):
    tests, regions = [], []
    for seed in seeds:
        made = grid(kind, seed)
        view = replay(made, "adaptive", budget=budget, seed=seed, score="f1").scored("f1")
        tests.append(held(view.low, made.means, view.high).mean())
        for query in standard_queries(view.space).values():
            answer = view.query(query)
            truth = made.means.reshape(-1)[view.query_engine.select(query)].mean()
            regions.append(bool(held(answer.low, truth, answer.high)))
    return float(np.mean(tests)), float(np.mean(regions))


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_of_a_small_run_cover(kind):
    tests, regions = coverage(kind, range(2), budget=10 * LEVELS**3)
    assert tests > 0.88
    assert regions > 0.75


@pytest.mark.simulation
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trials", [10, 40])
def test_intervals_cover_over_many_seeds(kind, trials):
    tests, regions = coverage(kind, range(20), budget=trials * LEVELS**3)
    assert tests > 0.93
    assert regions > 0.90  # 240 answers, a dozen to a seed that err together: two standard errors are .05


def test_scores_that_are_all_or_nothing_say_what_passes_say():
    made = grid("two_points", 1)
    run = replay(made, "adaptive", budget=20 * LEVELS**3, seed=1, scores=True)
    view = run.scored("f1")
    assert np.abs(view.estimate - run.estimate).mean() < 0.01
    assert (view.high - view.low).mean() == pytest.approx((run.high - run.low).mean(), rel=0.15)
    one, other = view.query("a >= 2"), run.query("a >= 2")
    assert one.robustness == pytest.approx(other.robustness, abs=0.01)
    assert one.model_free == pytest.approx(other.model_free, abs=1e-6)


def test_own_trials_of_scores_are_their_means_with_inputs_kept_together():
    made = grid("skewed", 2)
    outcomes = Outcomes(INPUTS)
    for test in range(20):
        places = np.arange(60)
        values = made.values(test, places)
        outcomes.record(test, places, values > 0.5, {"value": values})
    found = raw_mean(ScoredOutcomes.of(outcomes), range(20))
    seen = made.scores.reshape(-1, INPUTS)[:20, :60]
    assert found.estimate == pytest.approx(seen.mean(), abs=1e-6)
    # All tests were tried on the same inputs: the mean of each input's scores is what was drawn.
    spread = seen.mean(axis=0).std(ddof=1) / np.sqrt(60) * np.sqrt(1 - 60 / INPUTS)
    assert found.high - found.low == pytest.approx(2 * 1.96 * spread, rel=0.25)


def test_a_part_of_the_inputs_has_means_of_its_own():
    made = grid("mixed", 3)
    labels = np.arange(INPUTS) % 2
    run = replay(made, "adaptive", budget=30 * LEVELS**3, seed=3, score="f1")
    view = replace(run, labels=labels).scored("f1")
    answer = view.query("a >= 1", "label == 1")
    chosen = view.query_engine.select("a >= 1")
    truth = made.scores.reshape(-1, INPUTS)[chosen][:, labels == 1].mean()
    assert held(answer.low - 0.01, truth, answer.high + 0.01)
    assert set(view.by_class()) == {"0", "1"}


@pytest.mark.parametrize("surrogate", ["forest", "pairwise", "bayes_net", "independence", "none"])
def test_other_surrogates_take_sums_of_scores(surrogate):
    made = grid("skewed", 4)
    view = replay(made, "ordered", surrogate, budget=8_000, seed=4).scored("f1")
    tried = view.estimator.rests_on_own_trials.reshape(view.space.shape)
    assert np.abs(view.estimate - made.means)[tried].max() < 0.15
    assert held(view.low, made.means, view.high)[tried].mean() > 0.9
    if surrogate != "none":
        assert np.abs(view.estimate - made.means).mean() < 0.1


def test_a_surrogate_given_as_an_object_is_fitted_for_each_apart():
    made = grid("skewed", 4)
    run = replay(made, "ordered", Forest(), budget=8_000, seed=4)
    before = run.estimate.copy()
    assert not np.allclose(run.scored("f1").estimate, before)
    assert np.array_equal(replace(run).estimate, before)
    assert run.scored("f1").settings.surrogate is not run.settings.surrogate


def test_trust_is_assessed_in_units_of_the_scores_own_noise():
    view = replay(grid("skewed", 5), "adaptive", budget=20 * LEVELS**3, seed=5, score="f1").scored("f1")
    trust = assess(view)
    assert trust.left_out.noise < 0.04
    assert trust.held_back.coverage > 0.85
    assert 0.5 < trust.held_back.spread < 1.6


@pytest.mark.slow
def test_a_space_too_large_to_list_has_means_of_scores():
    fade = Perturbation("fade", lambda batch, parameter, rng: batch, tuple(range(8)))
    space = Space({f"axis_{number}": fade for number in range(9)})
    random, outcomes = np.random.default_rng(6), Outcomes(200)
    ids = np.unique(np.r_[0, random.integers(0, space.size, 2_500)])
    for test, severities in zip(ids.tolist(), space.matrix(ids), strict=True):
        places = np.sort(random.permutation(200)[: 6 if test else 100])
        mean = 0.95 - 0.01 * severities.sum()
        values = random.beta(9 * mean, 9 * (1 - mean), len(places)).astype(np.float32)
        outcomes.record(test, places, values > 0.5, {"value": values})
    run = Tomogram(
        space,
        outcomes,
        np.arange(200),
        settings=EstimatorSettings(surrogate="process"),
        provenance={"identity": {"scores": ["f1"]}},
    )
    answer = run.query("axis_0 >= 4", score="f1")
    truth = 0.95 - 0.01 * (5.5 + 8 * 3.5)
    assert answer.low - 0.01 < truth < answer.high + 0.01
    assert answer.high - answer.low < 0.06


def test_profiles_weigh_means_of_scores():
    view = replay(grid("constant", 7), "full", surrogate="none").scored("f1")
    expected = view.expected({"a": {0: 0.5, 2: 0.5}})
    assert expected.robustness == pytest.approx((view.estimate[0, 0, 0] + view.estimate[2, 0, 0]) / 2)
    with pytest.raises(ta.InputError, match="no 'iou'; accepted: f1"):
        view.scored("iou")
