import itertools
import warnings

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.runs.outcomes import Trials
from testifai.surrogates.process import Process
from testifai.surrogates.process.input_correlation import Information, SameInput, _pairs, fit_same_input, hermite
from testifai.surrogates.process.kernel import AxisKernel, Prior
from testifai.surrogates.process.marginal_likelihood import CompleteGrid, SomeTests


def grid(*sizes):
    return np.array(list(itertools.product(*map(range, sizes))))


def counted(outcomes, test, place):
    """Passes, trials and single outcomes of a design on a table (tests x inputs)."""
    passed = outcomes[test, place]
    tests, inputs = outcomes.shape
    single = Trials(np.asarray(test), np.asarray(place), passed, inputs)
    return np.bincount(test, passed, tests), np.bincount(test, minlength=tests), single


def random_design(tests, inputs, each, rng):
    place = np.concatenate([rng.permutation(inputs)[:each] for _ in range(tests)])
    return np.repeat(np.arange(tests), each), place


def population(rates, inputs, rng, within=0.6):
    """Outcomes of inputs whose difficulty is in part the same in all tests."""
    from scipy.special import ndtri

    own = rng.normal(size=inputs) * within**0.5
    latent = own + rng.normal(size=(len(rates), inputs)) * (1 - within) ** 0.5
    return latent < ndtri(np.asarray(rates))[:, None]


# -- the prior ------------------------------------------------------------------------------------------------------


def brute_kernel(prior, parameters, a, b):
    """The formula of the module, subset by subset."""
    smooth, rough = prior.weights(parameters)
    total = 4.0
    for order in range(1, prior.orders + 1):
        for subset in itertools.combinations(prior.active, order):
            one = two = 1.0
            for j in subset:
                n = prior.sizes[j]
                one *= AxisKernel.of(parameters[prior.slices[j]]).table[a[j], b[j]]
                two *= ((a[j] == b[j]) - 1 / n) * n / (n - 1)
            total += smooth[order] * one + rough[order] * two
    return total


@pytest.mark.parametrize("levels", [[[0, 1, 2, 3], [0, 1, 5], [0, 1]], [[0, 2, 3]], [[0, 1]] * 5, [[0, 1, 2], [0]]])
def test_kernel_is_the_sum_over_subsets_of_axes(levels):
    rng = np.random.default_rng(0)
    prior = Prior(levels)
    parameters = prior.mean + 0.5 * prior.sd * rng.normal(size=len(prior.mean))
    places = prior.places(np.array(list(itertools.product(*levels))))
    rows, columns = places[rng.permutation(len(places))[:7]], places
    expected = [[brute_kernel(prior, parameters, a, b) for b in columns] for a in rows]
    np.testing.assert_allclose(prior.kernel(parameters, rows, columns), expected, rtol=1e-10)
    np.testing.assert_allclose(
        prior.variance(parameters, rows), [brute_kernel(prior, parameters, a, a) for a in rows], rtol=1e-10
    )


@pytest.mark.parametrize("levels", [[[0, 1, 2, 3], [0, 1, 5], [0, 1]], [[0, 1, 2, 3]], [[0, 1]] * 5])
def test_evidence_on_a_grid_is_the_normal_density_and_its_gradient_the_difference_quotient(levels):
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(1)
    prior = Prior(levels)
    parameters = prior.mean + 0.5 * prior.sd * rng.normal(size=len(prior.mean))
    places = prior.places(np.array(list(itertools.product(*levels))))
    values = rng.normal(size=len(places)) * 0.2
    covariance = prior.kernel(parameters, places, places) + 0.01 * np.eye(len(places))
    density = multivariate_normal(np.zeros(len(places)), covariance).logpdf(values)
    density += 0.5 * len(places) * np.log(2 * np.pi)
    noise = np.full(len(places), 0.01)
    for problem in (
        CompleteGrid(prior, values, noise),
        CompleteGrid(prior, values, np.diag(noise)),
        SomeTests(prior, places, values, noise),
        SomeTests(prior, places, values, np.diag(noise)),
    ):
        value, gradient = problem.slope(parameters)
        assert problem.value(parameters) == pytest.approx(value, abs=1e-8) == pytest.approx(density, abs=1e-8)
        steps = 1e-5 * np.eye(len(parameters))
        quotients = [(problem.value(parameters + h) - problem.value(parameters - h)) / 2e-5 for h in steps]
        np.testing.assert_allclose(gradient, quotients, atol=1e-6)


