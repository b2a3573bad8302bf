import itertools

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.runs.outcomes import Trials
from testifai.surrogates import pairwise
from testifai.surrogates.pairwise import Pairwise


def grid(axes: int, levels: int = 4) -> np.ndarray:
    return np.array(list(itertools.product(range(levels), repeat=axes)))


def orders(sigmas: np.ndarray) -> np.ndarray:
    return np.count_nonzero(sigmas, axis=1)


def log_linear(sigmas: np.ndarray, seed: int, levels: int = 4) -> np.ndarray:
    """Rates with a random term for every severity and every pair of severities, and none of higher order."""
    rng = np.random.default_rng(seed)
    axes = sigmas.shape[1]
    one = -rng.uniform(0.02, 0.3, (axes, levels)) * np.arange(levels)
    two = rng.normal(0, 0.05, (axes, axes, levels, levels))
    logs = np.full(len(sigmas), np.log(0.95))
    for row, sigma in enumerate(sigmas):
        on = np.flatnonzero(sigma)
        logs[row] += sum(one[i, sigma[i]] for i in on)
        logs[row] += sum(two[i, j, sigma[i], sigma[j]] for i, j in itertools.combinations(on, 2))
    return np.minimum(np.exp(logs), 1)


def trials_of(outcomes: np.ndarray) -> Trials:
    """Every input tried by every test; outcomes are inputs by tests."""
    place, test = np.indices(outcomes.shape)
    return Trials(test.ravel(), place.ravel(), outcomes.ravel(), len(outcomes))


@pytest.mark.parametrize("axes", [1, 2, 3, 4, 5])
def test_surfaces_without_three_way_terms_are_recovered(axes):
    sigmas = grid(axes, 3 if axes == 5 else 4)
    rates = log_linear(sigmas, seed=axes)
    low = orders(sigmas) <= 2
    mean, variance = Pairwise().fit(sigmas[low], rates[low] * 1e9, np.full(low.sum(), 1e9)).predict(sigmas)
    np.testing.assert_allclose(mean, rates, rtol=1e-9)
    assert (variance >= 0).all()


def test_the_product_is_the_closed_form_at_every_order():
    rng = np.random.default_rng(0)
    sigmas = grid(4, 2)
    rates = dict(zip(map(tuple, sigmas.tolist()), rng.uniform(0.4, 0.6, len(sigmas)), strict=True))

    def rate(*on):
        return rates[tuple(int(j in on) for j in range(4))]

    low = sigmas[orders(sigmas) <= 2]
    counts = np.array([rates[tuple(s)] for s in low.tolist()]) * 1e6
    mean, _ = Pairwise().fit(low, counts, np.full(len(low), 1e6)).predict(sigmas)
    for sigma, predicted in zip(sigmas, mean, strict=True):
        on = np.flatnonzero(sigma)
        t = len(on)
        expected = rate() ** ((t - 1) * (t - 2) / 2)
        expected *= np.prod([rate(i) for i in on]) ** (2 - t)
        expected *= np.prod([rate(i, j) for i, j in itertools.combinations(on, 2)])
        assert predicted == pytest.approx(min(expected, 1))


def test_measured_orders_come_back_as_they_are():
    sigmas = grid(3)
    low = sigmas[orders(sigmas) <= 2]
    passes = np.random.default_rng(1).integers(1, 100, len(low))
    mean, variance = Pairwise().fit(low, passes, np.full(len(low), 100)).predict(low)
    np.testing.assert_allclose(mean, passes / 100)
    smooth = (passes + 0.5) / 101
    np.testing.assert_allclose(variance, (passes / 100) ** 2 * (1 - smooth) / (smooth * 100))


def test_the_variance_is_that_of_repeated_counts():
    """A variance from n repetitions has a relative standard deviation of sqrt(2/n); four of them are allowed."""
    sigmas, trials, repetitions = grid(3, 2), 20_000, 1_000
    rates = 0.95 * np.prod(np.where(sigmas > 0, [0.9, 0.8, 0.6], 1), axis=1)
    low = orders(sigmas) <= 2
    rng = np.random.default_rng(2)
    found = [
        Pairwise().fit(sigmas[low], rng.binomial(trials, rates[low]), np.full(low.sum(), trials)).predict([[1, 1, 1]])
        for _ in range(repetitions)
    ]
    means, variances = np.array(found).reshape(repetitions, 2).T
    assert variances.mean() == pytest.approx(means.var(), rel=4 * np.sqrt(2 / repetitions))


