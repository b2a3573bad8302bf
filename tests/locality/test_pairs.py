"""Tests of locality.pairs."""

from __future__ import annotations

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.locality import Local, agreement, compose, composed, paired
from testifai.statistics.intervals import wilson

from .synthetic import Known, confusions, drawn_table, expected_table


def add(*labels):
    return sum(labels)


def test_given_combinations_are_counted_one_by_one():
    table = drawn_table(confusions(0), 30, seed=0)
    generator = np.random.default_rng(1)
    pairs = generator.integers(0, 90, (400, 2))
    found = paired(table, pairs=pairs)
    single = table.sampled
    for place, names in enumerate(found.tuples):
        wanted = tuple(int(name) for name in names)
        mine = [pair for pair in pairs if tuple(sorted(single.classes[pair])) == wanted]
        assert found.trials[place] == len(mine)
        for which, level in np.ndindex(2, 2):
            right = [single.predicted[pair, which, level].sum() == sum(wanted) for pair in mine]
            assert found.passes[place, which, level] == sum(right)
            assert found.rate[place, which, level] == pytest.approx(np.mean(right))
            low, high = map(float, wilson(sum(right), len(mine)))
            assert (found.low[place, which, level], found.high[place, which, level]) == pytest.approx((low, high))
    np.testing.assert_allclose(found.mean.rate, found.rate.mean(axis=2))
    assert found.trials.sum() == 400


def test_a_property_for_each_part_and_an_order_that_counts():
    table = drawn_table(confusions(1), 30, seed=0)
    pairs = np.array([[0, 40], [40, 0], [10, 70]])
    found = paired(table, lambda a, b: a - b, pairs=pairs, conditions=[("p1", "p0")])
    assert found.tuples == (("0", "1"), ("0", "2"), ("1", "0"))
    answers = table.sampled.predicted
    expected = [answers[0, 1, 1] - answers[40, 0, 1] == -1, answers[10, 1, 1] - answers[70, 0, 1] == -2]
    assert found.passes[:2, 0, 1].tolist() == expected


def test_drawn_combinations_use_no_input_twice_and_as_many_as_there_are():
    table = drawn_table(confusions(2), 31, seed=0)
    found = paired(table, arity=3)
    assert found.trials[found.tuples.index(("0", "0", "0"))] == 10
    assert found.trials[found.tuples.index(("0", "0", "1"))] == 15
    assert found.trials[found.tuples.index(("0", "1", "2"))] == 31
    assert paired(table, pairs=7).trials.tolist() == [7] * 6


def test_measured_rates_are_those_of_the_table_on_average():
    truth = confusions(3)
    wanted = compose(expected_table(truth)).mean.rate
    runs = 30
    means, held = [], []
    for seed in range(runs):
        found = paired(drawn_table(truth, 60, seed, alike=0.5), seed=seed)
        means.append(found.mean.rate)
        held.append((found.mean.low <= wanted) & (wanted <= found.mean.high))
    spread = np.std(means, axis=0) / np.sqrt(runs)
    assert (np.abs(np.mean(means, axis=0) - wanted) < 4.5 * spread).all()
    assert np.mean(held) > 0.95 - 3 * np.sqrt(0.05 * 0.95 / runs)


def test_real_pairs_are_run_through_the_model_on_fresh_inputs(tmp_path):
    truth = confusions(4)
    model = Known(truth)
    data = model.data(1500, wrong=0.2)
    found = composed(model, data, model.properties(), pairs=500, exclude=np.arange(0, 4500, 2), store=tmp_path / "r.db")
    wanted = compose(expected_table(truth)).mean.rate
    assert found.trials.max() == 500
    assert np.abs(found.mean.rate - wanted).max() < 4.5 * 0.5 / np.sqrt(found.trials.min())
    again = composed(model, data, model.properties(), pairs=500, exclude=np.arange(0, 4500, 2), batch_size=100)
    np.testing.assert_array_equal(found.passes, again.passes)


def test_given_pairs_with_an_input_the_model_gets_wrong_are_dropped():
    model = Known(confusions(5))
    inputs, labels = model.data(20)
    inputs[0, 0] += 0.5
    pairs = [(0, 21), (1, 22), (2, 3)]
    found = composed(model, (inputs, labels), model.properties(), pairs=pairs)
    assert found.tuples == (("0", "0"), ("0", "1"))
    assert found.trials.tolist() == [1, 1]
    assert found.dropped == 1
    assert composed(model, (inputs, labels), model.properties(), pairs=pairs, among="all").dropped == 0


def test_tuples_keep_the_order_they_were_asked_in():
    table = drawn_table(confusions(6), 30, seed=0)
    given = paired(table, pairs=[(0, 40), (45, 1)], tuples=[("1", "0")])
    assert given.tuples == (("1", "0"),)
    assert given.trials.tolist() == [2]
    assert compose(table, tuples=[("1", "0")]).tuples == given.tuples


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pairs": 0}, "pairs: 0 is not accepted"),
        ({"pairs": True}, "pairs: True is not accepted"),
        ({"pairs": "many"}, "pairs: 'many' is not accepted"),
        ({"pairs": [(1, 2, 3)]}, "rows of 2 input numbers"),
        ({"pairs": [(1, 2), (3,)]}, "rows of 2 input numbers"),
        ({"pairs": [(1, 999)]}, "inputs: input numbers from 0 to 59"),
        ({"arity": 0}, "arity"),
        ({"combine": lambda a, b: [a]}, "combine: returned list"),
        ({"combine": lambda a, b: 1 / 0}, "combine: raised ZeroDivisionError"),
        ({"conditions": ["fog"]}, "conditions: 'fog'"),
        ({"tuples": [("0", "9")]}, "tuples"),
    ],
)
def test_mistakes_are_one_line_before_the_model_runs(options, message):
    model = Known(confusions(7))

    def never(batch):
        raise AssertionError("the model ran")

    with pytest.raises(InputError, match=message) as caught:
        composed(never, model.data(20), model.properties(), **options)
    assert "\n" not in str(caught.value)


