"""`sweep`: comparators, thresholds, whole levels, and what happens when something is wrong."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.sweeps import SweepError, sweep

from .curves import SYNTHETIC, truth

FALLING = SYNTHETIC["straight"]  # crosses 0.8 at 0.4


def test_uniform_is_the_share_of_equally_spaced_levels() -> None:
    found = sweep(FALLING, 0, 1, points=11, method="uniform")
    assert found.levels.tolist() == pytest.approx([k / 10 for k in range(11)])
    assert found.robustness == 5 / 11
    assert math.isnan(found.bound)


def test_quad_takes_21_levels_and_42_per_halving() -> None:
    flat = sweep(SYNTHETIC["flat above"], 0, 1, method="quad")
    assert (flat.evaluations, flat.robustness, flat.timeout) == (21, 1.0, False)
    found = sweep(FALLING, 0, 2, method="quad")
    assert found.robustness == pytest.approx(0.2, abs=0.001)
    assert (found.evaluations - 21) % 42 == 0
    assert found.evaluations <= 1024


def test_quad_that_does_not_converge_says_so_and_keeps_to_its_levels() -> None:
    calls = []
    found = sweep(lambda level: calls.append(level) or FALLING(level), 0, 1, points=100, method="quad")
    assert found.timeout
    assert len(calls) <= 100


def test_random_is_unbiased_with_the_spread_of_a_binomial() -> None:
    found = sweep(FALLING, 0, 1, points=30, method="random", repetitions=400, seed=3)
    spread = math.sqrt(0.4 * 0.6 / 30)
    assert abs(found.robustness - 0.4) < 4 * spread / math.sqrt(400)
    assert abs(found.spread - spread) < 4 * spread / math.sqrt(2 * 399)
    again = sweep(FALLING, 0, 1, points=30, method="random", repetitions=400, seed=3)
    assert again.robustness == found.robustness
    assert sweep(FALLING, 0, 1, points=30, method="random", seed=4).levels.tolist() != again.levels[:30].tolist()


@pytest.mark.parametrize("curvature", [128, "auto"])
def test_thresholds_share_evaluations(curvature: Any) -> None:
    curve = SYNTHETIC["falling wave"]
    alone = [sweep(curve, 0, 1, threshold, curvature) for threshold in (0.7, 0.8, 0.9)]
    calls = []
    together = sweep(lambda level: calls.append(level) or curve(level), 0, 1, [0.7, 0.8, 0.9], curvature)
    assert [found.threshold for found in together] == [0.7, 0.8, 0.9]
    assert len(calls) == len(set(calls)) == together[0].evaluations < sum(found.evaluations for found in alone)
    for found in together:
        assert abs(found.robustness - truth(curve, found.threshold)) <= found.bound + 2e-5


def test_crossings_are_where_the_curve_crosses() -> None:
    found = sweep(SYNTHETIC["wave 2"], 0, 1)
    expected = [(math.asin(-0.5) + math.tau) / math.tau / 2, (math.pi - math.asin(-0.5)) / math.tau / 2]
    expected = sorted([*expected, *(level + 0.5 for level in expected)])
    assert len(found.crossings) == 4
    assert np.allclose(found.crossings, expected, atol=0.001)


@pytest.mark.parametrize("curvature", [0.05, "auto"])
def test_whole_levels_only(curvature: Any) -> None:
    calls: list[float] = []
    found = sweep(
        lambda level: calls.append(level) or 1 - level / 100, 0, 100, 0.735, curvature, points=1024, integer=True
    )
    assert all(level == int(level) for level in calls)
    assert len(calls) == len(set(calls)) < 60
    assert abs(found.robustness - 0.26) <= found.bound <= 0.06
    assert found.crossings[0] == pytest.approx(26.5)


def test_as_dict_is_json() -> None:
    found = sweep(FALLING, 0, 1, method="uniform", points=3)
    plain = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert plain["bound"] is None
    assert plain["levels"] == [0.0, 0.5, 1.0]
    assert plain["robustness"] == found.robustness


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"low": 1, "high": 1}, "low must be below high"),
        ({"low": 2, "high": 1}, "low must be below high"),
        ({"low": math.nan}, "low: must be a number"),
        ({"high": math.inf}, "high: must be a number"),
        ({"high": "one"}, "high: must be a number"),
        ({"threshold": 1.2}, "threshold: must be a number, at least 0 and at most 1, got 1.2"),
        ({"threshold": -0.1}, "threshold: must be"),
        ({"threshold": math.nan}, "threshold: must be"),
        ({"threshold": [0.8, 2]}, "threshold: must be"),
        ({"threshold": []}, "threshold: the list is empty"),
        ({"threshold": True}, "threshold: must be"),
        ({"curvature": 0}, 'curvature, unless "auto": must be a number, above 0'),
        ({"curvature": "guess"}, 'curvature, unless "auto": must be a number, above 0'),
        ({"points": 1}, "points: must be a whole number, at least 2"),
        ({"points": 10, "method": "quad"}, "points: quad needs at least 21"),
        ({"method": "assap"}, "did you mean 'asap'"),
        ({"repetitions": 0}, "repetitions: must be"),
        ({"accuracy": 0.8}, "accuracy: 0.8 cannot be called"),
        ({"high": 1.5, "integer": True}, "must be whole numbers"),
        ({"accuracy": lambda level: math.nan}, "accuracy: at level 0 it is nan"),
        ({"accuracy": lambda level: "high"}, "accuracy: at level 0 it is 'high'"),
    ],
)
def test_mistakes_are_one_line(arguments: dict[str, Any], words: str) -> None:
    given = {"accuracy": FALLING, "low": 0, "high": 1, **arguments}
    with pytest.raises(InputError) as caught:
        sweep(given.pop("accuracy"), given.pop("low"), given.pop("high"), **given)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("method", ["asap", "uniform", "random"])
def test_a_curve_that_fails_midway_leaves_what_was_measured(method: str) -> None:
    seen: dict[float, float] = {}

    def failing(level: float) -> float:
        if len(seen) == 7:
            raise RuntimeError("out\nof memory")
        seen[level] = float(FALLING(level))
        return seen[level]

    with pytest.raises(SweepError, match=r"accuracy: raised RuntimeError: out of memory .*7 levels") as caught:
        sweep(failing, 0, 1, [0.8, 0.9], method=method)
    partial = caught.value.partial
    assert len(partial) == 2
    for found in partial:
        assert dict(zip(found.levels.tolist(), found.accuracies.tolist(), strict=True)) == seen
        if method == "asap":
            assert abs(found.robustness - truth(FALLING, found.threshold)) <= found.bound + 2e-5


def test_a_curve_that_fails_at_once_has_nothing_to_keep() -> None:
    def failing(level: float) -> float:
        raise RuntimeError("no")

    with pytest.raises(SweepError) as caught:
        sweep(failing, 0, 1)
    assert caught.value.partial == ()
    with pytest.raises(SweepError) as caught:
        sweep(lambda level: 0.9 if level == 0 else math.inf, 0, 1)
    assert caught.value.partial[0].bound == 1.0


def test_a_result_says_what_its_bound_assumes() -> None:
    auto = sweep(SYNTHETIC["straight"], 0, 1, curvature="auto")
    assert "unless accuracy crosses 0.8" in auto.assumes
    assert f"narrower than {auto.unseen:.2g} of the span" in auto.assumes
    assert "more curved than 128" in sweep(SYNTHETIC["straight"], 0, 1).assumes
    assert sweep(SYNTHETIC["straight"], 0, 1, method="uniform", points=9).assumes == "uniform has no bound"
    assert auto.as_dict()["unseen"] == auto.unseen == pytest.approx(0.049, abs=0.001)
    assert "dips below 0.049 unseen" in repr(auto)


def test_narrowest_is_for_a_curvature_that_is_found() -> None:
    with pytest.raises(InputError, match=r"narrowest: 0.1 with curvature 128, which alone"):
        sweep(SYNTHETIC["straight"], 0, 1, narrowest=0.1)
    with pytest.raises(InputError, match="narrowest: must be"):
        sweep(SYNTHETIC["straight"], 0, 1, curvature="auto", narrowest=0)
