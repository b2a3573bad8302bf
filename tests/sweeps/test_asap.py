"""Algorithm 1 and Theorem 1, against the paper's recursion and against dense evaluations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.sweeps import Sweep, sweep
from testifai.sweeps.asap import interpolated, may_cross, robustness

from .curves import DENSE, SYNTHETIC, Curve, measured, needs_measured, truth

RESOLUTION = 2e-5  # of the dense evaluation


def literal(curve: Curve, low: float, high: float, threshold: float, a_hat: float, n: int) -> dict[float, float]:
    """Algorithm 1 as printed."""
    found: dict[float, float] = {}

    def get_accuracy(x: float) -> float:
        if x not in found:
            found[x] = float(curve(x))
        return found[x]

    def intersects(x_a: float, acc_a: float, x_b: float, acc_b: float, a: float) -> bool:
        if (acc_a - threshold) * (acc_b - threshold) < 0:
            return True
        b = (acc_b - acc_a - a * (x_b**2 - x_a**2)) / (x_b - x_a)
        c = acc_a - a * x_a**2 - b * x_a
        x_v, y_v = -b / (2 * a), -(b * b - 4 * a * c) / (4 * a)
        return x_a <= x_v <= x_b and (acc_a - threshold) * (y_v - threshold) < 0

    def evaluate(x_a: float, x_b: float) -> None:
        acc_a, acc_b = get_accuracy(x_a), get_accuracy(x_b)
        crossed = any(intersects(x_a, acc_a, x_b, acc_b, a) for a in (a_hat, -a_hat))
        if crossed and x_b - x_a >= (high - low) / n:
            middle = (x_a + x_b) / 2
            evaluate(x_a, middle)
            evaluate(middle, x_b)

    evaluate(low, high)
    return found


def assumption_holds(found: Sweep, curve: Curve, a_hat: float) -> bool:
    """Whether the curve lies between the parabolas on every interval that ASAP took for settled."""
    place = np.clip(np.searchsorted(found.levels, DENSE) - 1, 0, len(found.levels) - 2)
    left, right = found.levels[place], found.levels[place + 1]
    y_left, y_right = found.accuracies[place], found.accuracies[place + 1]
    chord = y_left + (y_right - y_left) * (DENSE - left) / (right - left)
    inside = np.abs(curve(DENSE) - chord) <= a_hat * (DENSE - left) * (right - DENSE) + 1e-12
    unsettled = np.zeros(len(DENSE), bool)
    for start, end in found.uncertain:
        unsettled |= (start <= DENSE) & (end >= DENSE)
    return bool((inside | unsettled).all())


def check_published(curve: Curve, a_hat: float) -> bool:
    found = sweep(curve, 0, 1, curvature=a_hat)
    expected = literal(curve, 0.0, 1.0, 0.8, a_hat, 1024)
    assert found.levels.tolist() == sorted(expected)
    assert found.evaluations == len(expected)
    holds = assumption_holds(found, curve, a_hat)
    if holds:
        assert abs(found.robustness - truth(curve)) <= found.bound + RESOLUTION
        assert found.low - RESOLUTION <= truth(curve) <= found.high + RESOLUTION
    return holds


@pytest.mark.parametrize("a_hat", [2, 128, 256])
@pytest.mark.parametrize("name", SYNTHETIC)
def test_levels_are_those_of_the_recursion_and_the_bound_holds(name: str, a_hat: float) -> None:
    check_published(SYNTHETIC[name], a_hat)


def test_assumption_holds_often_enough_to_test_the_bound() -> None:
    assert sum(check_published(curve, 256) for curve in SYNTHETIC.values()) >= len(SYNTHETIC) / 2


@needs_measured
def test_measured_curves_take_33_to_76_levels() -> None:
    counts = []
    for curve in measured().values():
        check_published(curve, 128)
        counts.append(sweep(curve, 0, 1).evaluations)
    assert len(counts) == 16
    assert (min(counts), max(counts)) == (33, 76)


def test_units_of_the_level_go_with_the_curvature() -> None:
    curve = SYNTHETIC["falling wave"]
    there = sweep(lambda level: curve((level + 50) / 200), -50, 150, curvature=128 / 200**2)
    here = sweep(curve, 0, 1)
    assert np.allclose((there.levels + 50) / 200, here.levels)
    assert there.robustness == pytest.approx(here.robustness)
    assert there.bound == pytest.approx(here.bound)


@given(
    st.tuples(*[st.floats(0, 1)] * 2), st.floats(0.01, 50), st.floats(0.05, 2), st.floats(0.05, 0.95)
)  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_may_cross_agrees_with_parabolas_drawn_point_by_point(
    ends: tuple[float, float], a_hat: float, width: float, threshold: float
) -> None:
    x = np.linspace(0, width, 4001)
    chord = ends[0] + (ends[1] - ends[0]) * x / width
    bulge = a_hat * x * (width - x)
    above = np.array(ends) >= threshold
    crosses = above[0] != above[1] or bool(
        (chord - bulge).min() < threshold if above[0] else (chord + bulge).max() > threshold
    )
    nearest = min(abs((chord - bulge).min() - threshold), abs((chord + bulge).max() - threshold))
    accuracies = np.array(ends)
    told = may_cross(np.array([0.0, width]), accuracies, accuracies, a_hat, threshold)
    if nearest > a_hat * (width / 4000) ** 2:  # the drawing is that coarse
        assert told.tolist() == [crosses]


def test_wider_limits_settle_less() -> None:
    rng = np.random.default_rng(0)
    levels = np.sort(rng.uniform(size=40))
    accuracies = rng.uniform(0.6, 1, 40)
    slack = rng.uniform(0, 0.05, 40)
    exact = may_cross(levels, accuracies, accuracies, 10.0, 0.8)
    wide = may_cross(levels, accuracies - slack, accuracies + slack, 10.0, 0.8)
    assert (wide >= exact).all()
    assert wide.sum() > exact.sum()


def test_an_accuracy_on_the_threshold_counts_as_above_and_settles_nothing() -> None:
    # As printed, the interval right of 0.25 would never be looked at again.
    found = sweep(lambda level: 1 - level, 0, 1, 0.75)
    assert found.robustness == 0.25
    assert 0 < found.bound < 0.001


def test_both_estimates_lie_within_the_bound() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        levels = np.concatenate([[0], np.sort(rng.uniform(size=8)), [1]])
        accuracies = rng.uniform(0.5, 1, 10)
        bound = np.diff(levels)[may_cross(levels, accuracies, accuracies, 0.0, 0.8)].sum()
        dense = np.interp(DENSE, levels, accuracies)
        assert interpolated(levels, accuracies, 0.8) == pytest.approx(np.mean(dense >= 0.8), abs=RESOLUTION)
        assert abs(robustness(levels, accuracies, 0.8) - np.mean(dense >= 0.8)) <= bound + RESOLUTION
