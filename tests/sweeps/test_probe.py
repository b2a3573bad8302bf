"""Sweeps on samples: the bound covers the noise, and what is certain costs little."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from testifai.sweeps import asap, probe
from testifai.sweeps.asap import Points
from testifai.sweeps.result import Scale, Sweep, SweepSetting, results

from .curves import SYNTHETIC, Curve, logistic

SEEDS = 200


def run(
    outcomes: Callable[[float, int, int], NDArray[np.bool_]],
    inputs: int,
    population: str,
    *,
    points: int = 256,
    target: float = 0.02,
    curvature: float | str = "auto",
) -> Sweep:
    grid = asap.LevelGrid(0.0, 1.0, points)

    def measure(asks: list[probe.Ask]) -> list[tuple[float, NDArray[np.bool_]]]:
        return [(ask.level, outcomes(ask.level, ask.start, ask.stop)) for ask in asks]

    samples = probe.Samples(measure, inputs, 0.95, population, grid)
    probe.explore(samples, (0.8,), curvature, target)
    setting = SweepSetting(
        Scale((0.0, 1.0), (0.0, 1.0)), (0.8,), "asap", curvature, curvature, points, 0.95, population
    )
    return results(setting, samples.points(curvature))[0]


def binomial(curve: Curve, seed: int) -> Callable[[float, int, int], NDArray[np.bool_]]:
    """Every input at every level passes by a draw of its own."""

    def outcomes(level: float, start: int, stop: int) -> NDArray[np.bool_]:
        draws = np.random.default_rng([seed, int(level * 2**40)]).uniform(size=stop)
        return draws[start:] < curve(level)

    return outcomes


def shared(curve: Curve, seed: int, inputs: int) -> Callable[[float, int, int], NDArray[np.bool_]]:
    """Every input has one draw for all levels, as when levels only strengthen a change."""
    draws = np.random.default_rng(seed).uniform(size=inputs)
    return lambda level, start, stop: draws[start:stop] < curve(level)


def crossing_share(curve: Curve) -> float:
    return float(np.mean(curve((np.arange(20_000) + 0.5) / 20_000) >= 0.8))


@pytest.mark.simulation
@pytest.mark.parametrize(("name", "seeds"), [("logistic", SEEDS), ("wide dip", SEEDS // 8)])
def test_the_stated_95_percent_bound_holds_under_binomial_noise(name: str, seeds: int) -> None:
    curve = SYNTHETIC[name]
    truth = crossing_share(curve)
    found = [run(binomial(curve, seed), 600, "future", points=32, target=0.1) for seed in range(seeds)]
    held = np.mean([abs(one.robustness - truth) <= one.bound for one in found])
    within = np.mean([one.low <= truth <= one.high for one in found])
    assert held >= 0.93
    assert within >= 0.93
    # A bound of everything would hold as well.
    assert np.mean([one.bound for one in found]) < 0.4


@pytest.mark.parametrize("seeds", [4, pytest.param(10, marks=pytest.mark.simulation)])
def test_the_bound_holds_for_the_accuracy_on_the_data_themselves(seeds: int) -> None:
    curve, inputs = logistic(12), 400
    dense = (np.arange(1000) + 0.5) / 1000
    held = []
    for seed in range(seeds):
        outcomes = shared(curve, seed, inputs)
        found = run(outcomes, inputs, "data")
        truth = np.mean([outcomes(level, 0, inputs).mean() >= 0.8 for level in dense])
        held.append(abs(found.robustness - truth) <= found.bound + 1 / 1000)
        assert found.bound <= 0.02
    assert np.mean(held) >= 0.93


def test_samples_grow_only_near_the_threshold() -> None:
    found = run(shared(logistic(20), 0, 5000), 5000, "data", points=1024, target=0.01)
    assert found.trials is not None
    near = np.abs(found.accuracies - 0.8) < 0.02
    far = np.abs(found.levels - found.crossings[0]) > 0.15
    assert found.trials[far].max() <= 500
    assert found.trials[near].min() == 5000
    assert found.bound <= 0.01
    assert found.inferences < 0.01 * 1024 * 5000


def test_new_inputs_that_leave_levels_open_are_in_the_bound() -> None:
    found = run(shared(SYNTHETIC["straight"], 1, 300), 300, "future")
    straddling = (found.lows < 0.8) & (found.highs >= 0.8)
    assert straddling.any()
    start, end = found.levels[straddling][[0, -1]]
    assert found.uncertain[0][0] <= start <= end <= found.uncertain[-1][1]


def test_a_fixed_curvature_works_on_samples_too() -> None:
    found = run(shared(logistic(20), 0, 2000), 2000, "data", curvature=64.0)
    exact = np.mean([shared(logistic(20), 0, 2000)(k / 2000, 0, 2000).mean() >= 0.8 for k in range(2000)])
    assert abs(found.robustness - exact) <= found.bound + 1 / 2000


@pytest.mark.parametrize("points", [2, 5, 64, 1000])
def test_shares_of_the_error_add_up_to_at_most_one(points: int) -> None:
    grid = asap.LevelGrid(0.0, 1.0, points)
    count = 2 ** asap.depths(grid)
    assert sum(asap.error_share(k / count, grid) for k in range(1, count)) <= 1 + 1e-9
    whole = asap.LevelGrid(3.0, 17.0, points, integer=True)
    assert sum(asap.error_share(float(k), whole) for k in range(3, 18)) <= 1 + 1e-9


def test_new_levels_lie_inside_and_in_the_set_fixed_beforehand() -> None:
    rng = np.random.default_rng(2)
    grid = asap.LevelGrid(0.0, 1.0, 1024)
    unit = 2 ** asap.depths(grid)
    for _ in range(500):
        a, b = np.sort(rng.uniform(size=2))
        if b - a < 1 / 1024:
            continue
        ends = rng.permutation([rng.uniform(0.8, 1), rng.uniform(0, 0.8)])
        points = Points(np.array([a, b]), ends, ends, ends, float(rng.uniform(1, 100)))
        found = asap.within(points, 0, 0.8, 0.01, grid)
        assert 1 <= len(found) <= 2
        assert all(a < level < b and (level * unit).is_integer() for level in found)
