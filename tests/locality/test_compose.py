from __future__ import annotations

import itertools
import json
import time

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.locality import Local, compose

from .synthetic import confusions, drawn_table, expected_table


def enumerated(rows, combine, expected):
    """Brute force: the probability of every combination of answers, added where the system is right."""
    total = 0.0
    for answers in itertools.product(*(range(len(row)) for row in rows)):
        if combine(*answers) == expected:
            total += float(np.prod([row[answer] for row, answer in zip(rows, answers, strict=True)]))
    return total


def add(*labels):
    return sum(labels)


@pytest.mark.parametrize("arity", [1, 2, 3])
@pytest.mark.parametrize("combine", [add, lambda *labels: max(labels), lambda *labels: sum(labels) % 2])
def test_given_the_true_tables_every_rate_is_that_of_enumeration(arity, combine):
    truth = confusions(arity, classes=3, outputs=4)
    found = compose(expected_table(truth), combine, arity)
    assert found.tuples == tuple(itertools.combinations_with_replacement("012", arity))
    for place, names in enumerate(found.tuples):
        classes = [int(name) for name in names]
        for which, level in np.ndindex(truth.shape[:2]):
            wanted = enumerated([truth[which, level, one] for one in classes], combine, combine(*classes))
            assert found.rate[place, which, level] == pytest.approx(wanted, abs=1e-9)
    np.testing.assert_allclose(found.mean.rate, found.rate.mean(axis=2), atol=1e-12)
    np.testing.assert_allclose(found.by_condition.rate, found.rate.mean(axis=(0, 2)), atol=1e-12)
    assert found.overall.rate == pytest.approx(found.rate.mean(), abs=1e-12)


def test_errors_that_cancel_are_counted():
    truth = confusions(7)
    found = compose(expected_table(truth))
    both_right = np.prod([truth[0, 0, one, one] for one in (0, 2)])
    swapped = truth[0, 0, 0, 2] * truth[0, 0, 2, 0]
    meet = truth[0, 0, 0, 1] * truth[0, 0, 2, 1]
    place = found.tuples.index(("0", "2"))
    assert found.rate[place, 0, 0] == pytest.approx(both_right + swapped + meet, abs=1e-12)


def test_parts_under_different_properties_and_a_system_that_minds_the_order():
    truth = confusions(8, properties=3)
    table = expected_table(truth)
    mixed = compose(table, conditions=[("p0", "p2"), "p1"])
    assert mixed.conditions == ("p0+p2", "p1")
    assert len(mixed.tuples) == 9
    for place, names in enumerate(mixed.tuples):
        a, b = (int(name) for name in names)
        wanted = enumerated([truth[0, 1, a], truth[2, 1, b]], add, a + b)
        assert mixed.rate[place, 0, 1] == pytest.approx(wanted, abs=1e-9)
    ordered = compose(table, lambda a, b: a - b)
    assert len(ordered.tuples) == 9
    wanted = enumerated([truth[1, 0, 2], truth[1, 0, 0]], lambda a, b: a - b, 2)
    assert ordered.rate[ordered.tuples.index(("2", "0")), 1, 0] == pytest.approx(wanted, abs=1e-9)


def test_what_is_right_may_be_told():
    truth = confusions(9)
    told = compose(expected_table(truth), expected=lambda a, b: 0, tuples=[("1", "2")])
    assert told.rate[0, 0, 0] == pytest.approx(truth[0, 0, 1, 0] * truth[0, 0, 2, 0], abs=1e-12)


def test_properties_with_other_severities_are_joined_where_they_share_some():
    counts = np.zeros((2, 2, 2, 2))
    counts[0, 0], counts[0, 1], counts[1, 0] = [[9, 1], [2, 8]], [[7, 3], [4, 6]], [[5, 5], [1, 9]]
    table = Local.from_counts(["0", "1"], ["fog", "rain"], [[1, 3], [3]], counts)
    alone = compose(table)
    assert alone.severities == ((1, 3), (3,))
    assert np.isnan(alone.rate[:, 1, 1]).all()
    np.testing.assert_allclose(alone.mean.rate[:, 1], alone.rate[:, 1, 0])
    joined = compose(table, conditions=[("fog", "rain")], tuples=[("0", "1")])
    assert joined.severities == ((3,),)
    assert joined.rate[0, 0, 0] == pytest.approx(0.7 * 0.9 + 0.3 * 0.1)


