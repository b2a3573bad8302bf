"""Trends: exact p-values, what is merged with what, and how often chance alone is taken for a trend."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binomtest, fisher_exact

from testifai.locality import Local
from testifai.locality.explain import class_tests, confusion_tests, search, wrong_answers

from .synthetic import drawn_table, expected_table


def scattered(rates, classes=4, outputs=4):
    """Errors without any trend: all classes fail alike, and are read as any other answer alike."""
    rate = np.asarray(rates, float)[..., None, None]
    own = np.eye(classes, outputs)
    return own * (1 - rate) + (1 - own) * rate / (outputs - 1)


def with_confusion(truth, which, first, place, answer, more):
    changed = truth.copy()
    changed[which, first:, place, answer] += more
    changed[which, first:, place, place] -= more
    return changed


def found(local, **options):
    return [(one.kind, one.classes, one.which, one.levels, one.answer) for one in search(local, **options).patterns]


def test_p_values_are_those_of_the_binomial_and_of_fishers_exact_test():
    local = drawn_table(scattered([[0.2, 0.5]], classes=3, outputs=5), 30, seed=1)
    confused = confusion_tests(local)
    failing = class_tests(local, (local.trials - local.passes).astype(float))
    for place, level, answer in itertools.product(range(3), range(2), range(5)):
        row = local.confusion[0, level, place]
        if place == answer:
            assert np.isnan(confused[place, 0, level, answer])
            continue
        failures = int(row.sum() - row[place])
        exact = binomtest(int(row[answer]), failures, 1 / 4, "greater").pvalue if failures else 1.0
        assert confused[place, 0, level, answer] == pytest.approx(exact, abs=1e-12)
    for place, level in itertools.product(range(3), range(2)):
        wrong = local.trials[:, 0, level] - local.passes[:, 0, level]
        table = [
            [wrong[place], local.passes[place, 0, level]],
            [wrong.sum() - wrong[place], local.passes[:, 0, level].sum() - local.passes[place, 0, level]],
        ]
        assert failing[place, 0, level] == pytest.approx(fisher_exact(table, "greater").pvalue, abs=1e-9)


@pytest.mark.parametrize(
    ("rates", "classes", "outputs", "alike"),
    [
        ([[0.02, 0.1, 0.3], [0.05, 0.2, 0.5]], 4, 6, 0.0),
        ([[0.02, 0.1, 0.3], [0.05, 0.2, 0.5]], 4, 6, 0.9),  # the same inputs fail at all severities
        ([[0.1, 0.4]], 2, 2, 0.5),
        ([[0.3], [0.9]], 3, 8, 0.0),
    ],
)
def test_without_a_trend_one_is_found_in_at_most_five_of_a_hundred_models(rates, classes, outputs, alike):
    truth, models = scattered(rates, classes, outputs), 150
    false = sum(bool(search(drawn_table(truth, 60, seed, alike)).patterns) for seed in range(models))
    assert false / models <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / models)


def test_a_trend_is_found_from_the_severity_on_where_it_begins():
    truth = with_confusion(scattered([[0.05] * 3, [0.1] * 3], 4, 5), 1, 1, 2, 4, 0.3)
    exact = [("confusion", (2,), 1, (1, 2), 4)]
    hits = sum(found(drawn_table(truth, 150, seed, 0.5)) == exact for seed in range(30))
    assert hits >= 27


def test_with_more_trials_weaker_trends_are_found():
    truth = with_confusion(scattered([[0.06]], 4, 5), 0, 0, 1, 3, 0.05)
    share = [
        np.mean([bool(search(drawn_table(truth, trials, seed)).patterns) for seed in range(30)])
        for trials in (50, 200, 800)
    ]
    assert share[0] < share[1] < share[2]
    assert share[2] > 0.9


def test_a_class_that_fails_more_but_is_read_as_anything_is_a_trend_of_its_own():
    truth = scattered([[0.1, 0.1]], 4, 8)
    truth[0, 1, 3] = scattered([[0.5]], 4, 8)[0, 0, 3]
    assert found(expected_table(truth, 200)) == [("class", (3,), 0, (1,), None)]


def test_what_a_named_confusion_explains_is_not_told_again_of_the_class():
    truth = with_confusion(scattered([[0.1]], 4, 8), 0, 0, 3, 5, 0.4)
    assert found(expected_table(truth, 200)) == [("confusion", (3,), 0, (0,), 5)]


def test_both_are_told_where_both_are_so_and_share_no_failure():
    truth = scattered([[0.1]], 4, 8)
    truth[0, 0, 3] = scattered([[0.6]], 4, 8)[0, 0, 3]
    truth = with_confusion(truth, 0, 0, 3, 5, 0.3)
    local = expected_table(truth, 200)
    assert found(local) == [("confusion", (3,), 0, (0,), 5), ("class", (3,), 0, (0,), None)]
    masks = [one.mask for one in search(local).patterns]
    assert not (masks[0] & masks[1]).any()
    assert not (np.any(masks, axis=0) & ~wrong_answers(local)).any()


def test_most_classes_read_as_the_same_one_are_a_sink():
    truth = scattered([[0.1], [0.1]], 6, 6)
    for place in (0, 1, 2, 4):
        truth = with_confusion(truth, 1, 0, place, 3, 0.3)
    local = expected_table(truth, 200)
    assert found(local) == [("sink", (0, 1, 2, 4), 1, (0,), 3)]
    two = with_confusion(with_confusion(scattered([[0.1]], 6, 6), 0, 0, 0, 3, 0.3), 0, 0, 1, 3, 0.3)
    assert [one[:2] for one in found(expected_table(two, 200))] == [("confusion", (0,)), ("confusion", (1,))]


def test_two_answers_or_one_class_leave_less_to_ask():
    two = Local.from_counts(["a", "b"], ["fog"], [[1]], [[[[50, 50], [1, 99]]]])
    assert np.isnan(confusion_tests(two)).all()
    assert found(two) == [("class", (0,), 0, (0,), None)]
    alone = Local.from_counts(["a"], ["fog"], [[1]], [[[[50, 48, 2]]]], outputs=["a", "b", "c"])
    assert found(alone) == [("confusion", (0,), 0, (0,), 1)]
    assert search(alone).tests == 2


def test_no_failure_is_no_trend():
    local = Local.from_counts("abc", ["fog"], [[1]], [[np.eye(3, dtype=int) * 50]])
    assert found(local) == []


def test_cells_that_were_not_measured_are_left_out():
    table = np.zeros((2, 2, 3, 3), int)
    table[0] = [[[90, 5, 5], [5, 50, 45], [5, 5, 90]]]
    local = Local.from_counts("abc", ["fog", "snow"], [[1, 2], [1, 2]], table)
    assert found(local) == [("confusion", (1,), 0, (0, 1), 2)]
    assert search(local).tests == 6 * 2 + 6
