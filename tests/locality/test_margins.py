from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testifai.locality.margins import bounded_arms, class_arms, coull_arms, together
from testifai.statistics.intervals import wilson

from .synthetic import confusions, drawn_table


@given(st.integers(1, 500), st.data())
def test_values_of_0_and_1_get_wilsons_interval(trials, data):
    passes = data.draw(st.integers(0, trials))
    rate = np.array([passes / trials])
    down, up = bounded_arms(rate, rate * (1 - rate), np.array([float(trials)]))
    low, high = wilson(passes, trials)
    np.testing.assert_allclose([rate[0] - down[0], rate[0] + up[0]], [low, high], atol=1e-9)


@given(st.integers(1, 500), st.data())
def test_or_agresti_and_coulls(trials, data):
    passes = data.draw(st.integers(0, trials))
    rate = np.array([passes / trials])
    down, up = coull_arms(rate, rate * (1 - rate), np.array([float(trials)]))
    added = NormalDist().inv_cdf(0.975) ** 2
    centre = (passes + added / 2) / (trials + added)
    half = np.sqrt(added * centre * (1 - centre) / (trials + added))
    np.testing.assert_allclose([rate[0] - down[0], rate[0] + up[0]], [centre - half, centre + half], atol=1e-9)


@pytest.mark.parametrize("arms", [bounded_arms, coull_arms])
@pytest.mark.parametrize(("a", "b", "trials"), [(8, 1, 50), (20, 0.3, 100), (2, 2, 30)])
def test_the_interval_for_values_between_0_and_1_covers(arms, a, b, trials):
    generator = np.random.default_rng(5)
    values = generator.beta(a, b, (4000, trials))
    mean = values.mean(axis=1)
    down, up = arms(mean, values.var(axis=1), np.full(len(mean), float(trials)))
    truth = a / (a + b)
    covered = np.mean((mean - down <= truth) & (truth <= mean + up))
    assert covered > 0.95 - 4 * np.sqrt(0.05 * 0.95 / 4000)


def test_values_that_are_all_alike_are_not_certain():
    down, up = bounded_arms(np.array([1.0, 0.5]), np.array([0.0, 0.0]), np.array([50.0, 50.0]))
    assert down[0] == pytest.approx(1 - float(wilson(50, 50)[0]))
    assert (down[1] > 0.01, up[1] > 0.01) == (True, True)


def test_arms_of_independent_parts_add_in_squares():
    down, up = together([(np.array([3.0]), np.array([0.0])), (np.array([4.0]), np.array([2.0]))])
    assert (down[0], up[0]) == (5.0, 2.0)


def test_counts_alone_allow_for_inputs_that_fail_together():
    truth = confusions(1, severities=4)
    gradient = np.zeros((1, 2, 4, 3))
    gradient[0, 0, :, 1] = 0.25
    singles = class_arms(drawn_table(truth, 200, seed=0), 1, gradient)
    alike = class_arms(drawn_table(truth, 200, seed=0, alike=1.0), 1, gradient)
    counts = class_arms(drawn_table(truth, 200, seed=0, singles=False), 1, gradient)
    assert singles[0][0] < 0.75 * counts[0][0]
    assert alike[0][0] > 1.3 * singles[0][0]


def test_an_estimate_that_no_answer_changes_has_no_arms():
    down, up = class_arms(drawn_table(confusions(2), 20, seed=0), 0, np.full((1, 2, 2, 3), 0.25))
    assert (float(down[0]), float(up[0])) == (0.0, 0.0)
