import itertools

import numpy as np
import pytest

from testifai.runs.outcomes import Trials
from testifai.surrogates.process import Process
from testifai.surrogates.process.input_correlation import hermite
from testifai.surrogates.process.scores import read_scores

SIGMAS = np.array(list(itertools.product(range(4), repeat=3)))
TESTS = len(SIGMAS)


def margins(rng, inputs=600, within=0.6):
    """Values (tests x inputs) whose sign is the outcome, with inputs that are easy or hard in all tests."""
    strength = rng.uniform(0.3, 0.9, 3)
    mean = 2 - 0.35 * (SIGMAS @ strength) ** 1.2
    spread = 1 + 0.1 * SIGMAS[:, 0]
    noise = within**0.5 * rng.normal(size=inputs) + (1 - within) ** 0.5 * rng.normal(size=(TESTS, inputs))
    return mean[:, None] + spread[:, None] * noise


def sampled(values, each, rng):
    inputs = values.shape[1]
    place = np.concatenate([rng.permutation(inputs)[:each] for _ in range(TESTS)])
    test = np.repeat(np.arange(TESTS), each)
    return Trials(test, place, values[test, place] > 0, inputs, values[test, place].astype(np.float32))


def fitted(single, value=None):
    passes = np.bincount(single.test, single.passed, TESTS)
    trials = np.bincount(single.test, minlength=TESTS)
    given = Trials(single.test, single.place, single.passed, single.inputs, value)
    return Process().fit(SIGMAS, passes, trials, single=given)


@pytest.mark.parametrize("seeds", [12, pytest.param(24, marks=pytest.mark.simulation)])
def test_values_lower_the_error_and_intervals_still_cover(seeds):
    plain, scored, covered, regions = [], [], [], []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        values = margins(rng)
        truth = (values > 0).mean(axis=1)
        single = sampled(values, 12, rng)
        plain.append(np.abs(fitted(single).predict(SIGMAS)[0] - truth).mean())
        process = fitted(single, single.value)
        scored.append(np.abs(process.predict(SIGMAS)[0] - truth).mean())
        low, high = process.bounds(SIGMAS)
        covered.append(np.mean((low <= truth) & (truth <= high)))
        _, below, above = process.region(SIGMAS[SIGMAS[:, 1] > 1])
        regions.append(below <= truth[SIGMAS[:, 1] > 1].mean() <= above)
    gain = np.array(plain) - scored
    assert gain.mean() > 2 * gain.std(ddof=1) / len(gain) ** 0.5
    assert np.mean(covered) > 0.93 - 3 * np.std(covered, ddof=1) / len(covered) ** 0.5
    assert np.mean(regions) > 0.95 - 3 * (0.05 * 0.95 / len(regions)) ** 0.5


def test_what_values_explain_is_not_correlated_with_the_rest():
    """For normal values the explained share of the variance is that of the first two terms of the expansion."""
    rng = np.random.default_rng(0)
    from scipy.special import ndtr

    mean = np.linspace(-1.5, 1.5, TESTS)
    values = mean[:, None] + rng.normal(size=(TESTS, 200))
    test = np.repeat(np.arange(TESTS), 200)
    single = Trials(test, np.tile(np.arange(200), TESTS), (values > 0).ravel(), 200, values.ravel().astype(np.float32))
    rates = ndtr(mean)
    eta = np.arcsin(np.sqrt(rates))
    nearness = np.exp(-np.abs(np.subtract.outer(mean, mean)))
    scores = read_scores(single, eta, nearness, hermite(rates))
    outcomes = (single.passed - rates[test]) / np.sin(2 * eta[test])
    explained, rest = scores.deviations, outcomes - scores.deviations
    assert abs(np.corrcoef(explained, rest)[0, 1]) < 4 / len(test) ** 0.5
    assert explained.var() * 4 == pytest.approx((hermite(rates)[:2] ** 2).sum(axis=0).mean(), abs=0.05)
    np.testing.assert_allclose(scores.reference, eta, atol=0.12)


def test_the_scale_and_the_sign_of_values_do_not_matter():
    rng = np.random.default_rng(1)
    single = sampled(margins(rng), 20, rng)
    expected = fitted(single, single.value).predict(SIGMAS)[0]
    for other in (single.value * 1000, 7 - single.value):
        np.testing.assert_allclose(fitted(single, other).predict(SIGMAS)[0], expected, atol=2e-3)


def test_values_that_say_nothing_are_left_out():
    rng = np.random.default_rng(2)
    single = sampled(margins(rng), 20, rng)
    expected = fitted(single).predict(SIGMAS)
    nothing = np.full(len(single.test), np.nan, np.float32)
    most = np.where(rng.random(len(nothing)) < 0.5, nothing, single.value)
    for useless in (nothing, most, np.zeros_like(nothing), rng.normal(size=len(nothing)).astype(np.float32)):
        np.testing.assert_array_equal(fitted(single, useless).predict(SIGMAS), expected)


def test_values_may_be_missing_here_and_there_or_be_far_out():
    rng = np.random.default_rng(3)
    values = margins(rng)
    single = sampled(values, 20, rng)
    truth = (values > 0).mean(axis=1)
    some = single.value.copy()
    some[rng.random(len(some)) < 0.1] = np.nan
    some[::97] = np.inf
    some[1::97] *= 1e9
    error = np.abs(fitted(single, some).predict(SIGMAS)[0] - truth).mean()
    assert error < 1.1 * np.abs(fitted(single).predict(SIGMAS)[0] - truth).mean()


def test_update_takes_values_as_the_fit_did():
    rng = np.random.default_rng(4)
    values = margins(rng)
    less, more = sampled(values, 10, rng), sampled(values, 60, rng)
    process = fitted(less, less.value)
    before = process.predict(SIGMAS)[1].mean()
    passes, trials = np.bincount(more.test, more.passed, TESTS), np.full(TESTS, 60)
    assert process.update(SIGMAS, passes, trials, single=more).predict(SIGMAS)[1].mean() < before
    without = Trials(more.test, more.place, more.passed, more.inputs)
    assert process.update(SIGMAS, passes, trials, single=without).predict(SIGMAS)[1].mean() < before
