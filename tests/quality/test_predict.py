"""Predicted quality: surfaces of known form, intervals over many seeds, and everything that may be handed over."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.quality import predict

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


@pytest.mark.parametrize("form", ["adds up", "has a ceiling", "pairs interact"])
def test_third_order_follows_from_the_first_two(form):
    """Forms in which it does, damage growing or quality falling; the published forest stops at its leaves."""
    direction = 1 if form == "adds up" else -1
    truth, errors = 0.3 + direction * FORMS[form](damages(np.random.default_rng(0))), {}
    for kind in predict.PREDICTORS:
        middle, _, _ = fitted(truth, np.zeros(len(GRID)), kind=kind)(GRID)
        errors[kind] = np.abs(middle - truth)[~LOW].mean() / np.ptp(truth)
    assert errors["smooth"] < 0.04
    assert errors["smooth"] < 0.5 * errors["forest"]


# From tests of order two alone, a product of all perturbations cannot be distinguished from pairs that interact.
FOLLOWED = [form for form in FORMS if form != "multiplies"]


@pytest.mark.parametrize(
    ("own", "shared", "seeds", "forms"),
    [
        pytest.param(0.0, 0.0, 3, FOLLOWED, id="exact", marks=pytest.mark.simulation),
        pytest.param(0.0, 0.03, 3, FOLLOWED, id="shared error", marks=pytest.mark.simulation),
        pytest.param(0.01, 0.03, 1, ["has a ceiling", "pairs interact"], id="both"),
    ],
)
def test_intervals_hold_over_seeds(own, shared, seeds, forms):
    """95 % intervals, whether errors scatter from test to test or all tests have the same one.

    Tests of one seed err together, so the tolerance is that of the mean over seeds, from their own spread.
    """
    covered = []
    for seed, form in itertools.product(range(seeds), forms):
        rng = np.random.default_rng([seed, 1])
        truth = FORMS[form](damages(rng))
        scale = np.ptp(truth[LOW])
        noise = own * scale * rng.normal(size=len(GRID)) + shared * rng.normal() * truth
        errors = np.hypot(own * scale, shared * truth)
        _, low, high = fitted(truth + noise, errors)(GRID)
        covered.append(((low <= truth) & (truth <= high))[~LOW].mean())
    assert np.mean(covered) + 3 * np.std(covered) / np.sqrt(len(covered)) >= 0.95
    assert np.mean(covered) >= 0.9


def test_bending_and_back():
    damage = np.linspace(0, 1, 11)
    for kappa in (-6.0, 0.0, 0.5, 0.95):
        z, slope = predict.bend(kappa, damage)
        np.testing.assert_allclose(predict.unbend(kappa, z), damage, atol=1e-9)
        ahead, _ = predict.bend(kappa, damage + 1e-6)
        np.testing.assert_allclose((ahead - z) / 1e-6, slope, rtol=1e-4)


def test_forest_is_the_published_regressor():
    from sklearn.ensemble import RandomForestRegressor

    values = FORMS["adds up"](damages(np.random.default_rng(0)))
    forest = RandomForestRegressor(100, bootstrap=False, max_features=None, random_state=5).fit(GRID[LOW], values[LOW])
    middle, low, high = fitted(values, np.zeros(len(GRID)), kind="forest", seed=5)(GRID[~LOW])
    np.testing.assert_array_equal(middle, forest.predict(GRID[~LOW]))
    assert np.isnan([low, high]).all()


@pytest.mark.parametrize("kind", predict.PREDICTORS)
def test_same_seed_same_result(kind):
    values = FORMS["has a ceiling"](damages(np.random.default_rng(0)))
    first, second = (fitted(values, 0 * values, kind=kind, seed=3)(GRID) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    shuffled = np.random.default_rng(0).permutation(np.flatnonzero(LOW))
    other = fitted(values, 0 * values, shuffled, kind, seed=3)(GRID)
    np.testing.assert_array_equal(first, other)


# ---- what may be handed over


@pytest.mark.parametrize("kind", predict.PREDICTORS)
def test_one_axis_and_two_levels(kind):
    one = predict.fit(kind, [[0, 1, 2, 3]], [[0], [1], [3]], [0.0, 0.1, 0.3], [0.01] * 3)
    assert 0.099 <= one(np.array([[2]]))[0][0] <= 0.301
    two = predict.fit(kind, [[0, 1]] * 2, [[0, 0], [0, 1], [1, 0]], [0.0, 0.1, 0.2], [0.01] * 3)
    assert 0.05 <= two(np.array([[1, 1]]))[0][0] <= 0.4


@pytest.mark.parametrize("kind", predict.PREDICTORS)
def test_constant_values_stay_so(kind):
    found = predict.fit(kind, SEVERITIES, GRID[LOW], np.full(LOW.sum(), 0.1), np.full(LOW.sum(), 0.01))
    middle, low, high = found(GRID)
    np.testing.assert_allclose(middle, 0.1)
    np.testing.assert_allclose(low, 0.1 - 0.01959964)
    np.testing.assert_allclose(high, 0.1 + 0.01959964)


@pytest.mark.parametrize("kind", predict.PREDICTORS)
def test_one_test_tells_nothing_about_others(kind):
    middle, low, high = predict.fit(kind, SEVERITIES, [[0, 0, 0]], [0.5], [0.1])(np.array([[1, 2, 3]]))
    assert middle.tolist() == [0.5]
    assert np.isnan([low, high]).all()


def test_unknown_errors_are_no_errors_but_stay_unknown():
    values = FORMS["adds up"](damages(np.random.default_rng(0)))
    unknown, none = (fitted(values, np.full(len(GRID), error))(GRID) for error in (np.nan, 0.0))
    np.testing.assert_array_equal(unknown, none)


def test_values_that_are_no_numbers_count_as_not_measured():
    values = FORMS["adds up"](damages(np.random.default_rng(0)))
    some = LOW & (np.arange(len(GRID)) % 7 > 0)
    expected = fitted(values, 0 * values, some)(GRID)
    found = fitted(np.where(some, values, np.nan), 0 * values, LOW)(GRID)
    np.testing.assert_array_equal(found, expected)


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
    for kind in predict.PREDICTORS:
        predictor = predict.fit(kind, [range(4)] * 3, grid[low], truth[low], 0 * truth[low])
        errors[kind] = np.abs(predictor(grid)[0] - truth)[~low].mean() / np.ptp(truth)
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


def test_an_axis_with_one_level_is_none():
    rows, values = np.array([[0, 0], [0, 2]]), [0.0, 0.2]
    without = predict.fit("smooth", [[0, 1, 2]], rows[:, 1:], values, [0.0] * 2)(np.array([[1]]))
    other = predict.fit("smooth", [[0], [0, 1, 2]], rows, values, [0.0] * 2)(np.array([[0, 1]]))
    np.testing.assert_allclose(without, other)
    alone = predict.fit("smooth", [[0]], [[0], [0]], [0.1, 0.1], [0.0] * 2)(np.array([[0]]))
    np.testing.assert_allclose(alone, 0.1)


def test_no_configurations_to_predict():
    assert [len(part) for part in fitted(ORDERS * 0.1, ORDERS * 0.0)(GRID[:0])] == [0, 0, 0]


@settings(max_examples=6, deadline=None)
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
    middle, low, high = predictor(grid)
    assert np.isfinite(middle).all()
    known = ~np.isnan(low)
    assert (low[known] <= middle[known]).all()
    assert (middle[known] <= high[known]).all()


def test_mistakes_are_named_in_one_line():
    with pytest.raises(InputError, match="predictor: must be one of smooth, forest"):
        fitted(ORDERS * 0.1, ORDERS * 0.0, kind="smoth")
    with pytest.raises(InputError, match="values: no test has one"):
        fitted(ORDERS * np.nan, ORDERS * 0.0)


# ---- size and speed


def test_many_tests_are_learned_from_some():
    """More than kappa is first chosen from: still interpolated well."""
    grid = np.array(list(np.ndindex((6,) * 4)))
    truth = FORMS["has a ceiling"](damages(np.random.default_rng(0), grid))
    known = np.random.default_rng(1).random(len(grid)) < 0.15
    predictor = predict.fit("smooth", [range(6)] * 4, grid[known], truth[known], 0 * truth[known])
    middle, low, high = predictor(grid)
    assert np.abs(middle - truth)[~known].max() < 0.01
    assert ((low <= truth) & (truth <= high))[~known].mean() > 0.9
