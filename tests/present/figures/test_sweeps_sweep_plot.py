"""The picture of a sweep: what must be seen is where it must be."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from testifai.errors import InputError
from testifai.present.figures.sweeps import (
    BOTTOM,
    CURVE,
    HEIGHT,
    LEFT,
    RIGHT,
    THRESHOLD,
    TOP,
    UNCERTAIN,
    WIDTH,
    compose,
    ticks,
)
from testifai.sweeps import Sweep, SweepError, sweep


@pytest.fixture
def found() -> Sweep:
    return sweep(lambda level: 1 - level / 200, 0, 100, 0.75, 1e-4, points=8, name="fading")


def place(level: float, accuracy: float) -> tuple[int, int]:
    x = LEFT + level / 100 * (WIDTH - LEFT - RIGHT)
    return round(TOP + (1 - accuracy) * (HEIGHT - TOP - BOTTOM)), round(x)


def test_points_threshold_and_uncertain_stretches_are_drawn(found: Sweep) -> None:
    picture = compose(found)
    assert picture.shape == (HEIGHT, WIDTH, 3)
    for level, accuracy in zip(found.levels, found.accuracies, strict=True):
        if abs(accuracy - 0.75) > 0.02:
            assert np.abs(picture[place(level, accuracy)].astype(int) - CURVE).max() < 40
    assert np.abs(picture[place(10, 0.75)].astype(int) - THRESHOLD).max() < 40
    (start, end), *_ = found.uncertain
    assert (picture[place((start + end) / 2, 0.13)] == UNCERTAIN).all()
    assert (picture[place(90, 0.13)] == 255).all()


def test_png_and_jpg_are_written(found: Sweep, tmp_path: Path) -> None:
    for name in ("curve.png", "curve.JPG"):
        found.plot(tmp_path / name)
        assert cv2.imread(str(tmp_path / name)).shape == (HEIGHT, WIDTH, 3)
    with pytest.raises(InputError, match=r"ends in \.png or \.jpg"):
        found.plot(tmp_path / "curve.pdf")
    with pytest.raises(InputError, match="cannot write"):
        found.plot(tmp_path / "nowhere" / "curve.png")


def test_partial_and_downward_sweeps_can_be_drawn() -> None:
    with pytest.raises(SweepError) as caught:
        sweep(lambda level: 0.9 if level == 0 else 1 / 0, 0, 1)
    assert compose(caught.value.partial[0]).shape == (HEIGHT, WIDTH, 3)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-50, 50), (0.001, 0.0013), (0, 45), (1, 100)])
def test_ticks_are_few_round_and_inside(low: float, high: float) -> None:
    found = ticks(low, high)
    assert 3 <= len(found) <= 9
    assert all(low - 1e-12 <= one <= high + 1e-12 for one in found)
    steps = np.diff(found)
    assert np.allclose(steps, steps[0])
