from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from testifai.operational import random_sampling as intervals


@given(st.integers(1, 60), st.data())
def test_hypergeometric_limits_are_what_the_two_tests_leave(population, data):
    tests = data.draw(st.integers(1, population))
    failures = data.draw(st.integers(0, tests))
    possible = [k for k in range(population + 1) if failures <= k <= population - tests + failures]
    low_error = 0.05 if failures == tests else 0.025
    high_error = 0.05 if failures == 0 else 0.025
    low = min(k for k in possible if stats.hypergeom.sf(failures - 1, population, k, tests) > low_error - 1e-9)
    high = max(k for k in possible if stats.hypergeom.cdf(failures, population, k, tests) > high_error - 1e-9)
    assert intervals.hypergeometric(failures, tests, population) == (low, high)


def test_a_truth_exactly_on_the_border_is_kept():
    # 19 of 25 miss both of two failures with a chance of 15 / 300, which is the error rate itself.
    assert intervals.hypergeometric(0, 19, 25) == (0, 2)


@pytest.mark.parametrize(("tests", "population"), [(20, 300), (60, 300), (40, 800), (299, 300)])
def test_hypergeometric_coverage_over_every_truth(tests, population):
    limits = np.array([intervals.hypergeometric(x, tests, population) for x in range(tests + 1)])
    truths = np.arange(population + 1)
    chance = stats.hypergeom.pmf(np.arange(tests + 1)[:, None], population, truths, tests)
    covered = (limits[:, :1] <= truths) & (truths <= limits[:, 1:])
    coverage = (chance * covered).sum(axis=0)
    # Half the error on one side and, where none or all failed, the whole on the other.
    assert coverage.min() >= 0.925
    assert coverage.mean() >= 0.95


def test_everything_labelled_leaves_no_doubt_and_nothing_labelled_leaves_all():
    assert intervals.hypergeometric(3, 12, 12) == (3, 3)
    assert intervals.hypergeometric(0, 0, 12) == (0, 12)


@given(st.integers(2, 200), st.data())
def test_beta_limits_are_clopper_and_pearsons(tests, data):
    failures = data.draw(st.integers(1, tests - 1))
    expected = stats.binomtest(failures, tests).proportion_ci(0.95, method="exact")
    low, high = intervals.beta(failures / tests, tests)
    assert low == pytest.approx(expected.low, abs=1e-9)
    assert high == pytest.approx(expected.high, abs=1e-9)


def test_beta_gives_the_open_side_the_whole_error_where_none_or_all_failed():
    assert intervals.beta(0.0, 30) == pytest.approx((0.0, 1 - 0.05 ** (1 / 30)))
    assert intervals.beta(1.0, 30) == pytest.approx((0.05 ** (1 / 30), 1.0))


def test_total_of_normal_parts_is_the_interval_of_their_sum():
    deviations = np.array([3.0, 4.0, 12.0])
    parts = [(10.0, 10 - 1.96 * d, 10 + 1.96 * d) for d in deviations]
    assert intervals.total(parts) == pytest.approx((30.0, 30 - 1.96 * 13, 30 + 1.96 * 13))