def test_noise_on_a_grid_counts_with_its_variance_in_the_effects_of_each_set_of_axes():
    """Noise with effects of one axis alone, whose variances are known: the same density as in full."""
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(2)
    prior = Prior([[0, 1, 2], [0, 1, 2, 3]])
    places = grid(3, 4)
    first, second = (places[:, j][:, None] == places[:, j] for j in (0, 1))
    noise = 0.01 * np.eye(12) + 0.02 * first + 0.03 * second + 0.05
    covariance = prior.kernel(prior.mean, places, places) + noise
    values = rng.normal(size=12) * 0.2
    density = multivariate_normal(np.zeros(12), covariance).logpdf(values) + 6 * np.log(2 * np.pi)
    assert CompleteGrid(prior, values, noise).value(prior.mean) == pytest.approx(density, abs=1e-8)


# -- same inputs ----------------------------------------------------------------------------------------------------


def test_hermite_series_gives_the_correlation_of_two_thresholded_normals():
    from scipy.special import ndtri
    from scipy.stats import multivariate_normal

    for r, q, rho in [(0.5, 0.5, 0.6), (0.9, 0.6, 0.5), (0.95, 0.2, 0.7), (0.3, 0.35, -0.4)]:
        a, b = hermite(np.array([r, q])).T
        both = multivariate_normal([0, 0], [[1, rho], [rho, 1]]).cdf(ndtri([r, q]))
        expected = (both - r * q) / np.sqrt(r * (1 - r) * q * (1 - q))
        assert (rho ** np.arange(1, len(a) + 1) * a * b).sum() == pytest.approx(expected, abs=0.01)


def test_same_input_correlation_is_found():
    rng = np.random.default_rng(0)
    rates = np.linspace(0.9, 0.3, 12)
    outcomes = population(rates, 4000, rng, within=0.5)
    _, _, single = counted(outcomes, *random_design(12, 4000, 2000, rng))
    residuals = (single.passed - rates[single.test]) / np.sqrt(rates * (1 - rates))[single.test]
    places = np.arange(12)[:, None]
    found = SameInput.of(fit_same_input(single, residuals, places, hermite(rates), [12], seed=0), [12])
    apart = np.exp(-np.abs(found.positions[0][2] - found.positions[0][8]))
    # 100,000 pairs: standard error .005
    assert found.strength * (found.common + (1 - found.common) * apart) == pytest.approx(0.5, abs=0.03)


def test_same_input_correlation_may_fall_off_at_one_step_only():
    rng = np.random.default_rng(1)
    from scipy.special import ndtri

    rates = np.array([0.8, 0.7, 0.6, 0.5])
    groups = rng.normal(size=(2, 5000))[[0, 0, 1, 1]]  # levels 0 and 1, and 2 and 3, have their inputs' ease in common
    outcomes = 0.8**0.5 * groups + 0.2**0.5 * rng.normal(size=(4, 5000)) < ndtri(rates)[:, None]
    _, _, single = counted(outcomes, np.repeat(np.arange(4), 5000), np.tile(np.arange(5000), 4))
    residuals = (single.passed - rates[single.test]) / np.sqrt(rates * (1 - rates))[single.test]
    places = np.arange(4)[:, None]
    found = SameInput.of(fit_same_input(single, residuals, places, hermite(rates), [4], seed=0), [4])
    ones = np.ones((1, 4))
    latent = found.correlation(np.arange(4)[:, None], np.arange(4)[:, None], ones, ones)
    # 30,000 pairs, 5,000 for each pair of levels: standard error .02; some pull towards moderate values
    np.testing.assert_allclose(latent[[0, 2], [1, 3]], 0.8, atol=0.08)
    np.testing.assert_allclose(latent[[0, 1], [2, 3]], 0.0, atol=0.08)