def test_the_papers_worked_example():
    """Section VI-G: 5 + 0 under noise and rotation; LR 85, 78, 90, 88 %; a 5 under noise is read as 6."""
    rows = {("5", "noise"): (85, {"6": 15}), ("5", "rotation"): (78, {"6": 12, "0": 10}),
            ("0", "noise"): (90, {"6": 10}), ("0", "rotation"): (88, {"5": 5, "6": 7})}  # fmt: skip
    outputs = ["5", "0", "6"]
    counts = np.zeros((2, 1, 2, 3), int)
    for (name, which), (right, wrong) in rows.items():
        row = counts[["noise", "rotation"].index(which), 0, outputs.index(name)]
        row[outputs.index(name)] = right
        for other, count in wrong.items():
            row[outputs.index(other)] = count
    table = Local.from_counts(["5", "0"], ["noise", "rotation"], [[1], [1]], counts, outputs=outputs)
    np.testing.assert_allclose(table.by_class_and_property().rate, [[0.85, 0.78], [0.90, 0.88]])
    np.testing.assert_allclose(table.by_property().rate, [0.875, 0.83])
    found = compose(table, tuples=[("5", "0")])
    # Under rotation a 5 read as 0 and a 0 read as 5 add up to 5 as well.
    np.testing.assert_allclose(found.mean.rate[0], [0.85 * 0.90, 0.78 * 0.88 + 0.10 * 0.05])
    # The wrong sum 6 comes from the 5 that is read as 6.
    six = compose(table, expected=lambda a, b: 6, tuples=[("5", "0")])
    np.testing.assert_allclose(six.mean.rate[0], [0.15 * 0.90, 0.12 * 0.88 + 0.10 * 0.07])
    assert table.confusion[0, 0, 0].argsort()[-2] == outputs.index("6")


@pytest.mark.parametrize(
    ("arity", "trials", "alike", "singles"),
    [(2, 200, 0.0, True), (2, 40, 1.0, True), (3, 100, 0.5, True), (2, 100, 1.0, False)],
)
def test_intervals_cover_the_true_rates(arity, trials, alike, singles):
    runs, cells, means, totals = 15, [], [], []
    for seed in range(runs):
        truth = confusions(seed, classes=3)
        wanted = compose(expected_table(truth), arity=arity)
        found = compose(drawn_table(truth, trials, seed, alike, singles), arity=arity)
        cells.append((found.low <= wanted.rate) & (wanted.rate <= found.high))
        means.append((found.mean.low <= wanted.mean.rate) & (wanted.mean.rate <= found.mean.high))
        totals.append(found.overall.low <= wanted.overall.rate <= found.overall.high)
    # Rates of one table share its rows: at least the runs are independent.
    for held in (cells, means, totals):
        assert np.mean(held) > 0.95 - 3 * np.sqrt(0.05 * 0.95 / runs)
    if singles:
        assert np.mean(cells) < 0.995  # and are not so wide as to say nothing


@pytest.mark.parametrize(("right", "trials"), [(0.995, 20), (0.7, 20), (0.03, 50)])
def test_intervals_cover_where_hardly_anything_fails_or_passes(right, trials):
    rows = np.full((5, 5), (1 - right) / 4) + np.eye(5) * (right - (1 - right) / 4)
    truth = np.broadcast_to(rows, (1, 1, 5, 5))
    wanted = compose(expected_table(truth)).rate
    held = []
    for seed in range(15):
        found = compose(drawn_table(truth, trials, seed))
        held.append(np.mean((found.low - 1e-12 <= wanted) & (wanted <= found.high + 1e-12)))
    assert np.mean(held) > 0.95 - 3 * np.std(held) / np.sqrt(len(held))


def test_rates_converge_and_intervals_shrink_as_trials_grow():
    truth = confusions(11)
    wanted = compose(expected_table(truth), arity=3)
    for trials, most in ((100, 0.25), (10_000, 0.025)):
        found = compose(drawn_table(truth, trials, seed=2), arity=3)
        assert np.abs(found.rate - wanted.rate).max() < most
        assert (found.high - found.low).max() < 2 * most


def test_a_higher_confidence_is_a_wider_interval_around_the_same_rate():
    found = compose(drawn_table(confusions(12), 50, seed=0))
    wide = found.at(0.999)
    np.testing.assert_array_equal(wide.rate, found.rate)
    assert (wide.low <= found.low).all()
    assert (wide.mean.high >= found.mean.high).all()


def test_few_trials_without_a_pass_do_not_make_a_rate_of_0_certain():
    table = Local.from_counts(["0", "1"], ["fog"], [[1]], [[[[0, 10], [10, 0]]]])
    found = compose(table, lambda a, b: (a, b))
    assert found.rate[0, 0, 0] == 0
    assert found.high[0, 0, 0] > 0.03


def test_55_pairs_under_3_properties_take_less_than_a_second():
    table = drawn_table(confusions(13, classes=10, properties=3, severities=5), 200, seed=0)
    seconds = []
    for _ in range(3):
        begin = time.process_time()
        found = compose(table)
        seconds.append(time.process_time() - begin)
    assert (len(found.tuples), found.rate.shape) == (55, (55, 3, 5))
    assert min(seconds) < 1


def test_a_prediction_is_plain_data():
    counts = np.zeros((2, 2, 2, 2), int)
    counts[0], counts[1, 0] = 5, 5
    found = compose(Local.from_counts(["0", "1"], ["fog", "rain"], [[1, 2], [1]], counts)).as_dict()
    assert json.loads(json.dumps(found)) == found
    assert found["rate"][0][1][1] is None
    assert found["overall"]["rate"] == pytest.approx(np.mean(found["by_condition"]["rate"]))


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        (["p9"], "conditions: 'p9' is not a property of the table; "),
        ([("p0", "p1", "p0")], "names 3 properties; 2 are needed"),
        ([], "conditions: is empty"),
    ],
)
def test_conditions_that_do_not_fit_are_refused(conditions, message):
    with pytest.raises(InputError, match=message):
        compose(expected_table(confusions(0)), conditions=conditions)
