"""The squared discrepancy: against torchmetrics, against loops, against closed forms, and its error by simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from testifai.errors import InputError
from testifai.quality import kid as module
from testifai.quality.kid import Discrepancy, Subsets, draw_subsets


def mmd(first, second, **options):
    return Discrepancy(first, **options).score(second)


def kernel(x, y):
    return (float(np.dot(x, y)) / len(x) + 1) ** 3


def by_loops(first, second):
    """The definition, pair by pair."""
    m, n = len(first), len(second)
    a = sum(kernel(x, y) for x, y in itertools.permutations(first, 2)) / (m * (m - 1))
    b = sum(kernel(x, y) for x, y in itertools.permutations(second, 2)) / (n * (n - 1))
    return a + b - 2 * sum(kernel(x, y) for x, y in itertools.product(first, second)) / (m * n)


def in_units(first, second):
    size = math.sqrt((first**2).mean())
    return by_loops(first / size, second / size)


def moments(mean, order):
    """E[x ⊗ … ⊗ x] for x normal with that mean and unit covariance."""
    eye = np.eye(len(mean))
    if order == 1:
        return mean
    if order == 2:
        return np.multiply.outer(mean, mean) + eye
    terms = [np.einsum(f"{one},{two}->abc", mean, eye) for one, two in (("a", "bc"), ("b", "ac"), ("c", "ab"))]
    return np.einsum("a,b,c->abc", mean, mean, mean) + sum(terms)


def expected_kernel(one, two):
    """E[(x·y / d + 1)³] of independent normal x and y: moments of x·y are inner products of moment tensors."""
    powers = [(moments(one, k) * moments(two, k)).sum() / len(one) ** k for k in (1, 2, 3)]
    return 1 + 3 * powers[0] + 3 * powers[1] + powers[2]


def true_value(mean):
    zero = np.zeros(len(mean))
    return expected_kernel(zero, zero) + expected_kernel(mean, mean) - 2 * expected_kernel(zero, mean)


samples = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@settings(max_examples=40, deadline=None)
@given(samples, st.integers(3, 8), st.integers(3, 8), st.integers(1, 5))
def test_it_is_the_definition(rng, m, n, columns):
    first, second = rng.normal(size=(m, columns)), rng.normal(0.5, 2, size=(n, columns))
    assert mmd(first, second).value == pytest.approx(by_loops(first, second), rel=1e-9, abs=1e-9)
    assert mmd(first, second, unit=True).value == pytest.approx(in_units(first, second), rel=1e-9, abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(samples, st.integers(4, 7), st.integers(4, 7))
def test_the_error_is_that_of_leaving_out_one_row_at_a_time(rng, m, n):
    first, second = rng.normal(size=(m, 3)), rng.normal(0.5, 2, size=(n, 3))
    without_first = [by_loops(np.delete(first, i, axis=0), second) for i in range(m)]
    without_second = [by_loops(first, np.delete(second, i, axis=0)) for i in range(n)]
    variance = (m - 1) * np.var(without_first) + (n - 1) * np.var(without_second)
    assert mmd(first, second).error == pytest.approx(math.sqrt(variance), rel=1e-7)


def test_in_units_of_the_clean_rows_the_error_allows_for_the_unit():
    # The unit changes a little with each row left out; what is left is of the second order in 1 / rows.
    rng = np.random.default_rng(1)
    first, second = rng.normal(1, 1, size=(30, 4)), rng.normal(1.5, 2, size=(30, 4))
    without_first = [in_units(np.delete(first, i, axis=0), second) for i in range(30)]
    without_second = [
        by_loops(*(table / math.sqrt((first**2).mean()) for table in (first, np.delete(second, i, axis=0))))
        for i in range(30)
    ]
    variance = 29 * np.var(without_first) + 29 * np.var(without_second)
    assert mmd(first, second, unit=True).error == pytest.approx(math.sqrt(variance), rel=0.05)


@pytest.mark.filterwarnings("ignore:Metric `Kernel Inception Distance` will save")
def test_it_equals_torchmetrics_on_independent_sets_with_the_same_subsets():
    torch = pytest.importorskip("torch")
    image = pytest.importorskip("torchmetrics.image.kid")
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(120, 16)), rng.gamma(2, 1, size=(90, 16))
    metric = image.KernelInceptionDistance(torch.nn.Identity(), subsets=7, subset_size=40).set_dtype(torch.float64)
    metric.update(torch.tensor(first), real=True)
    metric.update(torch.tensor(second), real=False)
    torch.manual_seed(3)
    expected, spread = (float(one) for one in metric.compute())
    torch.manual_seed(3)
    members = np.zeros((7, 120)), np.zeros((7, 90))
    for r in range(7):
        for side in members:
            side[r, torch.randperm(side.shape[1])[:40].numpy()] = 1
    found = mmd(first, second, subsets=Subsets(*members, 40))
    assert found.value == pytest.approx(expected, abs=1e-6)
    whole = mmd(first, second).error
    # torchmetrics divides the spread of the subsets by their number, not by one less.
    assert found.error == pytest.approx(math.sqrt(whole**2 + spread**2 * 7 / 6 / 7), rel=1e-6)


def test_without_subsets_it_is_torchmetrics_with_one_subset_of_everything():
    torch = pytest.importorskip("torch")
    image = pytest.importorskip("torchmetrics.image.kid")
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=(50, 8)), rng.normal(0.3, 1, size=(50, 8))
    expected = image.poly_mmd(torch.tensor(first), torch.tensor(second))
    assert mmd(first, second).value == pytest.approx(float(expected), abs=1e-6)


def test_many_subsets_tend_to_the_value_of_all_pairs():
    rng = np.random.default_rng(2)
    first, second = rng.normal(size=(40, 4)), rng.normal(0.5, 1, size=(40, 4))
    subsets = draw_subsets(4000, 15, 40, 40, seed=0)
    found, whole = mmd(first, second, subsets=subsets), mmd(first, second)
    left = math.sqrt(found.error**2 - whole.error**2)
    assert abs(found.value - whole.value) < 4 * left
    assert left < 0.1 * whole.error


def test_subsets_are_drawn_without_replacement_and_by_the_seed():
    one, again, other = (draw_subsets(20, 5, 30, 12, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.first, again.first)
    assert not np.array_equal(one.first, other.first)
    assert (one.first.sum(axis=1) == 5).all()
    assert (one.second.sum(axis=1) == 5).all()
    assert one.second.shape == (20, 12)


def simulate(mean, repetitions=400, rows=60, **options):
    """(values, errors) over independent samples; the mean of the second sample is shifted."""
    rng = np.random.default_rng(7)
    found = [
        mmd(rng.normal(size=(rows, len(mean))), rng.normal(size=(rows, len(mean))) + mean, **options)
        for _ in range(repetitions)
    ]
    return np.array(found).T


@pytest.mark.parametrize("shift", [0.0, 0.5, 1.5])
def test_it_has_no_bias_and_intervals_cover(shift):
    mean = np.full(4, shift)
    values, errors = simulate(mean)
    truth = true_value(mean)
    assert abs(values.mean() - truth) < 4 * values.std() / math.sqrt(len(values))
    covered = (np.abs(values - truth) < 1.96 * errors).mean()
    # 95 %, less 1.5 points for skewed values and errors that are estimated, less three standard deviations of 400.
    assert covered > 0.935 - 3 * math.sqrt(0.05 * 0.95 / 400)
    # Accurate where the samples differ, at most twice the variance where they do not.
    ratio = math.sqrt((errors**2).mean()) / values.std()
    assert 0.85 < ratio < (1.2 if shift else 1.6)


def test_intervals_of_means_over_few_subsets_cover_too():
    mean, rng = np.full(4, 1.0), np.random.default_rng(3)
    covered = []
    for repetition in range(300):
        subsets = draw_subsets(3, 20, 60, 60, seed=repetition)
        found = mmd(rng.normal(size=(60, 4)), rng.normal(size=(60, 4)) + mean, subsets=subsets)
        covered.append(abs(found.value - true_value(mean)) < 1.96 * found.error)
    # The spread of three subsets is hardly known: 2.5 points for that.
    assert np.mean(covered) > 0.925 - 3 * math.sqrt(0.05 * 0.95 / 300)


def test_a_control_takes_away_luck_and_no_truth():
    rng = np.random.default_rng(11)
    plain, controlled, errors = [], [], []
    for _ in range(300):
        first, second = rng.normal(size=(50, 4)), rng.normal(size=(50, 4))
        changed = second + 0.1
        plain.append(mmd(first, changed).value)
        found = Discrepancy(first, control=second).score(changed)
        controlled.append(found.value)
        errors.append(found.error)
    truth = true_value(np.full(4, 0.1))
    assert abs(np.mean(controlled) - truth) < 4 * np.std(controlled) / math.sqrt(300)
    assert np.std(controlled) < 0.6 * np.std(plain)
    covered = np.mean(np.abs(np.array(controlled) - truth) < 1.96 * np.array(errors))
    assert covered > 0.935 - 3 * math.sqrt(0.05 * 0.95 / 300)


def test_a_control_against_itself_is_nothing():
    first, second = np.random.default_rng(0).normal(size=(2, 30, 4))
    assert Discrepancy(first, control=second, unit=True).score(second) == (0.0, 0.0)
    with pytest.raises(InputError, match="as many rows"):
        Discrepancy(first, control=second).score(second[:-1])


def test_work_in_blocks_comes_to_the_same(monkeypatch):
    rng = np.random.default_rng(5)
    first, second = rng.normal(size=(37, 6)), rng.normal(size=(23, 6))
    subsets = draw_subsets(9, 10, 37, 23, seed=0)
    whole = mmd(first, second, unit=True), mmd(first, second, subsets=subsets)
    monkeypatch.setattr(module, "_BLOCK", 100)
    blocks = mmd(first, second, unit=True), mmd(first, second, subsets=subsets)
    np.testing.assert_allclose(blocks, whole, rtol=1e-10)


def test_units_do_not_depend_on_the_scale_of_features():
    rng = np.random.default_rng(6)
    first, second = rng.normal(size=(30, 5)), rng.normal(1, 1, size=(30, 5))
    np.testing.assert_allclose(mmd(1000 * first, 1000 * second, unit=True), mmd(first, second, unit=True), rtol=1e-9)
    zeros = np.zeros((30, 5))
    assert mmd(zeros, second, unit=True) == mmd(zeros, second)
    assert mmd(zeros, zeros, unit=True) == (0.0, 0.0)


tables = npst.arrays(np.float64, (6, 2), elements=st.floats(allow_nan=False, allow_infinity=False))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@settings(max_examples=150, deadline=None)
@given(tables, tables, st.booleans(), st.booleans())
def test_any_finite_features_have_a_score_or_are_refused(first, second, unit, controlled):
    try:
        found = Discrepancy(first, control=second[::-1] if controlled else None, unit=unit).score(second)
    except InputError:
        # Nothing that a network gives: the kernel's sixth powers are squared once more for the error.
        largest, other = float(np.abs(first).max()), float(np.abs(second).max())
        assert max(largest, other, other / largest if unit and largest else 0) > 1e20
    else:
        assert np.isfinite(found).all()
        assert found.error >= 0


@pytest.mark.parametrize("shape", [(2, 5), (0, 5), (10,), (10, 0), (5, 2, 2)])
def test_what_is_no_table_is_refused(shape):
    with pytest.raises(InputError, match=r"^features: shape"):
        mmd(np.zeros((10, 5)), np.zeros(shape))


def test_different_columns_are_refused():
    with pytest.raises(InputError, match="5 and 4 columns"):
        mmd(np.zeros((10, 5)), np.zeros((10, 4)))