def test_pairs_are_all_pairs_of_trials_of_one_input():
    place = np.array([3, 0, 3, 1, 3, 0])
    first, second = _pairs(Trials(np.arange(6), place, np.ones(6, bool), 4), seed=0)
    assert {frozenset(pair) for pair in zip(first.tolist(), second.tolist(), strict=True)} == {
        frozenset(pair) for pair in [(0, 2), (0, 4), (2, 4), (1, 5)]
    }


def brute_information(single, tests, correlation, deviations):
    """One covariance matrix of all trials, inverted."""
    same = single.place[:, None] == single.place
    inverse = np.linalg.inv(np.where(same, correlation[np.ix_(single.test, single.test)], 0.0))
    choice = np.eye(tests)[single.test]
    return choice.T @ inverse @ choice, choice.T @ inverse @ deviations


def some_correlation(tests):
    apart = np.abs(np.subtract.outer(np.arange(tests), np.arange(tests)))
    return 0.2 * np.eye(tests) + 0.5 * np.exp(-apart / 3) + 0.3


@pytest.mark.parametrize("tests", [6, 40])  # blocks of up to 6 are inverted together, larger ones one by one
def test_information_is_generalised_least_squares_on_all_trials(tests):
    rng = np.random.default_rng(0)
    outcomes = rng.random((tests, 30)) < 0.7
    _, _, single = counted(outcomes, *random_design(tests, 30, 25, rng))
    deviations = rng.normal(size=len(single.test))
    found = Information(single, tests, some_correlation(tests))
    precision, score = brute_information(single, tests, some_correlation(tests), deviations)
    # Blocks are of single precision.
    np.testing.assert_allclose(found.precision, precision, atol=1e-4 * precision.max())
    np.testing.assert_allclose(found.covariance(), np.linalg.inv(precision), atol=1e-4)
    np.testing.assert_allclose(found.score(deviations), score, atol=1e-4 * np.abs(score).max())


def test_information_from_means_where_inputs_serve_many_tests(monkeypatch):
    rng = np.random.default_rng(0)
    outcomes = rng.random((6, 30)) < 0.7
    _, _, single = counted(outcomes, np.repeat(np.arange(6), 30), np.tile(np.arange(30), 6))
    deviations = rng.normal(size=180)
    precision, score = brute_information(single, 6, some_correlation(6), deviations)
    monkeypatch.setattr("testifai.surrogates.process.input_correlation.WORK", 20)
    found = Information(single, 6, some_correlation(6))  # all inputs in all tests: means lose nothing
    np.testing.assert_allclose(found.precision, precision, rtol=1e-8)
    np.testing.assert_allclose(found.score(deviations), score, rtol=1e-8)


# -- the posterior --------------------------------------------------------------------------------------------------


def test_posterior_is_the_best_linear_prediction_of_the_rates_on_these_inputs():
    """Against the joint covariance of all trials and of the means over all inputs, written down in full."""
    rng = np.random.default_rng(3)
    sigmas = grid(3, 2)
    outcomes = population([0.9, 0.8, 0.7, 0.6, 0.5, 0.4], 25, rng)
    passes, trials, single = counted(outcomes, *random_design(6, 25, 10, rng))
    process = Process(seed=1).fit(sigmas, passes, trials, single=single)
    process._outliers = None  # the surface alone
    covariance = process.covariance(sigmas)

    near = process.prior_.near_clean(sigmas)
    kernel = process.prior_.kernel(process.parameters_, sigmas, sigmas) + near @ near.T
    correlation = process._correlation(process._parts[0], sigmas, sigmas)
    at = np.ix_(single.test, single.test)
    same = single.place[:, None] == single.place
    of_trials = kernel[at] + np.where(same, correlation[at], 0) / 4
    of_means = kernel + correlation / (4 * 25)
    between = of_means[:, single.test]  # an input's deviation is 1/25 of that of the mean
    expected = of_means - between @ np.linalg.solve(of_trials, between.T)
    rates, variance = process.predict(sigmas)
    slope = np.sin(2 * process._values(sigmas)[0])
    unsure = slope * np.sqrt((1 + 2 / 10) * process._growth(sigmas))  # for parameters that are not known, and curvature
    np.testing.assert_allclose(covariance, unsure[:, None] * expected * unsure, atol=1e-9)
    factor = process._parts[0].widening(sigmas, np.ones(len(sigmas), bool))
    np.testing.assert_allclose(np.sqrt(variance), slope * np.sqrt(factor * np.diag(expected)), rtol=0.1)

    eta = process._values(sigmas)[0]
    rates, slope = np.sin(eta) ** 2, np.sin(2 * eta)
    values = eta[single.test] + (single.passed - rates[single.test]) / slope[single.test]
    level = process._parts[0].level
    fixed_point = level + between @ np.linalg.solve(of_trials, values - level)
    np.testing.assert_allclose(eta, fixed_point, atol=2e-3)  # three rounds of scoring


