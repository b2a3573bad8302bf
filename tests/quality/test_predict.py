"""Predicted quality: surfaces of known form, intervals over many seeds, and everything that may be handed over."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.quality import predict, surface, surface_prior

AXES, LEVELS = 3, 4
GRID = np.array(list(np.ndindex((LEVELS,) * AXES)))
ORDERS = np.count_nonzero(GRID, axis=1)
LOW = ORDERS <= 2
SEVERITIES = [range(LEVELS)] * AXES


def damages(rng: np.random.Generator, grid: np.ndarray = GRID) -> np.ndarray:
    """What each perturbation does alone, in 0..1: some power of its severity."""
    size = grid.shape[1]
    return rng.uniform(0.2, 1, size) * (grid / grid.max()) ** rng.uniform(0.6, 1.8, size)


FORMS = {
    "adds up": lambda h: h.sum(axis=1),
    "leaves a share": lambda h: 1 - np.prod(1 - 0.7 * h, axis=1),
    "has a ceiling": lambda h: 1 - np.exp(-3 * h.sum(axis=1)),
    "multiplies": lambda h: np.expm1(1.2 * h.sum(axis=1)),
    "square of a sum": lambda h: (h[:, 0] + h[:, 1]) ** 2 + h[:, 2] ** 2,
    "pairs interact": lambda h: h.sum(axis=1) - 0.5 * h[:, 0] * h[:, 1] + 0.4 * h[:, 1] * h[:, 2],
}


def fitted(values, errors, measured=LOW, kind="smooth", seed=0):
    return predict.fit(kind, SEVERITIES, GRID[measured], values[measured], errors[measured], seed=seed)


# ---- the surface


@pytest.mark.parametrize("form", FORMS)
def test_third_order_follows_from_the_first_two(form):
    """Forms in which it does, damage growing or quality falling; the published forest stops at its leaves."""
    errors = {"smooth": [], "forest": []}
    for seed, direction in enumerate((1, -1)):
        truth = 0.3 + direction * FORMS[form](damages(np.random.default_rng(seed)))
        for kind, found in errors.items():
            middle, _, _ = fitted(truth, np.zeros(len(GRID)), kind=kind).predict(GRID)
            found.append(np.abs(middle - truth)[~LOW].mean() / np.ptp(truth))
    assert np.mean(errors["smooth"]) < 0.015
    assert np.mean(errors["smooth"]) < 0.3 * np.mean(errors["forest"])


@pytest.mark.parametrize(
    ("own", "shared"), [(0.0, 0.0), (0.02, 0.0), (0.0, 0.03)], ids=["exact", "own errors", "shared error"]
)
def test_intervals_hold_over_seeds(own, shared):
    """95 % intervals, whether errors scatter from test to test or all tests have the same one.

    Tests of one seed err together, so the tolerance is that of the mean over seeds, from their own spread.
    """
    covered = []
    for seed, form in itertools.product(range(3), FORMS):
        rng = np.random.default_rng([seed, 1])
        truth = FORMS[form](damages(rng))
        scale = np.ptp(truth[LOW])
        noise = own * scale * rng.normal(size=len(GRID)) + shared * rng.normal() * truth
        errors = np.hypot(own * scale, shared * truth)
        _, low, high = fitted(truth + noise, errors).predict(GRID)
        covered.append(((low <= truth) & (truth <= high))[~LOW].mean())
    assert np.mean(covered) + 3 * np.std(covered) / np.sqrt(len(covered)) >= 0.95
    assert np.mean(covered) >= 0.9


def test_gradient_is_that_of_the_cost():
    rng = np.random.default_rng(0)
    truth = FORMS["pairs interact"](damages(rng))
    measured = surface.KnownValues(GRID[LOW].astype(float), truth[LOW], np.full(LOW.sum(), 0.05))
    made = surface.Surface([np.arange(LEVELS, dtype=float)] * AXES, measured)
    tests = made._tests(measured)
    for spread in (0.1, 0.5):
        at = made._median + spread * made._sd * rng.normal(size=len(made._median))
        slopes = [
            (made._cost(at + step, tests)[0] - made._cost(at - step, tests)[0]) / 2e-5
            for step in 1e-5 * np.eye(len(at))
        ]
        np.testing.assert_allclose(made._cost(at, tests)[1], slopes, rtol=1e-4, atol=1e-4)


def test_prediction_is_that_of_the_joint_normal_distribution():
    """Conditional mean and variance written down from the kernel of both sets at once."""
    truth = FORMS["leaves a share"](damages(np.random.default_rng(3)))
    measured = surface.KnownValues(GRID[LOW].astype(float), truth[LOW], np.zeros(LOW.sum()))
    made = surface.Surface([np.arange(LEVELS, dtype=float)] * AXES, measured)
    at = made._found.at
    kernel = surface_prior.prior_covariance(
        at, [surface_prior.AxisPrior.of(np.arange(4.0))] * 3, list(GRID.T), list(GRID.T)
    )
    slope = 1 / (1 - made._found.kappa * (truth - truth[LOW].min()) / np.ptp(truth[LOW]))
    seen = kernel[np.ix_(LOW, LOW)] + np.diag(slope[LOW] ** 2 * at.rough)
    z = -np.log(1 - made._found.kappa * (truth - truth[LOW].min()) / np.ptp(truth[LOW])) / made._found.kappa
    expected = kernel[np.ix_(~LOW, LOW)] @ np.linalg.solve(seen, z[LOW])
    middle, low, high = made.predict(GRID[~LOW].astype(float))
    damage = (1 - np.exp(-made._found.kappa * expected)) / made._found.kappa
    np.testing.assert_allclose(middle, truth[LOW].min() + np.ptp(truth[LOW]) * damage, atol=1e-5)
    assert (low < middle).all()
    assert (middle < high).all()


def test_bending_and_back():
    damage = np.linspace(0, 1, 11)
    for t in (-4, -1e-5, 0, 1e-7, 1e-5, 1, 4):
        bent = surface_prior.bend(t, damage)
        np.testing.assert_allclose(surface_prior.unbend(bent.kappa, bent.z), damage, atol=1e-9)
        assert (np.diff(bent.z) > 0).all()


# ---- measured where measured


@pytest.mark.parametrize("kind", predict.KINDS)
def test_measured_tests_keep_their_values_and_errors(kind):
    rng = np.random.default_rng(0)
    values, errors = rng.normal(size=len(GRID)), rng.uniform(0, 0.1, len(GRID))
    for measured in (LOW, np.ones(len(GRID), bool)):
        middle, low, high = fitted(values, errors, measured, kind).predict(GRID)
        np.testing.assert_array_equal(middle[measured], values[measured])
        np.testing.assert_allclose((high - low)[measured], 2 * 1.959964 * errors[measured])
        assert np.isfinite(middle).all()


def test_forest_is_the_published_regressor():
    from sklearn.ensemble import RandomForestRegressor

    values = FORMS["adds up"](damages(np.random.default_rng(0)))
    forest = RandomForestRegressor(100, bootstrap=False, max_features=None, random_state=5).fit(GRID[LOW], values[LOW])
    middle, low, high = fitted(values, np.zeros(len(GRID)), kind="forest", seed=5).predict(GRID[~LOW])
    np.testing.assert_array_equal(middle, forest.predict(GRID[~LOW]))
    assert np.isnan([low, high]).all()


@pytest.mark.parametrize("kind", predict.KINDS)
def test_same_seed_same_result(kind):
    values = FORMS["has a ceiling"](damages(np.random.default_rng(0)))
    first, second = (fitted(values, 0 * values, kind=kind, seed=3).predict(GRID) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    shuffled = np.random.default_rng(0).permutation(np.flatnonzero(LOW))
    other = fitted(values, 0 * values, shuffled, kind, seed=3).predict(GRID)
    np.testing.assert_array_equal(first, other)


# ---- what may be handed over


@pytest.mark.parametrize("kind", predict.KINDS)
def test_one_axis_and_two_levels(kind):
    one = predict.fit(kind, [[0, 1, 2, 3]], [[0], [1], [3]], [0.0, 0.1, 0.3], [0.01] * 3)
    assert 0.099 <= one.predict([[2]])[0][0] <= 0.301
    two = predict.fit(kind, [[0, 1]] * 2, [[0, 0], [0, 1], [1, 0]], [0.0, 0.1, 0.2], [0.01] * 3)
    assert 0.05 <= two.predict([[1, 1]])[0][0] <= 0.4


@pytest.mark.parametrize("kind", predict.KINDS)
def test_constant_values_stay_so(kind):
    found = predict.fit(kind, SEVERITIES, GRID[LOW], np.full(LOW.sum(), 0.1), np.full(LOW.sum(), 0.01))
    middle, low, high = found.predict(GRID)
    np.testing.assert_allclose(middle, 0.1)
    np.testing.assert_allclose(low, 0.1 - 0.01959964)
    np.testing.assert_allclose(high, 0.1 + 0.01959964)


@pytest.mark.parametrize("kind", predict.KINDS)
def test_one_test_tells_nothing_about_others(kind):
    middle, low, high = predict.fit(kind, SEVERITIES, [[0, 0, 0]], [0.5], [0.1]).predict([[0, 0, 0], [1, 2, 3]])
    np.testing.assert_array_equal(middle, 0.5)
    assert low[0] < 0.5 < high[0]
    assert np.isnan([low[1], high[1]]).all()


def test_unknown_errors_are_no_errors_but_stay_unknown():
    values = FORMS["adds up"](damages(np.random.default_rng(0)))
    unknown, none = (fitted(values, np.full(len(GRID), error)).predict(GRID) for error in (np.nan, 0.0))
    np.testing.assert_array_equal(np.array(unknown)[:, ~LOW], np.array(none)[:, ~LOW])
    assert np.isnan(unknown[1][LOW]).all()
    np.testing.assert_array_equal(none[1][LOW], values[LOW])


def test_values_that_are_no_numbers_count_as_not_measured():
    values = FORMS["adds up"](damages(np.random.default_rng(0)))
    some = LOW & (np.arange(len(GRID)) % 7 > 0)
    expected = fitted(values, 0 * values, some).predict(GRID)
    found = fitted(np.where(some, values, np.nan), 0 * values, LOW).predict(GRID)
    np.testing.assert_array_equal(found, expected)


def test_a_test_measured_twice_counts_as_its_mean():
    rows = [[0, 0], [0, 1], [1, 0], [1, 0]]
    twice = predict.fit("smooth", [[0, 1]] * 2, rows, [0.0, 0.1, 0.2, 0.3], [0.01] * 4)
    once = predict.fit("smooth", [[0, 1]] * 2, rows[:3], [0.0, 0.1, 0.25], [0.01] * 3)
    np.testing.assert_allclose(twice.predict([[1, 0], [1, 1]]), once.predict([[1, 0], [1, 1]]))


def test_spaces_in_which_the_order_of_application_counts():
    """Rows with places after the severities: whatever comes later takes a fifth off what came before."""
    grid = np.array(
        [
            (*severities, *places)
            for severities in itertools.product(range(4), repeat=3)
            for places in places_of(severities)
        ]
    )
    low = np.count_nonzero(grid[:, :3], axis=1) <= 2
    later = (grid[:, None, 3:] > grid[:, 3:, None]).sum(axis=2)
    truth = 1 - np.exp(-(0.8**later * grid[:, :3] * [0.1, 0.2, 0.3]).sum(axis=1))
    errors = {}
    for kind in predict.KINDS:
        predictor = predict.fit(kind, [range(4)] * 3, grid[low], truth[low], 0 * truth[low])
        errors[kind] = np.abs(predictor.predict(grid)[0] - truth)[~low].mean() / np.ptp(truth)
    assert errors["smooth"] < 0.03
    assert errors["smooth"] < errors["forest"] / 2


def places_of(severities):
    """Every order in which the perturbations that are on can be applied."""
    on = [axis for axis, severity in enumerate(severities) if severity]
    for order in itertools.permutations(range(1, len(on) + 1)):
        places = [0] * len(severities)
        for axis, place in zip(on, order, strict=True):
            places[axis] = place
        yield tuple(places)


def test_severities_between_and_beyond_the_levels():
    grid = np.array(list(np.ndindex(5, 5)))
    values = 0.1 * grid.sum(axis=1)
    predictor = predict.fit("smooth", [[0, 1, 2, 3, 4]] * 2, grid, values, 0 * values)
    middle, low, high = predictor.predict([[1.5, 2], [5, 4], [-1, 0]])
    np.testing.assert_allclose(middle, [0.35, 0.9, -0.1], atol=0.02)
    assert (low <= high).all()


def test_an_axis_with_one_level_is_none():
    levels, grid = [[0], [0, 1, 2]], [[0, 0], [0, 1], [0, 2]]
    flat = predict.fit("smooth", [[0, 1, 2]], [[0], [2]], [0.0, 0.2], [0.0] * 2).predict([[1]])
    other = predict.fit("smooth", levels, [grid[0], grid[2]], [0.0, 0.2], [0.0] * 2).predict([grid[1]])
    np.testing.assert_allclose(flat, other)
    alone = predict.fit("smooth", [[0]], [[0], [1]], [0.0, 0.2], [0.0] * 2).predict([[0], [1], [2]])
    np.testing.assert_allclose(alone[0], [0.0, 0.2, 0.1])
    np.testing.assert_allclose(alone[1], [0.0, 0.2, np.nan])


def test_no_configurations_to_predict():
    assert [len(part) for part in fitted(ORDERS * 0.1, ORDERS * 0.0).predict([])] == [0, 0, 0]


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_any_measured_tests_give_finite_predictions(data):
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    grid = np.array(list(np.ndindex(*sizes)))
    tests = st.lists(st.sampled_from(range(len(grid))), min_size=1, max_size=8, unique=True)
    measured = data.draw(tests)
    number = st.floats(-1e6, 1e6).map(lambda value: 0.0 if abs(value) < 1e-6 else value)
    values = data.draw(st.lists(number, min_size=len(measured), max_size=len(measured)))
    error = st.one_of(st.just(0.0), st.just(np.nan), st.floats(0, 1e3))
    errors = data.draw(st.lists(error, min_size=len(values), max_size=len(values)))
    predictor = predict.fit("smooth", [range(size) for size in sizes], grid[measured], values, errors)
    middle, low, high = predictor.predict(grid)
    assert np.isfinite(middle).all()
    known = ~np.isnan(low)
    assert (low[known] <= middle[known]).all()
    assert (middle[known] <= high[known]).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "smoth"}, "did you mean 'smooth'"),
        ({"levels": []}, "levels: an axis has none"),
        ({"levels": [[0, 1], []]}, "levels: an axis has none"),
        ({"configurations": [[0], [1]]}, "1 numbers to a row; accepted: 2"),
        ({"configurations": [[0, "x"], [1, 0]]}, "configurations: list holds what is no number"),
        ({"configurations": [[0, np.nan], [1, 0]]}, "configurations: some numbers are NaN or infinite"),
        ({"values": [0.1]}, r"values: \(1,\) and errors \(2,\) for 2 configurations"),
        ({"values": [np.nan, np.nan]}, "values: no test has one"),
        ({"errors": [0.1, -0.1]}, "errors: -0.1; accepted: from 0"),
    ],
)
def test_mistakes_are_named_in_one_line(change, message):
    good = {
        "kind": "smooth", "levels": [[0, 1]] * 2, "configurations": [[0, 0], [1, 0]], "values": [0.0, 0.1],
        "errors": [0.0, 0.0],
    }  # fmt: skip
    with pytest.raises(InputError, match=message) as caught:
        predict.fit(**{**good, **change})
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"shape \(1, 3\); accepted: rows of 2 numbers"):
        predict.fit(**good).predict([[0, 0, 0]])


# ---- size and speed


def test_many_tests_are_learned_from_some():
    """More than the parameters are learned from: still interpolated well, and soon."""
    grid = np.array(list(np.ndindex((6,) * 4)))
    truth = FORMS["has a ceiling"](damages(np.random.default_rng(0), grid))
    known = np.random.default_rng(1).random(len(grid)) < 0.25
    predictor = predict.fit("smooth", [range(6)] * 4, grid[known], truth[known], 0 * truth[known])
    middle, low, high = predictor.predict(grid)
    assert np.abs(middle - truth)[~known].max() < 0.01
    assert ((low <= truth) & (truth <= high))[~known].mean() > 0.9


def test_four_axes_of_six_levels_take_less_than_a_second():
    grid = np.array(list(np.ndindex((6,) * 4)))
    low = np.count_nonzero(grid, axis=1) <= 2
    truth = FORMS["leaves a share"](damages(np.random.default_rng(0), grid))
    noisy = truth + 0.01 * np.random.default_rng(1).normal(size=len(grid))
    spent = []
    for _ in range(2):
        begin = time.process_time()
        predict.fit("smooth", [range(6)] * 4, grid[low], noisy[low], np.full(low.sum(), 0.01)).predict(grid)
        spent.append(time.process_time() - begin)
    assert min(spent) < 1.0
