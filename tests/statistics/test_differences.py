"""Differences of two rates: intervals and exact tests against brute force and published values."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from testifai.statistics import differences
from testifai.statistics.differences import independent_interval, paired_interval

# -- intervals of one test ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gained", "lost", "pairs", "confidence", "low", "high"),
    [(60, 20, 1000, 0.95, 0.0231, 0.0584), (28, 25, 618, 0.90, -0.0148, 0.0247)],
)
def test_tango_as_the_r_package_propcis_computes_it(gained, lost, pairs, confidence, low, high):
    found = paired_interval(gained, lost, pairs, confidence=confidence)
    np.testing.assert_allclose(found, (low, high), atol=5e-5)


def score(gained, lost, pairs, delta):
    """Tango's statistic with the restricted likelihood maximised on a grid."""
    x = np.linspace(max(0, -delta), (1 - delta) / 2, 200_001)[1:-1]
    rest = pairs - gained - lost
    likelihood = lost * np.log(x) + gained * np.log(x + delta) + rest * np.log(1 - 2 * x - delta)
    best = x[np.argmax(likelihood)]
    return ((gained - lost) / pairs - delta) / math.sqrt((2 * best + delta - delta**2) / pairs)


SMALL = [(1, 0, 3), (2, 1, 5), (3, 3, 8), (0, 0, 4), (1, 4, 30), (5, 1, 6)]


@pytest.mark.parametrize(("gained", "lost", "pairs"), SMALL)
def test_tango_against_a_likelihood_maximised_by_brute_force(gained, lost, pairs):
    low, high = paired_interval(gained, lost, pairs)
    for bound, expected in ((float(low), 1.96), (float(high), -1.96)):
        if abs(bound) < 1:
            assert score(gained, lost, pairs, bound) == pytest.approx(expected, abs=0.01)


def test_tango_is_a_mirror_holds_the_estimate_and_never_leaves_the_range():
    counts = np.array([(c, b, n) for n in (1, 2, 7, 40) for c in range(n + 1) for b in range(n + 1 - c)])
    gained, lost, pairs = counts.T
    low, high = paired_interval(gained, lost, pairs)
    back = paired_interval(lost, gained, pairs)
    np.testing.assert_allclose(low, -back[1], atol=1e-9)
    assert (low >= -1).all()
    assert (high <= 1).all()
    estimate = (gained - lost) / pairs
    assert ((low <= estimate) & (estimate <= high)).all()
    assert (high - low > 0).all()


def test_without_any_difference_tango_is_the_score_bound_for_a_rate_of_zero():
    z2 = stats.norm.ppf(0.975) ** 2
    low, high = paired_interval(0, 0, 50)
    assert float(high) == pytest.approx(z2 / (50 + z2))
    assert float(low) == -float(high)


def test_a_finite_population_narrows_the_paired_interval_to_a_point():
    widths = [np.ptp(paired_interval(n // 5, n // 10, n, 100)) for n in (10, 50, 90, 100)]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == 0
    assert np.ptp(paired_interval(10, 5, 50, 10**9)) == pytest.approx(np.ptp(paired_interval(10, 5, 50)), rel=1e-6)
    assert [float(bound) for bound in paired_interval(1, 0, 1, 1)] == [1.0, 1.0]


def test_newcombe_against_his_published_examples():
    # Statistics in Medicine 17 (1998) 873-890, table II, method 10: 56/70 against 48/80, 9/10 against 3/10
    for passes, expected in [((48, 80, 56, 70), (0.0524, 0.3339)), ((3, 10, 9, 10), (0.1705, 0.8090))]:
        np.testing.assert_allclose(independent_interval(*passes), expected, atol=5e-5)


# -- tests of no difference ---------------------------------------------------------------------------------------


def test_mcnemar_is_the_binomial_test():
    for gained, lost in itertools.product(range(9), repeat=2):
        expected = stats.binomtest(gained, gained + lost).pvalue if gained + lost else 1
        assert differences._paired_p(gained, lost, 100, None) == pytest.approx(expected)
        assert differences._paired_p(gained, lost, 100, 10**7) == pytest.approx(expected, abs=1e-4)


def test_fisher_is_the_doubled_tail():
    for row in [(10, 3, 12, 9), (5, 5, 5, 0), (4, 2, 4, 2), (30, 1, 20, 8)]:
        n_a, s_a, n_b, s_b = row
        table = [[s_a, n_a - s_a], [s_b, n_b - s_b]]
        tails = [stats.fisher_exact(table, side).pvalue for side in ("less", "greater")]
        assert differences._independent_p(*row) == pytest.approx(min(1, 2 * min(tails)))


@pytest.mark.parametrize(("inputs", "tried"), [(8, 5), (8, 7), (9, 4), (8, 8)])
def test_in_a_finite_population_no_risk_is_exceeded(inputs, tried):
    """All populations without a difference, all samples from them: p <= risk at most so often."""
    for each in range(inputs // 2 + 1):
        values = np.array([1] * each + [-1] * each + [0] * (inputs - 2 * each))
        samples = values[list(map(list, itertools.combinations(range(inputs), tried)))]
        gained, lost = (samples == 1).sum(axis=1), (samples == -1).sum(axis=1)
        p = np.array([differences._paired_p(int(c), int(b), tried, inputs) for c, b in zip(gained, lost, strict=True)])
        for risk in np.unique(p):
            assert (p <= risk).mean() <= risk + 1e-12


def test_of_a_complete_population_the_test_knows_all():
    assert differences._paired_p(3, 2, 40, 40) == 0
    assert differences._paired_p(3, 3, 40, 40) == 1