def test_tests_measured_on_all_inputs_are_known():
    rng = np.random.default_rng(0)
    outcomes = population([1 - 1e-9, 0.8, 0.6, 0.3], 60, rng)
    test, place = np.repeat([0, 1, 2], 60), np.tile(np.arange(60), 3)
    passes, trials, single = counted(outcomes, test, place)
    process = Process(levels=[[0, 1, 2, 3]]).fit([[0], [1], [2], [3]], passes, trials, single=single)
    mean, variance = process.predict([[0], [1], [2], [3]])
    np.testing.assert_allclose(mean[:3], outcomes.mean(axis=1)[:3], atol=1e-12)
    assert (variance[:3] == 0).all()
    assert variance[3] > 1e-4
    estimate, low, high = process.region([[0], [1], [2]])
    assert low == high == estimate == pytest.approx(outcomes[:3].mean())


@pytest.mark.parametrize("passes", [90, 990, 500, 10])
def test_the_interval_of_a_region_is_skewed_as_wilsons(passes):
    """Of one test: Wilson's but for its shrinkage, with as many trials as the process finds its own worth."""
    process = Process().fit([[0]], [passes], [1000])
    _, low, high = process.region([[0]])
    centre = float(process.bounds([[0]], confidence=1e-9)[0][0])  # the surface itself
    worth = 1.959964**2 / ((high - centre) * (centre - low)) * centre * (1 - centre)
    assert worth == pytest.approx(1000, rel=0.05)
    skew = 1.959964**2 * (1 - 2 * centre) / worth
    assert (high - centre) - (centre - low) == pytest.approx(skew, rel=0.05, abs=1e-6)


def test_region_uses_all_covariances():
    sigmas = grid(4, 3)
    rates = np.exp(-0.15 * sigmas.sum(axis=1))
    process = Process().fit(sigmas, np.random.default_rng(0).binomial(50, rates), np.full(12, 50))
    estimate, low, high = process.region(sigmas[3:9], confidence=0.9)
    assert estimate == pytest.approx(process.predict(sigmas[3:9])[0].mean())
    spread = np.sqrt(process.covariance(sigmas[3:9]).mean())
    centre = process.bounds(sigmas[3:9], confidence=1e-9)[0].mean()  # the surface itself
    assert (high - centre) * (centre - low) == pytest.approx((1.6449 * spread) ** 2, rel=1e-3)


# -- coverage on known surfaces -------------------------------------------------------------------------------------

SIGMAS = grid(4, 4, 4)


def surface(kind, rng, sigmas=SIGMAS):
    strength = rng.uniform(0.3, 0.9, 3) * (1, kind != "dead", 1)
    severity = sigmas @ strength
    rates = 0.97 * np.exp(-0.08 * severity**1.5)
    if kind == "floor":
        rates = 0.1 + 0.87 / (1 + np.exp(1.5 * severity - 4))
    if kind == "rough":
        rates = np.sin(np.clip(np.arcsin(np.sqrt(rates)) + 0.05 * rng.normal(size=len(rates)), 0.02, 1.55)) ** 2
    return np.clip(rates, 0.001, 0.999)