def test_single_outcomes_give_the_variance_under_shared_inputs():
    """Outcomes of one input hang together, so errors cancel; counts alone cannot know and overstate the variance."""
    sigmas, inputs, repetitions = grid(3, 2)[:-1], 1_000, 400
    rng = np.random.default_rng(3)
    found, from_counts = [], []
    for _ in range(repetitions):
        clean, thresholds = rng.random((inputs, 1)) < 0.95, rng.random((inputs, 3))
        passes_alone = thresholds < [0.9, 0.8, 0.6]
        outcomes = clean & (passes_alone[:, None, :] | (sigmas == 0)).all(axis=2)
        counts = sigmas, outcomes.sum(axis=0), np.full(len(sigmas), inputs)
        found.append(Pairwise().fit(*counts, single=trials_of(outcomes)).predict([[1, 1, 1]]))
        from_counts.append(Pairwise().fit(*counts).predict([[1, 1, 1]])[1][0])
    means, variances = np.array(found).reshape(repetitions, 2).T
    assert variances.mean() == pytest.approx(means.var(), rel=4 * np.sqrt(2 / repetitions))
    assert np.mean(from_counts) > 1.5 * means.var()


def test_the_influence_of_inputs_is_that_of_leaving_them_out():
    """The jackknife over inputs, by brute force, with inputs that not every test tried."""
    rng = np.random.default_rng(4)
    sigmas, inputs = grid(3, 2)[:-1], 400
    tried = rng.random((inputs, len(sigmas))) < 0.8
    passed = (rng.random((inputs, 1)) < 0.8) & (rng.random((inputs, len(sigmas))) < 0.9)
    place, test = np.nonzero(tried)
    single = Trials(test, place, passed[tried], inputs)
    model = Pairwise().fit(sigmas, (passed & tried).sum(axis=0), tried.sum(axis=0), single=single)
    model.measured_.decay = 0.0  # the variance of the rates alone
    mean, variance = model.predict([[1, 1, 1]])
    signs = (-1.0) ** orders(sigmas)
    kept = np.ones(inputs, bool)
    logs = []
    for x in range(inputs):
        kept[x] = False
        rates = (passed & tried)[kept].sum(axis=0) / tried[kept].sum(axis=0)
        logs.append(signs @ np.log(rates))
        kept[x] = True
    jackknife = (inputs - 1) / inputs * np.sum((np.array(logs) - np.mean(logs)) ** 2)
    assert variance[0] == pytest.approx(mean[0] ** 2 * jackknife, rel=0.02)


def test_intervals_cover_where_interactions_shrink_as_assumed():
    """Terms of each order a fraction of those below; 300 surfaces, at least 95 % less three standard deviations."""
    sigmas, surfaces = grid(3, 3), 300
    rng = np.random.default_rng(5)
    inside = []
    for _ in range(surfaces):
        sizes = 0.25 * rng.uniform(0.1, 0.4) ** np.arange(3)
        logs = np.zeros((3, 3, 3))
        for subset in itertools.chain.from_iterable(itertools.combinations(range(3), t) for t in (1, 2, 3)):
            term = rng.normal(0, sizes[len(subset) - 1], [3 if j in subset else 1 for j in range(3)])
            for j in subset:
                term[(slice(None),) * j + (0,)] = 0
            logs += term
        rates = np.exp(np.minimum(logs - 1, 0)).ravel()
        low = orders(sigmas) <= 2
        mean, variance = Pairwise().fit(sigmas[low], rates[low] * 1e6, np.full(low.sum(), 1e6)).predict(sigmas[~low])
        inside.append(np.mean(np.abs(mean - rates[~low]) <= 1.96 * np.sqrt(variance)))
    assert np.mean(inside) >= 0.95 - 3 * np.std(inside) / np.sqrt(surfaces)


def test_rates_of_zero_and_one_do_no_harm():
    sigmas = grid(3)
    low = sigmas[orders(sigmas) <= 2]
    for passes in (0, 50):
        mean, variance = Pairwise().fit(low, np.full(len(low), passes), np.full(len(low), 50)).predict(sigmas)
        np.testing.assert_allclose(mean, max(passes / 50, 0.01))
        assert np.isfinite(variance).all()
        assert (variance[1:] > 0).all()
    passes = np.where(orders(low) == 1, 0, 25)  # dividing by nothing
    mean, variance = Pairwise().fit(low, passes, np.full(len(low), 50)).predict(sigmas)
    assert ((mean >= 0) & (mean <= 1)).all()
    assert (variance <= 0.25).all()


