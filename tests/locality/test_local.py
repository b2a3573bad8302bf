from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binomtest

from testifai.errors import InputError
from testifai.locality import Local, Sampled

from .synthetic import confusions, drawn_table

TABLES = arrays(np.int64, (2, 3, 2, 3), elements=st.integers(1, 40))


def table(counts, **options) -> Local:
    counts = np.asarray(counts)
    return Local.from_counts(
        ["a", "b"], ["fog", "rain"], [[1, 2, 3], [1, 2, 3]], counts, outputs=["a", "b", "c"], **options
    )


@given(TABLES)
def test_every_cell_is_its_own_rate_with_wilsons_interval(counts):
    local = table(counts)
    for c, p, s in np.ndindex(2, 2, 3):
        row = counts[p, s, c]
        interval = binomtest(int(row[c]), int(row.sum())).proportion_ci(method="wilson")
        assert (local.passes[c, p, s], local.trials[c, p, s]) == (row[c], row.sum())
        assert local.rate[c, p, s] == pytest.approx(row[c] / row.sum())
        assert (local.low[c, p, s], local.high[c, p, s]) == pytest.approx((interval.low, interval.high), abs=1e-9)
        np.testing.assert_allclose(local.answers[c, p, s], row / row.sum())


@given(TABLES, st.floats(0.1, 10))
def test_means_are_the_papers(counts, weight):
    local = table(counts, weights=[1, weight])
    rate = np.array(
        [[[counts[p, s, c, c] / counts[p, s, c].sum() for s in range(3)] for p in range(2)] for c in range(2)]
    )
    share = np.array([1, weight]) / (1 + weight)
    np.testing.assert_allclose(local.by_class_and_property().rate, rate.mean(axis=2))
    np.testing.assert_allclose(local.by_property().rate, share @ rate.mean(axis=2))
    np.testing.assert_allclose(local.by_class().rate, rate.mean(axis=(1, 2)))
    assert local.overall().rate == pytest.approx(float(share @ rate.mean(axis=(1, 2))))
    for mean in (local.by_class_and_property(), local.by_property(), local.by_class(), local.overall()):
        assert np.all(mean.low <= mean.rate)
        assert np.all(mean.rate <= mean.high)
        assert np.all((mean.low >= 0) & (mean.high <= 1))


def test_a_property_with_fewer_severities_counts_as_much_as_another():
    counts = np.zeros((2, 2, 1, 1 + 1), int)
    counts[0, 0, 0], counts[0, 1, 0], counts[1, 0, 0] = (6, 4), (2, 8), (9, 1)
    local = Local.from_counts(["a"], ["fog", "rain"], [[1, 3], [2]], counts, outputs=["a", "b"])
    assert np.isnan(local.rate[0, 1, 1])
    assert np.isnan(local.low[0, 1, 1])
    assert local.trials[0, 1, 1] == 0
    np.testing.assert_allclose(local.by_property().rate, [0.4, 0.9])
    assert local.overall().rate == pytest.approx(0.65)


def test_a_class_without_trials_under_a_property_is_left_out_of_its_mean():
    counts = np.zeros((2, 1, 2, 2), int)
    counts[0, 0], counts[1, 0, 0] = [[8, 2], [4, 6]], [5, 5]
    local = Local.from_counts(["a", "b"], ["fog", "rain"], [[1], [1]], counts)
    assert np.isnan(local.by_class_and_property().rate[1, 1])
    np.testing.assert_allclose(local.by_property().rate, [0.7, 0.5])


@pytest.mark.parametrize("alike", [0.0, 0.5, 1.0])
def test_intervals_of_means_cover_whether_or_not_the_same_inputs_fail(alike):
    truth = confusions(3, classes=2, severities=4)
    rates = np.diagonal(truth, axis1=2, axis2=3)
    wanted = np.moveaxis(rates, 2, 0).mean(axis=2)
    runs = 300
    held, overall = np.zeros(wanted.shape), 0
    for seed in range(runs):
        local = drawn_table(truth, 60, seed, alike)
        mean, grand = local.by_class_and_property(), local.overall()
        held += (mean.low <= wanted) & (wanted <= mean.high)
        overall += grand.low <= wanted.mean() <= grand.high
    # Four cells, each a binomial share of the runs.
    assert held.min() / runs > 0.95 - 4 * np.sqrt(0.05 * 0.95 / runs)
    assert overall / runs > 0.95 - 4 * np.sqrt(0.05 * 0.95 / runs)


def test_rates_converge_as_trials_grow():
    truth = confusions(4)
    wanted = np.moveaxis(np.diagonal(truth, axis1=2, axis2=3), 2, 0)
    for trials in (100, 10_000):
        error = np.abs(drawn_table(truth, trials, seed=1).rate - wanted).max()
        assert error < 5 * 0.5 / np.sqrt(trials)


def test_a_table_is_read_back_as_it_was_written():
    local = drawn_table(confusions(5, outputs=4), 7, seed=0)
    again = Local.from_dict(json.loads(json.dumps(local.as_dict())))
    assert again.as_dict() == local.as_dict()
    np.testing.assert_array_equal(again.confusion, local.confusion)
    np.testing.assert_array_equal(again.sampled.predicted, local.sampled.predicted)
    assert again.confusion.dtype.kind == "i"


def test_a_part_counts_its_own_inputs():
    local = drawn_table(confusions(6), 10, seed=0)
    first, second = local.part(np.arange(12)), local.part(np.arange(12, 30))
    np.testing.assert_array_equal(first.confusion + second.confusion, local.confusion)


def test_classes_that_gave_less_than_asked_are_named():
    single = Sampled(np.arange(3), np.array([0, 0, 1]), np.zeros((3, 1, 1), np.int32))
    local = Local.from_counts(
        ["a", "b"], ["fog"], [[1]], [[[[2, 0], [1, 0]]]], available=[9, 1], per_class=2, sampled=single
    )
    assert local.short == {"b": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"confusion": np.ones((2, 3, 2, 2))}, "confusion: has shape"),
        ({"confusion": -np.ones((2, 3, 2, 3))}, "confusion: float64 numbers, some below 0"),
        ({"confusion": np.zeros((2, 3, 2, 3))}, "no counts at all"),
        ({"outputs": ["b", "a", "c"]}, "outputs"),
        ({"outputs": ["a", "b", "a"]}, "outputs"),
        ({"severities": [[1, 2, 3]]}, "severities"),
        ({"severities": [[1, 2, 3], [1]]}, "severities that the property does not have"),
        ({"weights": [1, -1]}, "weights"),
        ({"weights": [1, 1, 1]}, "weights: has shape"),
        ({"confidence": np.ones(3)}, "confidence: has shape"),
    ],
)
def test_a_wrong_table_is_refused_in_one_line(change, message):
    options = {
        "classes": ["a", "b"],
        "properties": ["fog", "rain"],
        "severities": [[1, 2, 3], [1, 2, 3]],
        "confusion": np.ones((2, 3, 2, 3)),
        "outputs": ["a", "b", "c"],
        **change,
    }
    with pytest.raises(InputError, match=message) as caught:
        Local.from_counts(**options)
    assert "\n" not in str(caught.value)


def test_what_is_not_a_table_is_refused():
    with pytest.raises(InputError, match="as_dict"):
        Local.from_dict({"classes": ["a"]})
    with pytest.raises(InputError, match="part"):
        Local.from_counts(["a"], ["fog"], [[1]], [[[[3, 1]]]], outputs=["a", "b"]).part([0])