# How rough a surface is can only be learned from many tests with many inputs: 64 tests with 60 inputs each do for the
# smooth ones, but would cover .86 on the rough one (the class says so).
@pytest.mark.parametrize(
    ("kind", "sigmas", "each", "seeds"),
    [
        ("smooth", SIGMAS, 60, 4),
        pytest.param("smooth", SIGMAS, 60, 24, marks=pytest.mark.simulation),
        pytest.param("floor", SIGMAS, 60, 24, marks=pytest.mark.simulation),
        pytest.param("dead", SIGMAS, 60, 24, marks=pytest.mark.simulation),
        pytest.param("rough", grid(6, 6, 6), 100, 12, marks=pytest.mark.simulation),
    ],
)
def test_intervals_cover_the_rates_on_these_inputs(kind, sigmas, each, seeds):
    covered, regions = [], []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        outcomes = population(surface(kind, rng, sigmas), 10 * each, rng)
        passes, trials, single = counted(outcomes, *random_design(len(sigmas), 10 * each, each, rng))
        process = Process().fit(sigmas, passes, trials, single=single)
        truth = outcomes.mean(axis=1)
        low, high = process.bounds(sigmas)
        covered.append(np.mean((low <= truth) & (truth <= high)))
        for half in (sigmas[:, 0] < 2, sigmas[:, 0] >= 2):
            _, low_mean, high_mean = process.region(sigmas[half])
            regions.append(low_mean <= truth[half].mean() <= high_mean)
    error = np.std(covered, ddof=1) / seeds**0.5  # seeds are independent, tests of one seed are not
    assert np.mean(covered) > 0.93 - 3 * error
    assert np.mean(regions) > 0.95 - 3 * (0.05 * 0.95 / seeds) ** 0.5


def test_the_fit_is_several_times_better_than_raw_rates_and_knows_shared_inputs():
    errors = {"raw": [], "counts": [], "single": []}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        outcomes = population(surface("smooth", rng), 600, rng, within=0.8)
        passes, trials, single = counted(outcomes, *random_design(len(SIGMAS), 600, 60, rng))
        truth = outcomes.mean(axis=1)
        errors["raw"].append(np.abs(passes / trials - truth).mean())
        for name, given in (("counts", None), ("single", single)):
            rates, _ = Process().fit(SIGMAS, passes, trials, single=given).predict(SIGMAS)
            errors[name].append(np.abs(rates - truth).mean())
    raw, counts, with_single = (np.mean(errors[name]) for name in errors)
    assert counts < raw / 2
    assert with_single < 0.95 * counts


# -- whatever the data ----------------------------------------------------------------------------------------------


def check(process, sigmas):
    rates, variance = process.predict(sigmas)
    low, high = process.bounds(sigmas)
    estimate, below, above = process.region(sigmas)
    assert (variance >= 0).all()
    assert (np.diff([np.zeros_like(low), low, rates, high, np.ones_like(low)], axis=0) >= 0).all()
    assert 0 <= below <= estimate <= above <= 1
    assert np.isfinite(process.covariance(sigmas)).all()
    return rates


@pytest.mark.parametrize("sizes", [(2,), (6,), (2, 2, 2, 2), (1, 1), (3, 1, 2), (2, 2, 2, 2, 2, 2)])
@pytest.mark.parametrize("known", [True, False])
def test_small_spaces_give_finite_results_without_warnings(sizes, known):
    rng = np.random.default_rng(0)
    sigmas = grid(*sizes)
    outcomes = population(np.full(len(sigmas), 0.7), 50, rng)
    passes, trials, single = counted(outcomes, *random_design(len(sigmas), 50, 5, rng))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(Process().fit(sigmas, passes, trials, single=single if known else None), sigmas)