def test_a_pair_that_was_not_measured_is_taken_as_independent_with_a_larger_variance():
    sigmas = grid(3, 2)
    low = sigmas[orders(sigmas) <= 2]
    passes = np.array([900, 800, 700, 600, 600, 500, 450])
    whole = Pairwise().fit(low, passes, np.full(7, 1000))
    part = low.tolist().index([1, 1, 0])
    without = Pairwise().fit(np.delete(low, part, 0), np.delete(passes, part), np.full(6, 1000))
    rate = {tuple(s): p / 1000 for s, p in zip(low.tolist(), passes, strict=True)}
    mean, variance = without.predict([[1, 1, 0], [1, 1, 1]])
    assert mean[0] == pytest.approx(rate[1, 0, 0] * rate[0, 1, 0] / rate[0, 0, 0])
    assert mean[1] == pytest.approx(rate[1, 0, 1] * rate[0, 1, 1] / rate[0, 0, 1])
    assert (variance > whole.predict([[1, 1, 0], [1, 1, 1]])[1]).all()


def test_first_orders_alone_give_their_product():
    sigmas = [[0, 0], [1, 0], [0, 1]]
    mean, variance = Pairwise().fit(sigmas, [900, 800, 700], [1000] * 3).predict([[1, 1]])
    assert mean[0] == pytest.approx(0.8 * 0.7 / 0.9)
    assert variance[0] > 0.05


def test_a_severity_that_was_not_measured_lies_between_its_neighbours():
    sigmas = [[0], [1], [3]]
    mean, variance = Pairwise().fit(sigmas, [900, 800, 200], [1000] * 3).predict([[1], [2], [3], [4]])
    np.testing.assert_allclose(mean, [0.8, np.sqrt(0.8 * 0.2), 0.2, 0.2])
    assert variance[1] > variance[0]
    assert variance[3] > variance[2]


def test_large_predictions_are_made_in_parts(monkeypatch):
    sigmas = grid(3)
    low = sigmas[orders(sigmas) <= 2]
    counts = low, np.arange(len(low)) + 20, np.full(len(low), 100)
    outcomes = np.arange(100)[:, None] < counts[1]
    at_once = Pairwise().fit(*counts, single=trials_of(outcomes)).predict(sigmas)
    monkeypatch.setattr(pairwise, "CHUNK", 50)
    in_parts = Pairwise().fit(*counts, single=trials_of(outcomes)).predict(sigmas)
    np.testing.assert_allclose(in_parts, at_once, rtol=1e-5)
    assert [len(part) for part in Pairwise().fit(*counts).predict(np.empty((0, 3)))] == [0, 0]


@pytest.mark.parametrize(
    ("levels", "sigmas", "words"),
    [
        (None, [[0, 0, 0, 0], [1, 0, 1, 0], [0, 2, 0, 1], [1, 2, 2, 1]], "takes no application orders"),
        ([range(3)] * 2, [[0, 0, 0, 0], [1, 0, 1, 0]], "takes no application orders"),
        ([range(3)] * 2, [[0, 0, 0], [1, 0, 1]], "3 columns; accepted: 2"),
        (None, [[0, 0], [1, 1]], "takes no application orders"),
        (None, [[0, 0, 0], [1, 1, 0]], "no first-order test of axis 1, 2, 3"),
        (None, [[0, 0], [1, 0]], "no first-order test of axis 2"),
        (None, [[1, 0], [0, 1]], "needs the clean test"),
        (None, [0, 1], "one row of severities"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(levels, sigmas, words):
    with pytest.raises(InputError, match=words) as caught:
        Pairwise(levels=levels).fit(sigmas, [5] * len(sigmas), [10] * len(sigmas))
    assert "\n" not in str(caught.value)


def test_predicting_rows_of_another_width_is_refused():
    model = Pairwise().fit([[0], [1]], [9, 5], [10, 10])
    with pytest.raises(InputError, match="rows of 1 severities"):
        model.predict([[0, 1]])
