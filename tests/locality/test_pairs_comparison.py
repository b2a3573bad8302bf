from __future__ import annotations

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.locality import agreement, compose, paired

from .synthetic import confusions, drawn_table


def test_independent_parts_agree_but_for_chance():
    runs, inside, alarms = 60, [], 0
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
