"""The part that the order of application has in the process, against closed forms and simulated surfaces."""

from __future__ import annotations

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.perturb import Perturbation
from testifai.space import Space
from testifai.surrogates.adapter import Forest
from testifai.surrogates.process import Process
from testifai.surrogates.process.grid import GridIndex
from testifai.surrogates.process.kernel import Prior, Sequences
from testifai.surrogates.process.low_rank import Effects
from testifai.surrogates.process.marginal_likelihood import CompleteGrid, SomeTests, posed

LEVELS = [[0, 1, 2, 3], [0, 2, 3], [0, 1, 4]]
KEEP = Perturbation("keep", lambda batch, parameter, rng: batch, (0, 1, 2, 3))
SPACE = Space(dict.fromkeys("abc", KEEP), order_sensitive=True)  # 226 tests
ROWS = SPACE.matrix(np.arange(SPACE.size))


@pytest.fixture
def prior():
    return Prior(LEVELS, ordered=True)


@pytest.fixture
def places(prior):
    return np.unique(prior.drawn(80, np.random.default_rng(0)), axis=0)


@pytest.fixture
def parameters(prior):
    return prior.mean + 0.5 * prior.sd * np.random.default_rng(1).normal(size=len(prior.mean))


def test_the_covariance_is_one(prior, places, parameters):
    kernel = prior.kernel(parameters, places, places)
    assert np.allclose(np.diag(kernel), prior.variance(parameters, places))
    assert np.linalg.eigvalsh(kernel).min() > -1e-10
    plain = Prior(LEVELS).kernel(parameters[: prior.order.start], places[:, :3], places[:, :3])
    assert np.allclose(kernel - plain, prior.sequences.kernel(parameters[prior.order], places, places))


def test_an_order_turned_round_turns_the_sign():
    sequences = Sequences([[0, 1, 2], [0, 1, 2]], active=[0, 1])
    one, other, single = np.array([[2, 1, 1, 2], [2, 1, 2, 1], [2, 0, 1, 0]])[:, None]
    parameters = np.array([0.3, -0.2, 0.1, 0.0])
    same = sequences.kernel(parameters, one, one)
    assert same > 0
    assert np.allclose(sequences.kernel(parameters, one, other), -same)
    assert sequences.kernel(parameters, one, single) == 0


def test_the_gradient_is_that_of_the_evidence(prior, places, parameters):
    problem = SomeTests(prior, places, np.random.default_rng(2).normal(size=len(places)), np.full(len(places), 0.1))
    value, slope = problem.slope(parameters)
    assert value == pytest.approx(problem.value(parameters))
    steps = 1e-5 * np.eye(len(parameters))
    numeric = [(problem.value(parameters + step) - problem.value(parameters - step)) / 2e-5 for step in steps]
    assert np.allclose(slope, numeric, atol=1e-5)


def test_the_effects_of_many_tests_have_the_precedences(prior, places, parameters):
    parameters = parameters.copy()
    parameters[prior.order.stop - 2 :] = -40  # what changes with other severities is left to each test
    effects = Effects(prior, parameters)(places)
    assert np.allclose(effects @ effects.T, prior.kernel(parameters, places, places))


def test_a_number_for_every_sequence(prior, places):
    numbers = GridIndex(places, prior.sizes, ordered=True)
    assert numbers(places).tolist() == list(range(len(places)))
    keys = numbers.keys(places)
    assert len(set(keys.tolist())) == len(places)
    assert (keys < numbers.size).all()
    assert (numbers.places(keys) == places).all()


def test_no_shortcut_of_the_grid_is_taken():
    prior = Prior([[0, 1], [0, 1]], ordered=True)
    four = np.array([[0, 0, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 2]])
    assert isinstance(posed(prior, four, np.zeros(4), np.ones(4), 0), SomeTests)
    assert isinstance(posed(Prior([[0, 1], [0, 1]]), four[:, :2], np.zeros(4), np.ones(4), 0), CompleteGrid)


def test_places_must_number_the_axes_that_are_on():
    process = Process([[0, 1, 2, 3]] * 3).fit(ROWS, np.full(len(ROWS), 5), np.full(len(ROWS), 9))
    with pytest.raises(InputError, match="places of some rows do not number"):
        process.predict([[1, 1, 0, 1, 1, 0]])
    with pytest.raises(InputError, match="3 severities to a row; accepted: 6"):
        process.predict([[1, 1, 0]])


def rates(effect, seed):
    """Rates over the space: who is applied first moves each pair by an effect of its own."""
    random = np.random.default_rng(seed)
    strength, first = random.uniform(0.1, 0.6, 3), random.normal(0, effect, (3, 3))
    x = ROWS[:, :3] / 3
    eta = 1.4 - x @ strength
    for a, b in ((0, 1), (0, 2), (1, 2)):
        eta += np.sign(ROWS[:, 3 + b] - ROWS[:, 3 + a]) * first[a, b] * np.sqrt(x[:, a] * x[:, b])
    return np.sin(np.clip(eta, 0.05, 1.52)) ** 2


def fitted(truth, trials, seed):
    passes = np.random.default_rng([seed, 1]).binomial(trials, truth)
    return Process([[0, 1, 2, 3]] * 3, seed).fit(ROWS, passes, np.full(len(ROWS), trials)), passes


@pytest.mark.simulation
def test_tests_are_known_better_than_by_the_forest_and_as_well_as_bounds_say():
    error, of_forest, covered = [], [], []
    for seed in range(4):
        truth = rates(0.15, seed)
        process, passes = fitted(truth, 20, seed)
        low, high = process.bounds(ROWS)
        covered.append(((low <= truth) & (truth <= high)).mean())
        error.append(np.abs(process.predict(ROWS)[0] - truth).mean())
        some = np.count_nonzero(ROWS[:, :3], axis=1) <= 2  # as many trials on the tests of low order
        many = 20 * len(ROWS) // some.sum()
        passes = np.random.default_rng([seed, 2]).binomial(many, truth[some])
        forest = Forest(seed=seed).fit(ROWS[some], passes, np.full(some.sum(), many))
        of_forest.append(np.abs(forest.predict(ROWS)[0] - truth).mean())
    assert np.mean(error) < 0.5 * np.mean(of_forest)
    assert np.mean(covered) >= 0.93 - 0.02  # of 226 dependent tests, four times


@pytest.mark.simulation
def test_nothing_is_lost_where_the_order_makes_no_difference():
    error, of_plain = [], []
    levels = [[0, 1, 2, 3]] * 3
    for seed in range(3):
        truth = rates(0.0, seed)
        process, _ = fitted(truth, 20, seed)
        error.append(np.abs(process.predict(ROWS)[0] - truth).mean())
        grid, first = np.unique(ROWS[:, :3], axis=0, return_index=True)
        passes = np.random.default_rng([seed, 3]).binomial(20, truth[first])
        plain = Process(levels, seed).fit(grid, passes, np.full(len(grid), 20))
        of_plain.append(np.abs(plain.predict(grid)[0] - truth[first]).mean())
    assert np.mean(error) < 1.1 * np.mean(of_plain)


def test_what_is_learned_says_whether_the_order_matters():
    small, large = (np.exp(fitted(rates(effect, 0), 50, 0)[0].parameters_) for effect in (0.0, 0.3))
    prior = Prior([[0, 1, 2, 3]] * 3, ordered=True)
    scales = slice(prior.order.start, prior.order.start + 3)
    assert small[scales].max() ** 2 < 3e-4 < large[scales].max() ** 2