def test_counts_alone_cannot_be_paired():
    with pytest.raises(InputError, match="counts alone"):
        paired(expected_table(confusions(8)))


def test_parts_may_each_have_a_severity_of_their_own():
    truth = confusions(5)
    table = drawn_table(truth, 300, seed=0)
    found = paired(table, share="context")
    wanted = compose(expected_table(truth), share="context")
    assert found.severities == wanted.severities == (((1, 1), (1, 2), (2, 1), (2, 2)),) * 2
    np.testing.assert_allclose(found.mean.rate, found.rate.mean(axis=2))
    assert agreement(compose(table, share="context"), found).disagrees.sum() == 0
    with pytest.raises(InputError, match="the same conditions and severities"):
        agreement(compose(table), found)


def test_combinations_of_severities_that_are_too_many_are_refused():
    table = Local.from_counts(["0", "1"], ["p"], [range(1, 31)], np.ones((1, 30, 2, 2)))
    with pytest.raises(InputError, match="share: 'context' makes a table of 48,600,000 numbers"):
        compose(table, arity=4, share="context")


def test_means_over_tuples_have_intervals_that_hold_although_tuples_share_inputs():
    """Every input is in as many pairs as there are classes: pairs counted as independent would promise too much."""
    truth = confusions(8, classes=4)
    wanted = compose(expected_table(truth))
    runs = 60
    conditions, overall, naive = [], [], []
    for seed in range(runs):
        found = paired(drawn_table(truth, 60, seed, alike=0.7), seed=seed)
        by, every = found.by_condition, found.overall
        conditions.append((by.low <= wanted.by_condition.rate) & (wanted.by_condition.rate <= by.high))
        overall.append(every.low <= wanted.overall.rate <= every.high)
        low, high = wilson(every.rate * found.trials.sum(), found.trials.sum())
        naive.append(low <= wanted.overall.rate <= high)
    least = 0.95 - 3 * np.sqrt(0.05 * 0.95 / runs)
    assert np.mean(conditions) > least
    assert np.mean(overall) > least
    assert np.mean(naive) < least


def test_independent_parts_agree_but_for_chance():
    runs, inside, alarms = 25, [], 0
    for seed in range(runs):
        truth = confusions(seed, classes=4, severities=3)
        predicted = compose(drawn_table(truth, 100, seed, alike=0.5))
        found = agreement(predicted, paired(drawn_table(truth, 150, 1000 + seed, alike=0.5), seed=seed))
        inside.append(found.inside.mean())
        alarms += bool(found.disagrees.any())
    assert np.mean(inside) > 0.95 - 3 * np.std(inside) / np.sqrt(runs)
    # 20 differences at a time, all of them held together with 95 %.
    assert alarms / runs < 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)


@pytest.mark.parametrize(("together", "side"), [(True, "higher"), (False, "lower")])
def test_parts_that_fail_together_or_never_do_are_found_out(together, side):
    truth = np.broadcast_to([[0.7, 0.3], [0.3, 0.7]], (1, 2, 2, 2))
    table, fresh = (drawn_table(truth, 400, seed, alike=1.0) for seed in (0, 1))
    answers = fresh.sampled.predicted[:, 0, 0]
    zeros, ones = np.arange(400), np.arange(400, 800)
    wrong_zeros, wrong_ones = answers[zeros] != 0, answers[ones] != 1
    # A 0 read as 1 and a 1 read as 0 cancel: if failing inputs meet, the sum is always right.
    first = zeros[np.argsort(wrong_zeros, kind="stable")]
    second = ones[np.argsort(wrong_ones, kind="stable")]
    pairs = np.stack([first, second if together else second[::-1]], axis=1)
    found = agreement(compose(table), paired(fresh, pairs=pairs))
    assert found.disagrees.all()
    assert f"{side} than parts that fail independently" in found.statements()[0]
    assert "0 and 1 under p0: measured" in found.statements()[0]


def test_agreement_is_said_in_one_line():
    truth = confusions(3)
    found = agreement(compose(drawn_table(truth, 300, 0)), paired(drawn_table(truth, 300, 1)))
    assert found.statements() == [
        "prediction and measurement agree in all 12 cases; no dependence between the parts is shown"
    ]
    assert found.mean_difference == pytest.approx((found.measured.rate - found.predicted.rate).mean())
    assert ((found.low <= found.difference) & (found.difference <= found.high)).all()


def test_only_the_same_things_are_compared():
    table = drawn_table(confusions(4), 40, 0)
    with pytest.raises(InputError, match="conditions: predicted p0, measured p1"):
        agreement(compose(table, conditions=["p0"]), paired(table, conditions=["p1"]))
    with pytest.raises(InputError, match="tuples: 0 and 0 was measured but not predicted"):
        agreement(compose(table, tuples=[("0", "1")]), paired(table))
