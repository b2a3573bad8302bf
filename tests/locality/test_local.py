"""Mean confidences: of all, right and wrong answers, with intervals for new inputs."""

from __future__ import annotations

import json
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binomtest

from testifai.errors import InputError
from testifai.locality import Local, Sampled, confidences, explain, local
from testifai.locality.local import bounded_arms, class_arms, coull_arms, count_answers, together
from testifai.statistics.intervals import wilson

from .synthetic import Known, confusions, drawn_table

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
    runs = 100
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


def sure_table(seed: int, inputs: int = 80) -> Local:
    """Two classes at three severities; an input has a luck of its own that all its answers and confidences share."""
    generator = np.random.default_rng(seed)
    classes = np.repeat([0, 1], inputs)
    luck = generator.normal(size=(2 * inputs, 1, 1)) + 0.5 * generator.normal(size=(2 * inputs, 2, 3))
    right = luck > -0.7
    sure = (0.5 + 0.5 / (1 + np.exp(-luck))).astype(np.float32)
    predicted = np.where(right, classes[:, None, None], 1 - classes[:, None, None]).astype(np.int32)
    single = Sampled(np.arange(2 * inputs), classes, predicted, sure)
    counts = count_answers(predicted, classes, 2, 2)
    return Local.from_counts(["a", "b"], ["fog", "snow"], [[1, 2, 3]] * 2, counts, sampled=single)


def test_means_are_those_of_the_answers_one_by_one():
    table = sure_table(0)
    found = confidences(table)
    single = table.sampled
    right = single.predicted == single.classes[:, None, None]
    for kind, chosen in (("all", right | True), ("right", right), ("wrong", ~right)):
        for place, which in np.ndindex(2, 2):
            mine = chosen[single.classes == place, which]
            sure = single.confidence[single.classes == place, which]
            assert np.isclose(found.cells[kind].rate[place, which], sure[mine].mean(dtype=float))
            assert found.answers[kind][place, which] == mine.sum()
        assert np.isclose(found.by_property[kind].rate[1], single.confidence[:, 1][chosen[:, 1]].mean(dtype=float))


def test_intervals_hold_for_new_inputs():
    """The truth is the mean of very many inputs; severities of an input hang together."""
    truth = confidences(sure_table(1, 200_000))
    runs, held = 50, []
    for seed in range(runs):
        found = confidences(sure_table(100 + seed))
        for kind in ("all", "right", "wrong"):
            for one, wanted in (
                (found.cells[kind], truth.cells[kind]),
                (found.by_property[kind], truth.by_property[kind]),
            ):
                held.append(np.mean((one.low <= wanted.rate) & (wanted.rate <= one.high)))
    assert np.mean(held) > 0.95 - 3 * np.sqrt(0.05 * 0.95 / runs)


def test_a_class_without_wrong_answers_has_no_mean_of_them():
    table = sure_table(2)
    single = table.sampled
    right = np.where(single.classes[:, None, None] == 0, 0, single.predicted).astype(np.int32)
    counts = count_answers(right, single.classes, 2, 2)
    better = Local.from_counts(
        ["a", "b"], ["fog", "snow"], [[1, 2, 3]] * 2, counts,
        sampled=Sampled(single.ids, single.classes, right, single.confidence),
    )  # fmt: skip
    found = confidences(better)
    assert np.isnan(found.cells["wrong"].rate[0]).all()
    assert found.as_dict()["cells"]["wrong"]["rate"][0] == [None, None]
    assert not np.isnan(found.cells["wrong"].rate[1]).any()


def test_labels_and_counts_alone_tell_none():
    assert confidences(drawn_table(confusions(0), 10, 0)) is None
    model = Known(confusions(0))
    assert confidences(local(model, model.data(20), model.properties(), 10)) is None
    assert explain(drawn_table(confusions(0), 10, 0)).as_dict()["confidence"] is None


def test_a_measured_model_tells_them_and_they_are_written_and_read_back():
    model = Known(confusions(0), scores=True)
    table = local(model, model.data(40), model.properties(), 30)
    found = confidences(table)
    assert (found.cells["all"].low <= found.cells["all"].rate).all()
    np.testing.assert_allclose(table.confidence.mean(axis=2), found.cells["all"].rate, rtol=1e-6)
    again = Local.from_dict(table.as_dict())
    np.testing.assert_array_equal(confidences(again).cells["right"].rate, found.cells["right"].rate)
    part = table.part(np.arange(20))
    np.testing.assert_allclose(part.confidence[0], table.sampled.confidence[:20].mean(axis=0, dtype=float))
    assert any("mean confidence" in line for line in explain(table).lines())


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
