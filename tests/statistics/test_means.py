"""Intervals for means of values in 0..1: against the bound they stand for, binomial ones, and simulation."""

import numpy as np
import pytest

from testifai.statistics.intervals import confidence_sequence, exact
from testifai.statistics.means import Moments, mean_interval, mean_of_width, mean_sequence

RANDOM = np.random.default_rng(3)

KINDS = {
    "passes": lambda r, shape: (r.random(shape) < 0.9).astype(float),
    "rare failures": lambda r, shape: (r.random(shape) < 0.99).astype(float),
    "two points": lambda r, shape: np.where(r.random(shape) < 0.95, 0.9, 0.1),
    "skewed": lambda r, shape: r.beta(8, 1, shape),
    "constant": lambda r, shape: np.full(shape, 0.8),
    "mixed": lambda r, shape: np.where(
        r.random(shape) < 0.5, 1.0, np.where(r.random(shape) < 0.2, 0, r.beta(4, 2, shape))
    ),
}


@pytest.mark.parametrize(("passes", "trials"), [(0, 7), (4, 6), (60, 60), (33, 50)])
def test_of_passes_and_failures_it_is_that_of_clopper_and_pearson(passes, trials):
    values = np.arange(trials) < passes
    assert np.allclose(mean_interval(Moments.of(values)), exact(passes, trials), atol=1e-6)


@pytest.mark.parametrize(("passes", "trials"), [(5, 5), (9, 10), (38, 40), (30, 40), (70, 75)])
def test_of_a_population_it_is_near_the_exact_one_and_hardly_narrower(passes, trials):
    low, high = mean_interval(Moments.of(np.arange(trials) < passes), population=80)
    least, most = exact(passes, trials, 80)
    assert least - 0.02 < low < least + 0.005
    assert most - 0.005 < high < most + 0.02


@pytest.mark.parametrize("values", [RANDOM.beta(8, 1, 20), RANDOM.random(12), np.full(5, 0.8), [0.2] + [0.9] * 9])
def test_it_is_nearly_the_quantile_of_evenly_drawn_weights(values):
    weights = RANDOM.dirichlet(np.ones(len(values) + 1), 100_000)
    low, high = mean_interval(Moments.of(np.array(values)))
    assert low == pytest.approx(np.quantile(weights @ [*values, 0.0], 0.025), abs=0.03)
    assert high == pytest.approx(np.quantile(weights @ [*values, 1.0], 0.975), abs=0.03)


@pytest.mark.parametrize("population", [None, 80, 500])
@pytest.mark.parametrize("trials", [3, 5, 10, 30, 60])
@pytest.mark.parametrize("kind", KINDS)
def test_it_covers(kind, trials, population):
    random, runs = np.random.default_rng(5), 2_000
    if population is None:
        truth, seen = KINDS[kind](random, 400_000).mean(), KINDS[kind](random, (runs, trials))
    else:
        everyone = KINDS[kind](random, (runs, population))
        truth, seen = everyone.mean(axis=1), everyone[:, :trials]
    low, high = mean_interval(Moments.of(seen), population)
    assert np.mean((low <= truth + 1e-9) & (truth <= high + 1e-9)) > 0.94


def test_equal_values_leave_room_and_more_of_them_less():
    widths = [np.subtract(*mean_interval(Moments.of(np.full(n, 0.9)))[::-1]) for n in (5, 50, 500)]
    assert widths[0] > 0.4 > widths[1] > 0.04 > widths[2] > 0


def test_scores_that_spread_little_are_known_better_than_passes_of_the_same_mean():
    narrow = mean_interval(Moments.of(np.linspace(0.8, 1, 200)))
    wide = exact(180, 200)
    assert narrow[1] - narrow[0] < 0.6 * (wide[1] - wide[0])


@pytest.mark.parametrize("interval", [mean_interval, mean_of_width, mean_sequence])
def test_once_all_inputs_were_tried_the_mean_is_known(interval):
    values = RANDOM.random((3, 25))
    low, high = interval(Moments.of(values), 25)
    assert np.allclose(low, values.mean(axis=1))
    assert np.allclose(high, values.mean(axis=1))


def test_without_trials_there_is_no_interval():
    assert np.isnan(mean_interval(Moments.of(np.empty((2, 0))))).all()


def test_limits_for_many_looks_are_those_of_passes_and_hold_at_all_of_them():
    bits = np.arange(100) < 90
    assert np.allclose(mean_sequence(Moments.of(bits)), confidence_sequence(90, 100))
    random = np.random.default_rng(7)
    seen = np.where(random.random((400, 200)) < 0.9, 1.0, 0.3)
    broken = np.zeros(400, bool)
    for trials in range(2, 200, 3):
        low, high = mean_sequence(Moments.of(seen[:, :trials]))
        broken |= (low > 0.93) | (high < 0.93)
    assert broken.mean() < 0.05


def test_dispersion_is_that_of_values_about_their_own_means():
    low, high = np.full((1, 4), 0.2), np.full((1, 4), 0.8)
    assert Moments.of(np.concatenate([low, high])).dispersion == pytest.approx(0)
    assert Moments.of(RANDOM.random((200, 50))).dispersion == pytest.approx(1 / 3, abs=0.02)
