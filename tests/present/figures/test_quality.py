"""Quality and drop against the severity sum, against means taken by hand; a stand-in has the scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from testifai.present.figures.curves import quality_curves
from testifai.tomogram import EstimatorSettings


@dataclass
class StandIn:
    """Scores of every test, as a tomogram holds them."""

    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    name: str = "<kid>"
    higher_is_better: bool = False
    measured: tuple[int, ...] = (0, 1, 2)
    inferences: int = 0


@pytest.fixture
def scored(tomogram):
    score = 0.1 * np.add.outer(np.arange(4), np.arange(4) ** 2)
    return tomogram(2, quality=StandIn(score, score - 0.05, score + 0.02))


@pytest.mark.parametrize("dark", [False, True])
def test_means_over_the_tests_of_a_sum(scored, dark):
    figure = quality_curves(scored, dark=dark)
    quality_band, quality, drop_band, drop = figure.data
    totals = np.add.outer(np.arange(4), np.arange(4))
    by_hand = [(scored.quality.estimate[totals == s].mean(), scored.estimate[totals == s].mean()) for s in range(7)]
    assert list(quality.x) == list(drop.x) == list(range(7))
    assert quality.y == pytest.approx([score for score, _ in by_hand])
    assert drop.y == pytest.approx([scored.base - rate for _, rate in by_hand])
    assert quality_band.y[:7] == pytest.approx([score - 0.05 for score, _ in by_hand])
    assert quality_band.y[7:14] == pytest.approx([score + 0.02 for score, _ in by_hand][::-1])
    assert (quality.yaxis, drop.yaxis, drop_band.yaxis) == ("y", "y2", "y2")
    assert "<kid>" not in figure.layout.title.subtitle.text


def test_the_band_of_the_drop_is_that_of_the_robustness(tomogram):
    made = tomogram(2, settings=EstimatorSettings(population="future"), quality=StandIn(*(np.zeros((4, 4)),) * 3))
    found = [made.query(f"severity == {total}") for total in range(7)]
    band = quality_curves(made).data[2]
    assert band.y[:7] == pytest.approx([made.base - answer.high for answer in found])
    assert band.y[7:14] == pytest.approx([made.base - answer.low for answer in found][::-1])


def test_scores_without_bounds_have_no_band(scored):
    scored.quality.low[1:] = np.nan
    assert len(quality_curves(scored).data[0].x) == 3  # the clean test alone, and the gap after it


def test_runs_without_quality_have_no_such_figure(tomogram):
    assert quality_curves(tomogram(2)) is None