@pytest.mark.parametrize("right", [True, False])
def test_constant_models(right):
    sigmas = grid(4, 3)
    single = Trials(np.repeat(np.arange(12), 20), np.tile(np.arange(20), 12), np.full(240, right), 100)
    trials = np.full(12, 20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rates = check(Process().fit(sigmas, trials * right, trials, single=single), sigmas)
    assert np.abs(rates - right).max() < 0.01


def test_unequal_trials_and_tests_without_any():
    rng = np.random.default_rng(0)
    sigmas = grid(5, 4)
    rates = np.exp(-0.15 * sigmas.sum(axis=1))
    for trials in (rng.integers(20, 80, 20), np.where(rng.random(20) < 0.4, 0, 200)):
        process = Process(levels=[range(5), range(4)]).fit(sigmas, rng.binomial(trials, rates), trials)
        assert np.abs(check(process, sigmas) - rates).max() < 0.15


def test_large_spaces_are_fitted_on_a_part(monkeypatch):
    monkeypatch.setattr("testifai.surrogates.process.process.LARGEST", 60)
    monkeypatch.setattr("testifai.surrogates.process.linear_algebra.ROWS", 50)
    rates = np.exp(-0.1 * SIGMAS.sum(axis=1))
    rng = np.random.default_rng(0)
    outcomes = population(rates, 300, rng)
    passes, trials, single = counted(outcomes, *random_design(64, 300, 50, rng))
    process = Process(levels=[range(4)] * 3).fit(SIGMAS, passes, trials, single=single)
    assert np.abs(check(process, SIGMAS) - outcomes.mean(axis=1)).max() < 0.2


def test_same_data_same_result_and_update_keeps_the_parameters():
    rng = np.random.default_rng(0)
    outcomes = population(np.exp(-0.1 * SIGMAS.sum(axis=1)), 300, rng)
    less = counted(outcomes, *random_design(64, 300, 20, rng))
    more = counted(outcomes, *random_design(64, 300, 100, rng))
    one = Process(seed=3).fit(SIGMAS, *less[:2], single=less[2])
    two = Process(seed=3).fit(SIGMAS, *less[:2], single=less[2])
    np.testing.assert_array_equal(one.predict(SIGMAS), two.predict(SIGMAS))
    parameters = one.parameters_
    one.update(SIGMAS, *more[:2], single=more[2])
    np.testing.assert_array_equal(one.parameters_, parameters)
    before, after = two.predict(SIGMAS), one.predict(SIGMAS)
    truth = outcomes.mean(axis=1)
    assert np.abs(after[0] - truth).mean() < np.abs(before[0] - truth).mean()
    assert after[1].mean() < before[1].mean()


@pytest.mark.parametrize(
    ("features", "passes", "trials", "message"),
    [
        ([[0], [1]], [1, 1], [0, 0], "trials: no test has any"),
        ([[0], [1]], [3, 1], [2, 2], "passes: "),
        ([[0], [1]], [1], [2, 2], "passes: "),
        ([[0.5], [1.0]], [1, 1], [2, 2], "features: float64"),
        ([[0, 1]], [1], [2], "features: 2 severities"),
        ([[0], [7]], [1, 1], [2, 2], "features: severity 7 on axis 0; accepted: 0, 1"),
    ],
)
def test_mistakes_are_named(features, passes, trials, message):
    with pytest.raises(InputError, match=message):
        Process(levels=[[0, 1]]).fit(features, passes, trials)


def test_unknown_severities_and_confidences_are_refused():
    process = Process().fit([[0], [1]], [5, 3], [9, 9])
    with pytest.raises(InputError, match="severity 2"):
        process.predict([[2]])
    with pytest.raises(InputError, match=r"confidence: .*, got 1"):
        process.bounds([[0]], confidence=1)


def test_a_region_in_chunks_is_that_in_one_piece(monkeypatch):
    """Of tests that were tried, of others, and of both, against the covariance of all their errors."""
    from testifai.surrogates.process import linear_algebra

    grid = np.argwhere(np.ones((4, 3, 3), bool))
    rng = np.random.default_rng(2)
    tried = np.sort(rng.permutation(len(grid))[:20])
    surface = Process([range(4), range(3), range(3)]).fit(grid[tried], rng.integers(20, 30, 20), np.full(20, 30))
    surface._outliers = None  # the surface alone
    for asked in (grid[tried], grid, np.delete(grid, tried, axis=0)):
        estimate, low, high = surface.region(asked)
        half = 1.959964 * (surface.covariance(asked).mean()) ** 0.5
        centre = surface.bounds(asked, confidence=1e-9)[0].mean()  # the surface itself
        assert (high - centre) * (centre - low) == pytest.approx(half**2, rel=1e-6)
        monkeypatch.setattr(linear_algebra, "ROWS", 7)
        assert surface.region(asked) == pytest.approx((estimate, low, high), abs=1e-12)
        monkeypatch.undo()


# -- large spaces ---------------------------------------------------------------------------------------------------


def some_of_a_grid(rng, sizes=(4, 3, 5, 3), tests=60, scores=False):
    """A process on a part of a grid, with trials on shared inputs."""
    everything = grid(*sizes)
    chosen = everything[rng.permutation(len(everything))[:tests]]
    outcomes = population(0.95 - 0.6 * chosen.mean(axis=1) / 4, 200, rng)
    test, place = random_design(tests, 200, 30, rng)
    passes, trials, single = counted(outcomes, test, place)
    if scores:
        margins = (outcomes[test, place] - 0.5 + rng.normal(size=len(test)) * 0.3).astype(np.float32)
        single = Trials(single.test, single.place, single.passed, single.inputs, margins)
    process = Process([range(size) for size in sizes]).fit(chosen, passes, trials, single=single)
    return process, everything


@pytest.mark.parametrize("scores", [False, True])
@pytest.mark.parametrize("population", [True, False])
def test_a_region_summed_over_the_grid_is_that_of_all_pairs(scores, population):
    rng = np.random.default_rng(3)
    process, everything = some_of_a_grid(rng, scores=scores)
    process._share = process._share if population else 0.0
    for region in (everything, everything[everything[:, 0] >= 2], everything[rng.permutation(180)[:90]]):
        places, weights = process.prior_.places(region), rng.normal(size=len(region))
        for part in process._parts:
            whole = process._along_grid(part, places, weights)
            for wanted in (places, process._places):
                pairs = process._along_pairs(part, places, weights, wanted)
                np.testing.assert_allclose(whole[process._numbered.keys(wanted)], pairs, rtol=1e-9, atol=1e-12)


def test_a_region_of_a_large_space_does_not_look_at_pairs(monkeypatch):
    process, everything = some_of_a_grid(np.random.default_rng(4), sizes=(5, 5, 5, 5), tests=40)
    estimate, low, high = process.region(everything)
    monkeypatch.setattr(Process, "_along_pairs", lambda *_: pytest.fail("looked at pairs"))
    assert process.region(everything) == (estimate, low, high)


def test_estimates_are_made_once(monkeypatch):
    process, everything = some_of_a_grid(np.random.default_rng(5))
    mean, _ = process.predict(everything)
    monkeypatch.setattr(Process, "_new_values", lambda *_: pytest.fail("made again"))
    np.testing.assert_array_equal(process.predict(everything[::7])[0], mean[::7])
    assert process.region(everything[:100])[0] == pytest.approx(mean[:100].mean())


def test_the_surface_is_learned_from_no_more_clean_trials_than_others_have():
    rng = np.random.default_rng(6)
    sigmas = grid(4, 3)
    outcomes = population(np.linspace(0.95, 0.4, 12), 300, rng)
    tests, places = random_design(12, 300, 20, rng)
    missing = np.setdiff1d(np.arange(300), places[tests == 0])
    tests, places = np.r_[tests, np.zeros(len(missing), int)], np.r_[places, missing]
    passes, trials, single = counted(outcomes, tests, places)
    assert trials[0] == 300
    process = Process(seed=1).fit(sigmas, passes, trials, single=single)
    assert process._tried.tolist() == [20] * 12
    assert np.bincount(process._single.test).tolist() == [20] * 12
    mean, variance = process.predict(sigmas[:1])  # known all the same
    assert mean[0] == pytest.approx(outcomes[0].mean())
    assert variance[0] == 0


@pytest.mark.parametrize("largest", [2000, 20])
def test_several_regions_at_once_are_those_one_by_one(largest, monkeypatch):
    monkeypatch.setattr("testifai.surrogates.process.process.LARGEST", largest)
    rows = grid(4, 4, 4)
    rng = np.random.default_rng(3)
    tried = rows[rng.permutation(64)[:40]]
    process = Process([range(4)] * 3).fit(tried, rng.binomial(20, np.exp(-0.1 * tried.sum(axis=1))), [20] * 40)
    members = np.array([rows[:, 0] > 1, rows[:, 1] == 2, np.ones(64, bool)])
    found = process.regions(rows, members, [None, 100, None], 0.9)
    for one, of, chosen in zip(found, [None, 100, None], members, strict=True):
        assert one == pytest.approx(process.region(rows[chosen], 0.9, of))
