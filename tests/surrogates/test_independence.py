import itertools

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.runs.outcomes import Trials
from testifai.surrogates.independence import Independence
from testifai.surrogates.pairwise import Pairwise

SIGMAS = np.array(list(itertools.product(range(3), repeat=4)))
ORDERS = np.count_nonzero(SIGMAS, axis=1)
LOW = SIGMAS[ORDERS <= 2]
CLEAN = 0.9
ALONE = np.array([[1, 0.9, 0.8], [1, 0.85, 0.6], [1, 0.7, 0.5], [1, 0.95, 0.75]])  # relative to clean, by severity


def grouped_rates(sigmas: np.ndarray, pairs=((0, 2),)) -> np.ndarray:
    """Independent perturbations, but for pairs that spoil each other."""
    rates = CLEAN * np.prod(ALONE[np.arange(sigmas.shape[1]), sigmas], axis=1)
    for i, j in pairs:
        rates = rates * np.exp(-0.1 * sigmas[:, i] * sigmas[:, j])
    return rates


def fitted(pairs=((0, 2),), trials: float = 1e6, sigmas=LOW, **options) -> Independence:
    return Independence(**options).fit(sigmas, grouped_rates(sigmas, pairs) * trials, np.full(len(sigmas), trials))


def test_a_product_over_groups_is_recovered():
    for pairs, groups in [
        ((), [[0], [1], [2], [3]]),
        (((0, 2),), [[0, 2], [1], [3]]),
        (((0, 2), (1, 3)), [[0, 2], [1, 3]]),
        (((0, 2), (2, 3)), [[0, 2, 3], [1]]),
    ]:
        model = fitted(pairs)
        assert model.groups_ == groups
        np.testing.assert_allclose(model.predict(SIGMAS)[0], grouped_rates(SIGMAS, pairs), rtol=1e-5)


def test_the_published_product_multiplies_plain_rates():
    model = fitted(pairs=(), alpha=0, plain=True)
    relative = np.prod(ALONE[np.arange(4), SIGMAS], axis=1)
    expected = np.where(ORDERS == 0, CLEAN, relative * CLEAN**ORDERS)
    np.testing.assert_allclose(model.predict(SIGMAS)[0], expected)


def test_plain_products_inside_groups_use_the_groups_own_rates():
    """Plain products miss by the clean rate everywhere, so every pair is found dependent: one group, as measured."""
    model = fitted(pairs=(), plain=True)
    assert model.groups_ == [[0, 1, 2, 3]]
    np.testing.assert_allclose(model.predict(LOW)[0], grouped_rates(LOW, ()))
    model.groups_ = [[0, 1], [2, 3]]
    found = model.predict([[1, 2, 2, 1]])[0][0]
    assert found == pytest.approx(np.prod(grouped_rates(np.array([[1, 2, 0, 0], [0, 0, 2, 1]]), ())))


def test_no_dependent_pairs_is_the_product_of_first_order_rates():
    model = fitted(alpha=0)
    np.testing.assert_allclose(model.predict(SIGMAS)[0], grouped_rates(SIGMAS, ()))
    assert model.groups_ == [[0], [1], [2], [3]]


def test_one_group_of_all_is_the_pairwise_product():
    pairs = tuple(itertools.combinations(range(4), 2))
    model = fitted(pairs)
    assert model.groups_ == [[0, 1, 2, 3]]
    ours = model.predict(SIGMAS)
    theirs = Pairwise().fit(LOW, grouped_rates(LOW, pairs) * 1e6, np.full(len(LOW), 1e6)).predict(SIGMAS)
    np.testing.assert_allclose(ours, theirs)


def test_a_group_that_was_measured_is_taken_as_measured():
    pairs = ((0, 1), (1, 2))
    extra = np.array([[2, 2, 2, 0]])
    sigmas = np.vstack([LOW, extra])
    rates = grouped_rates(sigmas, pairs)
    rates[-1] = 0.123  # a three-way effect no pair knows of
    model = Independence().fit(sigmas, rates * 1e6, np.full(len(sigmas), 1e6))
    assert model.groups_ == [[0, 1, 2], [3]]
    mean, variance = model.predict([[2, 2, 2, 0], [2, 2, 2, 1], [2, 2, 1, 1]])
    assert mean[0] == pytest.approx(0.123)
    assert mean[1] == pytest.approx(0.123 * ALONE[3, 1])
    assert mean[2] == pytest.approx(grouped_rates(np.array([[2, 2, 1, 1]]), pairs)[0])
    assert variance[0] == pytest.approx(0.123 * 0.877 / 1e6, rel=1e-4)  # measured, so nothing is left out
    assert variance[1] < variance[2]


