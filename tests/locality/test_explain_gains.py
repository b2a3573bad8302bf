"""Gains: equal to fixing the table and asking again, shares equal to enumerating all failures, intervals that hold."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.locality import Local, adder, compose
from testifai.locality.compose import Setting
from testifai.locality.explain import Composition, cell_weights, explain, local_gain
from testifai.locality.trends import wrong_answers

from .synthetic import confusions, drawn_table, expected_table


def some_mask(local, seed, share=0.3):
    chosen = np.random.default_rng(seed).random((*local.rate.shape, len(local.outputs))) < share
    return chosen & wrong_answers(local)


def fixed(local, mask):
    """The table with these answers made right."""
    moved = np.where(np.moveaxis(mask, 0, 2), local.confusion, 0.0)
    table = local.confusion - moved
    places = np.arange(len(local.classes))
    table[..., places, places] += moved.sum(axis=-1)
    return replace(local, confusion=table)


@pytest.mark.parametrize("seed", range(4))
def test_the_local_gain_is_that_of_the_fixed_table(seed):
    weights = np.random.default_rng(seed).random(3)
    local = replace(expected_table(confusions(seed, outputs=4), 100), weights=weights / weights.sum())
    mask = some_mask(local, seed)
    wanted = fixed(local, mask).overall().rate - local.overall().rate
    assert local_gain(local, mask).rate == pytest.approx(wanted, abs=1e-12)
    assert (cell_weights(local) * local.rate).sum() == pytest.approx(local.overall().rate, abs=1e-12)


def test_cells_that_were_not_measured_weigh_nothing():
    table = np.zeros((2, 2, 3, 3))
    table[0] = 10 * np.eye(3) + 1
    table[1, 0, :2] = 5 * np.eye(3)[:2] + 1
    local = Local.from_counts("abc", ["fog", "snow"], [[1, 2], [1]], table)
    weights = cell_weights(local)
    assert weights.sum() == pytest.approx(1)
    assert (weights * np.nan_to_num(local.rate)).sum() == pytest.approx(local.overall().rate, abs=1e-12)


def systems():
    return [
        ({}, {}),
        ({"arity": 3}, {}),
        ({"combine": max}, {"conditions": ["p0", ("p0", "p1")]}),
        ({"combine": lambda a, b: a - b}, {"tuples": [("0", "2"), ("1", "1")]}),
    ]


@pytest.mark.parametrize(("system", "options"), systems())
def test_the_systems_gain_is_that_of_composing_the_fixed_table(system, options):
    local = expected_table(confusions(3), 100)
    made = compose(local, **system, **options)
    composition = Composition.of(made.setting)
    assert composition.overall(composition.rows) == pytest.approx((made.overall.rate, 1), abs=1e-12)
    for seed in range(3):
        mask = some_mask(local, seed)
        wanted = compose(fixed(local, mask), **system, **options).overall.rate - made.overall.rate
        assert composition.gain(mask).rate == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("arity", [2, 3])
def test_shares_of_failures_are_those_of_all_worlds(arity):
    local = expected_table(confusions(5, severities=1), 100)
    composition = Composition.of(compose(local, arity=arity).setting)
    mask = some_mask(local, 1)
    tuples = list(itertools.combinations_with_replacement(range(3), arity))
    wrong = blamed = 0.0
    single = np.zeros((*local.rate.shape, 3))
    for classes, which, answers in itertools.product(tuples, range(2), itertools.product(range(3), repeat=arity)):
        if adder(*answers) == adder(*classes):
            continue
        chance = np.prod([local.answers[c, which, 0, a] for c, a in zip(classes, answers, strict=True)])
        wrong += chance
        blamed += chance * any(mask[c, which, 0, a] for c, a in zip(classes, answers, strict=True))
        for c, a in zip(classes, answers, strict=True):
            single[c, which, 0, a] += chance
    assert composition.share(mask) == pytest.approx(blamed / wrong, abs=1e-12)
    involved = composition.involved().sum(axis=0).reshape(single.shape)
    np.testing.assert_allclose(involved, single / (2 * len(tuples)), atol=1e-12)


def test_intervals_of_what_was_picked_hold_for_95_of_100_on_average():
    base, own = np.array([0.03, 0.08, 0.15])[:, None, None], np.eye(4)
    truth = np.stack([own * (1 - base) + (1 - own) * base / 3] * 2)
    truth[0, 1:, 1, 2] += 0.07
    truth[0, 1:, 1, 1] -= 0.07  # so weak that only the lucky half of the samples shows it
    exact = expected_table(truth)
    held = []
    for seed in range(60):
        found = explain(drawn_table(truth, 100, seed, alike=0.5))
        for trend in found.trends:
            setting = found.composed.setting
            true_setting = Setting(exact, setting.system, setting.tuples, setting.conditions)
            gains = (local_gain(exact, trend.mask), Composition.of(true_setting).gain(trend.mask))
            for told, true in zip((trend.local_gain, trend.composed_gain), gains, strict=True):
                held.append(told.low - 1e-12 <= true.rate <= told.high + 1e-12)
    assert 20 <= len(held) // 2 <= 55
    assert np.mean(held) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / len(held))


def test_a_system_needs_every_class_everywhere():
    table = np.zeros((1, 2, 2, 2), int)
    table[0, 0] = [[9, 1], [2, 8]]
    table[0, 1, 0] = [5, 5]
    local = Local.from_counts(["0", "1"], ["fog"], [[1, 2]], table)
    with pytest.raises(InputError, match="class '1' was never tried under fog at severity 2"):
        explain(local)
    assert explain(local, arity=1).composed is None
