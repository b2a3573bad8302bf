"""Scores of a suite against their definitions, and their intervals by simulation."""

import json

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.runs.outcomes import Outcomes
from testifai.space import Space
from testifai.tomogram import EstimatorSettings, Tomogram
from testifai.tomogram.benchmark import ALEXNET, whole_suite

SUITE = Space.suite("imagenet_c")


def rates(space, seed=0):
    """A rate for every test: falling with severity, differently for every axis."""
    steep = np.random.default_rng(seed).uniform(0.02, 0.15, len(space.axes))
    rows = space.matrix(range(space.size))[:, : len(space.axes)]
    return 0.9 - rows @ steep


def run(space, truth, inputs=200, tried=None, seed=0, surrogate=None):
    """A run that tried so many of the inputs on every test."""
    generator = np.random.default_rng(seed)
    outcomes = Outcomes(inputs)
    hard = generator.random(inputs)
    for test, rate in enumerate(truth):
        passed = hard < np.quantile(hard, rate)
        places = np.arange(inputs) if tried is None else np.sort(generator.permutation(inputs)[:tried])
        outcomes.record(test, places, passed[places])
    return Tomogram(space, outcomes, np.arange(inputs), settings=EstimatorSettings(surrogate=surrogate))


def by_hand(tomogram):
    """The scores by their formulas, from a full run."""
    space, estimate = tomogram.space, tomogram.estimate.reshape(-1)
    error = {
        axis.name: np.array([1 - estimate[space.id([s if a is axis else 0 for a in space.axes])] for s in range(1, 6)])
        for axis in space.axes
    }
    clean = 1 - estimate[0]
    base, zero = ALEXNET.errors, ALEXNET.clean
    return {
        "accuracy": 1 - np.mean([one.mean() for one in error.values()]),
        "mce": np.mean([one.sum() / (5 * base[name]) for name, one in error.items()]),
        "relative_mce": np.mean([(one - clean).sum() / (5 * (base[name] - zero)) for name, one in error.items()]),
        "worst": max(error, key=lambda name: error[name].mean()),
    }


def test_scores_of_a_full_run_are_those_of_the_papers_and_exact():
    tomogram = run(SUITE, rates(SUITE))
    found, expected = tomogram.benchmark(), by_hand(tomogram)
    for name in ("accuracy", "mce", "relative_mce"):
        score = getattr(found, name)
        assert score.value == pytest.approx(expected[name])
        assert score.low == pytest.approx(score.value)
        assert score.high == pytest.approx(score.value)
    assert found.worst[0] == expected["worst"]
    assert found.worst[1].value == pytest.approx(min(one.value for one in found.perturbations.values()))
    assert list(found.severities) == [1, 2, 3, 4, 5]
    assert np.mean([one.value for one in found.severities.values()]) == pytest.approx(found.accuracy.value)
    assert found.missing == ()
    assert found.extra is None
    assert "AlexNet" in found.baseline
    json.dumps(found.as_dict(), allow_nan=False)


def test_alexnet_itself_has_an_mce_of_one():
    truth = np.array([1 - ALEXNET.clean, *(1 - np.repeat([ALEXNET.errors[name] for name in SUITE.names], 5))])
    found = run(SUITE, truth, inputs=2000).benchmark()
    assert found.mce.value == pytest.approx(1, abs=0.002)
    assert found.relative_mce.value == pytest.approx(1, abs=0.02)


@pytest.mark.slow
def test_intervals_of_a_part_cover_the_scores_of_the_whole():
    hits, narrow = [], []
    for seed in range(16):
        truth = rates(SUITE, seed)
        expected = by_hand(run(SUITE, truth, seed=seed))
        found = run(SUITE, truth, tried=25, seed=seed, surrogate="process").benchmark()
        for name in ("accuracy", "mce", "relative_mce"):
            score = getattr(found, name)
            hits.append(score.low <= expected[name] <= score.high)
        narrow.append(found.accuracy.high - found.accuracy.low)
    assert np.mean(hits) >= 0.85  # of 16 independent runs at 95 %, fewer than that happen once in 60 times
    assert np.mean(narrow) < 0.08


def test_a_baseline_may_be_another_run_or_a_table():
    tomogram = run(SUITE, rates(SUITE))
    same = tomogram.benchmark(baseline=tomogram)
    assert same.mce.value == pytest.approx(1)
    assert same.relative_mce.value == pytest.approx(1)
    half = tomogram.benchmark(baseline=dict.fromkeys(SUITE.names, 0.5))
    assert half.mce.value == pytest.approx((1 - half.accuracy.value) * 2)
    assert half.relative_mce is None


def test_extra_perturbations_are_told_apart():
    space = Space.suite("cifar_c", extra=True)
    found = run(space, rates(space)).benchmark()
    assert len(found.perturbations) == 15
    assert found.extra is not None
    assert found.mce is None
    assert "published apart" in " ".join(found.headline())


def test_a_part_of_a_suite_says_that_it_is_not_comparable():
    space = Space({"fog": "imagenet_c.fog", "snow": ("imagenet_c.snow", [1, 3])})
    found = run(space, rates(space)).benchmark()
    assert list(found.perturbations) == ["snow", "fog"]
    assert len(found.missing) == 14
    assert "fog" not in found.missing
    assert "not comparable" in found.notes()[-1]
    assert whole_suite(space) is None
    assert whole_suite(SUITE) == "imagenet_c"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"suite": "cifar_c"}, "'cifar_c' is no suite of this run; known: imagenet_c"),
        ({"baseline": {"fog": 0.5}}, "baseline: has no error for gaussian_noise"),
        ({"baseline": dict.fromkeys(SUITE.names, 50)}, "accepted: an error from 0 to 1"),
        ({"baseline": dict.fromkeys(SUITE.names, 0.0)}, "by which nothing can be divided"),
        ({"baseline": {**dict.fromkeys(SUITE.names, 0.3), "clean": 0.3}}, "it does not grow"),
        ({"baseline": "alexnet"}, "accepted: a run, or a table of errors"),
    ],
)
def test_what_cannot_be_scored_is_one_line(options, said):
    with pytest.raises(InputError, match=said):
        run(SUITE, rates(SUITE)).benchmark(**options)


def test_axes_of_two_suites_ask_which():
    space = Space({"fog": "imagenet_c.fog", "zoom": "mnist_c.zoom"})
    with pytest.raises(InputError, match=r"of 2 suites \(imagenet_c, mnist_c\); name one"):
        run(space, np.full(space.size, 0.5)).benchmark()
