"""Parameters that are drawn instead of plugged in: the posterior they are drawn from, and what becomes of intervals."""

import itertools

import numpy as np
import pytest

from testifai.surrogates.process import marginal_likelihood
from testifai.surrogates.process.kernel import Prior
from testifai.surrogates.process.marginal_likelihood import CompleteGrid, SomeTests, Widening, draws, maximise, posed

LEVELS = [range(4)] * 3
NOISE = 0.25 / 60


def surface(seed: int) -> tuple[Prior, np.ndarray, np.ndarray, np.ndarray]:
    """A prior, all places, a surface drawn from the prior with parameters drawn from theirs, and noisy values."""
    rng = np.random.default_rng(seed)
    prior = Prior([list(axis) for axis in LEVELS])
    places = np.array(list(itertools.product(*LEVELS)), np.intp)
    parameters = rng.normal(prior.mean, prior.sd)
    root = np.linalg.cholesky(prior.kernel(parameters, places, places) - 4 + 1e-10 * np.eye(len(places)))
    truth = root @ rng.normal(size=len(places))
    return prior, places, truth, truth + NOISE**0.5 * rng.normal(size=len(places))


def test_both_kinds_of_problem_have_the_same_posterior():
    prior, places, _, values = surface(0)
    noise = np.full(len(places), NOISE)
    mean, variance = CompleteGrid(prior, values, noise).posterior(prior.mean)
    other = SomeTests(prior, places, values, noise).posterior(prior.mean)
    np.testing.assert_allclose(other[0][: len(places)], mean, atol=1e-9)
    np.testing.assert_allclose(other[1][: len(places)], variance, atol=1e-9)


def test_draws_without_data_are_those_of_the_prior():
    prior, places, _, values = surface(1)
    drawn = np.array(draws(CompleteGrid(prior, values, np.full(len(places), 1e6)), prior.mean, 0))
    z = (drawn - prior.mean) / prior.sd
    assert abs(z.mean()) < 4 / np.sqrt(z.size / 2)
    assert z.std() == pytest.approx(1, abs=0.15)


@pytest.mark.slow
@pytest.mark.simulation
def test_variances_hold_where_parameters_are_drawn_too():
    """Squared errors over variances, on average over tests and surfaces: 1 with the draws, more without them."""
    plain, wide = [], []
    for seed in range(30):
        prior, places, truth, values = surface(seed)
        noise = np.full(len(places), NOISE)
        problem = CompleteGrid(prior, values, noise)
        mode = maximise(prior, problem, prior.mean, 40)
        mean, variance = problem.posterior(mode)
        ratios = (truth - mean) ** 2 / variance
        factor = Widening(problem, mode, seed)(places, np.ones(len(places), bool))
        plain.append(ratios.mean())
        wide.append((ratios / factor).mean())
    assert np.mean(wide) == pytest.approx(1, abs=0.2)
    assert np.mean(plain) > np.mean(wide) + 0.05


def test_one_test_known_far_better_leaves_a_grid_complete():
    prior, places, _, values = surface(2)
    noise = np.full(len(places), NOISE)
    noise[0] /= 1000
    shuffled = np.random.default_rng(0).permutation(len(places))
    problem = posed(prior, places[shuffled], values[shuffled], noise[shuffled], 0)
    assert isinstance(problem, CompleteGrid)
    even = CompleteGrid(prior, values, np.full(len(places), NOISE))
    np.testing.assert_allclose(problem.posterior(prior.mean)[0], even.posterior(prior.mean)[0], atol=0.01)
    noise[:8] = NOISE / 1000
    assert isinstance(posed(prior, places, values, noise, 0), SomeTests)


def test_configurations_without_trials_have_a_factor_of_their_own():
    prior, places, _, values = surface(3)
    some = places[::3]
    problem = SomeTests(prior, some, values[::3], np.full(len(some), NOISE))
    widening = Widening(problem, maximise(prior, problem, prior.mean, 40), 0)
    tried, others = (widening(places, np.full(len(places), flag)) for flag in (True, False))
    assert tried.shape == others.shape == (len(places),)
    assert (tried > 0.5).all()
    assert others.mean() > 1


def test_drawing_is_done_once_and_only_when_asked_for(monkeypatch):
    calls = []
    monkeypatch.setattr(marginal_likelihood, "draws", lambda *given: calls.append(1) or [given[1]])
    prior, places, _, values = surface(4)
    widening = Widening(CompleteGrid(prior, values, np.full(len(places), NOISE)), prior.mean, 0)
    assert not calls
    for _ in range(2):
        np.testing.assert_allclose(widening(places, np.ones(len(places), bool)), 1)
    assert len(calls) == 1
