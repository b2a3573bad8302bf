import math

import numpy as np
import pytest
from scipy import stats

from testifai.statistics.intervals import confidence_sequence, disagree, exact, hypergeometric, wilson


def test_wilson_equals_scipy():
    for passes, trials in [(0, 10), (3, 10), (90, 100), (100, 100)]:
        expected = stats.binomtest(passes, trials).proportion_ci(method="wilson")
        low, high = wilson(passes, trials)
        assert (float(low), float(high)) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_bounds_close_once_every_input_was_tried():
    for interval in (wilson, confidence_sequence, exact):
        low, high = interval([3, 50], [10, 50], population=50)
        assert low[1] == high[1] == 1.0
        assert low[0] < 0.3 < high[0]


def test_no_trials_no_interval():
    for interval in (wilson, confidence_sequence, exact):
        assert np.isnan(interval(0, 0)).all()
        assert np.isnan(interval(0, 0, population=10)).all()


@pytest.mark.parametrize(("passes", "trials"), [(3, 10), (0, 10), (10, 10), (100, 150), (40, 200), (2, 3)])
def test_confidence_sequence_equals_brute_force_inversion(passes, trials):
    total = 200
    k = np.arange(total + 1)
    inside = k[stats.hypergeom.pmf(passes, total, k, trials) * (trials + 1) > 0.05]
    low, high = confidence_sequence(passes, trials, population=total)
    assert (float(low), float(high)) == (inside.min() / total, inside.max() / total)


def test_confidence_sequence_for_new_inputs_equals_brute_force_inversion():
    p = np.linspace(0, 1, 200_001)
    inside = p[stats.binom.pmf(30, 40, p) * 41 > 0.05]
    low, high = confidence_sequence(30, 40)
    assert (float(low), float(high)) == pytest.approx((inside.min(), inside.max()), abs=1e-5)


def not_rejected(passes, trials, population, errors):
    """The fewest and the most passes among all that an exact test keeps, by trying every number."""
    totals = np.arange(passes, population - (trials - passes) + 1)
    low = totals[stats.hypergeom.sf(passes - 1, population, totals, trials) > errors[0] * (1 - 1e-9)].min()
    high = totals[stats.hypergeom.cdf(passes, population, totals, trials) > errors[1] * (1 - 1e-9)].max()
    return int(low), int(high)


def test_exact_limits_of_many_tests_are_those_of_each():
    rng = np.random.default_rng(2)
    trials = np.concatenate([[1, 1, 2, 999, 1000], rng.integers(1, 1000, 60)])
    passes = np.concatenate([[0, 1, 1, 998, 0], rng.binomial(trials[5:], rng.choice([0.5, 0.9, 0.99, 1], 60))])
    for confidence in (0.5, 0.95, 0.9999):
        tails = ((1 - confidence) / 2,) * 2
        low, high = exact(passes, trials, 1000, confidence)
        one_by_one = [not_rejected(s, n, 1000, tails) for s, n in zip(passes.tolist(), trials.tolist(), strict=True)]
        assert [hypergeometric(s, n, 1000, tails) for s, n in zip(passes.tolist(), trials.tolist(), strict=True)] == (
            one_by_one
        )
        assert [(round(a * 1000), round(b * 1000)) for a, b in zip(low, high, strict=True)] == one_by_one
        low, high = exact(passes, trials, None, confidence)
        for a, b, s, n in zip(low, high, passes, trials, strict=True):
            expected = stats.binomtest(int(s), int(n)).proportion_ci(confidence, method="exact")
            assert (a, b) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_wilson_covers_samples_without_replacement():
    generator = np.random.default_rng(0)
    total, trials, repetitions = 1000, 200, 20_000
    for rate in (0.5, 0.9, 0.97):
        passes = generator.hypergeometric(int(rate * total), total - int(rate * total), trials, repetitions)
        low, high = wilson(passes, trials, population=total)
        covered = ((low <= rate) & (rate <= high)).mean()
        # Counts are discrete: exact coverage swings around 95 % by a little more than a per cent.
        assert 0.935 < covered < 0.97


def test_confidence_sequence_covers_at_every_look_together():
    """The share of runs in which the truth is ever outside, over all looks, stays below 5 %."""
    generator = np.random.default_rng(1)
    total, repetitions = 400, 500
    for rate in (0.5, 0.9):
        inputs = np.arange(total) < rate * total
        ever_outside = 0
        trials = np.arange(1, total + 1)
        for _ in range(repetitions):
            passes = np.cumsum(generator.permutation(inputs))
            likelihood = stats.hypergeom.pmf(passes, total, inputs.sum(), trials)
            ever_outside += bool((likelihood * (trials + 1) <= 0.05).any())
        # Ville's inequality says 5 %; three standard errors of a binomial share on top.
        assert ever_outside / repetitions <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / repetitions)
        passes = np.cumsum(generator.permutation(inputs))
        low, high = confidence_sequence(passes, trials, population=total)
        said_outside = (rate < low) | (rate > high)
        likelihood = stats.hypergeom.pmf(passes, total, inputs.sum(), trials)
        assert (said_outside == (likelihood * (trials + 1) <= 0.05)).all()


def test_disagreement_looks_at_the_sides_that_face_each_other():
    free = (0.9, 0.8, 0.92)
    assert not disagree((0.81, 0.80, 0.82), free)  # 0.09 below, where the free interval reaches 0.1
    assert disagree((0.95, 0.94, 0.96), free)  # 0.05 above, where it reaches 0.02


def test_exact_results_disagree_only_when_they_differ():
    free = (0.5, 0.5, 0.5)
    assert not disagree((0.5 + 1e-15, 0.5, 0.5 + 1e-15), free)
    assert disagree((0.501, 0.501, 0.501), free)


def test_nothing_disagrees_with_what_does_not_exist():
    nan = math.nan
    assert not disagree((0.5, nan, nan), (0.9, 0.89, 0.91))
    assert not disagree((0.5, 0.4, 0.6), (nan, nan, nan))


def test_disagreement_of_independent_intervals_is_one_in_twenty():
    rng = np.random.default_rng(6)
    draws = rng.normal(0.5, [0.01, 0.02], (4000, 2))
    found = [disagree((a, a - 0.0196, a + 0.0196), (b, b - 0.0392, b + 0.0392)) for a, b in draws]
    assert np.mean(found) == pytest.approx(0.05, abs=3.1 * math.sqrt(0.05 * 0.95 / 4000))
