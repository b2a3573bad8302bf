"""curvature="auto": the bound holds without anyone guessing, for about as many evaluations."""

from __future__ import annotations

import numpy as np
import pytest

from testifai.sweeps import sweep
from testifai.sweeps.asap import LEAST, first_levels, local_curvature

from .curves import SYNTHETIC, Curve, measured, needs_measured, truth, wave

RESOLUTION = 2e-5


def compare(curves: dict[str, Curve]) -> list[float]:
    """Evaluations of auto over those of the method as published, where the latter's bound held."""
    ratios = []
    for name, curve in curves.items():
        auto, published = sweep(curve, 0, 1, curvature="auto"), sweep(curve, 0, 1)
        assert abs(auto.robustness - truth(curve)) <= auto.bound + RESOLUTION, name
        assert auto.low - RESOLUTION <= truth(curve) <= auto.high + RESOLUTION, name
        if abs(published.robustness - truth(curve)) <= published.bound + RESOLUTION:
            ratios.append(auto.evaluations / published.evaluations)
    return ratios


def test_bound_holds_on_every_synthetic_curve() -> None:
    ratios = compare(SYNTHETIC)
    assert max(ratios) <= 2.5
    assert np.mean(ratios) <= 1.3


@needs_measured
def test_bound_holds_on_every_measured_curve_for_fewer_evaluations() -> None:
    ratios = compare(measured())
    assert len(ratios) >= 15
    assert max(ratios) <= 1.05
    assert np.mean(ratios) <= 0.9


@needs_measured
def test_bound_holds_at_other_thresholds_too() -> None:
    held = []
    for curve in measured().values():
        for threshold in np.linspace(0.72, 0.86, 29):
            found = sweep(curve, 0, 1, float(threshold), "auto")
            held.append(abs(found.robustness - truth(curve, threshold)) <= found.bound + RESOLUTION)
    assert np.mean(held) == 1


def test_a_wave_in_step_with_even_levels_is_not_taken_for_a_flat_curve() -> None:
    # At multiples of 1/16 this wave is always 0.6: the method as published says 0 %.
    curve = wave(8, height=0.3, middle=0.6)
    assert sweep(curve, 0, 1).robustness == 0.0
    assert truth(curve) > 0.2
    found = sweep(curve, 0, 1, curvature="auto")
    assert abs(found.robustness - truth(curve)) <= found.bound + RESOLUTION


def test_a_ripple_is_reckoned_with_where_three_levels_of_it_lie_on_a_straight_line() -> None:
    levels = np.concatenate([[0.0], np.linspace(0.45, 0.55, 21), [1.0]])
    ripple = 0.81 + 0.002 * np.random.default_rng(0).normal(size=23)
    ripple[10:14] = 0.81
    found = local_curvature(levels, ripple)
    second = np.diff(ripple[1:-1], 2)
    # Three standard deviations of what lies between two levels of a random walk like it.
    room = found[11] * 0.005**2 / 4
    assert room == pytest.approx(np.sqrt(np.mean(second**2)), rel=0.2)


def test_noise_of_sampling_is_no_ripple() -> None:
    levels = np.concatenate([[0.0], np.linspace(0.45, 0.55, 21), [1.0]])
    noisy = 0.81 + 0.002 * np.random.default_rng(0).normal(size=23)
    variance = 6 * 0.002**2 / 0.005**2
    look = lambda three: [float(noisy[place]) for place in three]  # noqa: E731
    with_ripple, without = local_curvature(levels, look), local_curvature(levels, look, lambda three: variance)
    assert without.mean() < 0.8 * with_ripple.mean()


@pytest.mark.parametrize("narrowest", [0.1, 0.05, 0.02])
def test_every_dip_as_wide_as_the_narrowest_is_found(narrowest: float) -> None:
    for start in np.linspace(0.01, 0.9, 40):

        def hole(level: float, start: float = float(start)) -> float:
            return 0.5 if start <= level <= start + narrowest else 0.99

        found = sweep(hole, 0, 1, curvature="auto", narrowest=narrowest)
        assert found.unseen <= narrowest
        assert abs(found.robustness - (1 - narrowest)) <= found.bound


def test_what_is_missed_is_narrower_than_what_the_result_calls_unseen() -> None:
    missed = 0
    for start in np.linspace(0.01, 0.9, 40):

        def hole(level: float, start: float = float(start)) -> float:
            return 0.5 if start <= level <= start + 0.01 else 0.99

        found = sweep(hole, 0, 1, curvature="auto")
        if abs(found.robustness - 0.99) > found.bound:
            missed += 1
            assert found.unseen > 0.01
    assert missed


def test_units_do_not_matter() -> None:
    curve = SYNTHETIC["falling wave"]
    here = sweep(curve, 0, 1, curvature="auto")
    there = sweep(lambda level: curve((level - 1000) / 500), 1000, 1500, curvature="auto")
    assert np.allclose((there.levels - 1000) / 500, here.levels)
    assert there.bound == pytest.approx(here.bound)


def test_curvature_of_a_kink_is_at_least_the_one_its_parabolas_need() -> None:
    levels = np.array([0.0, 0.01, 0.02, 0.03, 1.0])
    for kink in (0.012, 0.015, 0.019):
        found = local_curvature(levels, 0.9 - 30 * np.maximum(0, levels - kink))
        assert found[1] >= 30 / 0.01 * (1 - 1e-9)


def test_curvature_is_never_below_the_least_between_first_levels() -> None:
    levels = np.linspace(0, 10, 5)
    assert (local_curvature(levels, np.full(5, 0.9)) == LEAST / 100).all()


@pytest.mark.parametrize("most", [2, 3, 10, 1000])
def test_first_levels_ascend_from_end_to_end(most: int) -> None:
    levels = first_levels(most)
    assert levels[0] == 0
    assert levels[-1] == 1
    assert (np.diff(levels) > 0).all()
    assert len(levels) <= max(2, most)