def test_the_variance_is_that_of_repeated_counts():
    """A variance from n repetitions has a relative standard deviation of sqrt(2/n); four of them are allowed.

    The doubt about interactions left out, here mere noise, comes on top; the groups are given, not found.
    """
    trials, repetitions = 5_000, 500
    sigmas = LOW[(LOW < 2).all(axis=1) & (LOW[:, 3] == 0)][:, :3]
    rates, rng = grouped_rates(sigmas), np.random.default_rng(0)
    found, doubts = [], []
    for _ in range(repetitions):
        model = Independence(alpha=0).fit(sigmas, rng.binomial(trials, rates), np.full(len(rates), trials))
        model.groups_ = [[0, 2], [1]]
        mean, variance = model.predict([[1, 1, 1]])
        doubt = mean**2 * model.measured_.apart(np.array([[1, 1, 1]]), [(0, 1), (1, 2)])
        found.append((mean[0], variance[0] - doubt[0]))
        doubts.append(doubt[0])
    means, variances = np.array(found).T
    assert variances.mean() == pytest.approx(means.var(), rel=4 * np.sqrt(2 / repetitions))
    assert min(doubts) > 0


def test_products_that_mislead_have_wide_intervals():
    """With dependent pairs forced apart, the doubt covers what was left out."""
    pairs = ((0, 2), (1, 3))
    mean, variance = fitted(pairs, alpha=0).predict(SIGMAS)
    assert (np.abs(mean - grouped_rates(SIGMAS, pairs)) <= 1.96 * np.sqrt(variance)).all()


def test_single_outcomes_find_the_groups_that_counts_miss():
    """Shared inputs: errors cancel, so a dependence too weak for counts shows in single outcomes."""
    rng = np.random.default_rng(1)
    inputs = 3_000
    sigmas = LOW[(LOW[:, 3] == 0)][:, :3]
    clean = rng.random((inputs, 1)) < CLEAN
    thresholds = rng.random((inputs, 3))
    thresholds[:, 2] = np.where(rng.random(inputs) < 0.15, thresholds[:, 0], thresholds[:, 2])
    outcomes = clean & (thresholds[:, None, :] < ALONE[np.arange(3), sigmas]).all(axis=2)
    place, test = np.indices(outcomes.shape)
    single = Trials(test.ravel(), place.ravel(), outcomes.ravel(), inputs)
    counts = sigmas, outcomes.sum(axis=0), np.full(len(sigmas), inputs)
    assert Independence().fit(*counts, single=single).groups_ == [[0, 2], [1]]
    assert Independence().fit(*counts).groups_ == [[0], [1], [2]]
    again = [Independence(seed=3).fit(*counts, single=single).predict(SIGMAS[:, 1:]) for _ in range(2)]
    np.testing.assert_array_equal(*again)


def test_small_runs_are_not_tested_but_predicted():
    """A handful of trials per test cannot tell dependence; first orders and their product remain."""
    model = fitted(trials=10)
    assert model.groups_ == [[0], [1], [2], [3]]
    assert not any(pair.tests for pair in model.result_.pairs)
    only_alone = fitted(sigmas=SIGMAS[ORDERS <= 1])
    np.testing.assert_allclose(only_alone.predict(SIGMAS)[0], grouped_rates(SIGMAS, ()))
    one_axis = Independence().fit([[0], [1]], [90, 50], [100, 100])
    np.testing.assert_allclose(one_axis.predict([[0], [1]])[0], [0.9, 0.5])


def test_what_does_not_fit_is_refused_in_one_line():
    for sigmas, words in [
        ([[0, 0, 0, 0], [1, 0, 1, 0], [0, 2, 0, 1], [1, 2, 2, 1]], "'independence' takes no application orders"),
        ([[0, 0, 0], [1, 1, 0]], "no first-order test of axis 1, 2, 3"),
        ([[1, 0], [0, 1]], "needs the clean test"),
    ]:
        with pytest.raises(InputError, match=words) as caught:
            Independence().fit(sigmas, [50] * len(sigmas), [100] * len(sigmas))
        assert "\n" not in str(caught.value)
