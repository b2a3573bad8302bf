"""`calibrate`: severities where accuracy has fallen by what was asked."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import testifai as ta
from testifai.errors import InputError
from testifai.sweeps import SweepBatch, calibrate

N = 500
ROWS = np.linspace(0, 1, N)[:, None]
LABELS = (ROWS[:, 0] > 0.5).astype(int)
SHIFT = ta.Perturbation("test_shift", lambda x, by, rng: x + by, [0.0, 0.5], levels=(0.0, 0.5))


def model(batch: Any) -> Any:
    return (batch[:, 0] > 0.5).astype(int)


def test_levels_are_those_of_the_drops() -> None:
    drops = [0.01, 0.05, 0.1, 0.2, 0.4]
    table = calibrate(model, (ROWS, LABELS), SHIFT)
    # A shift by d turns the labels of a share d of the rows.
    assert table.drops == tuple(drops)
    assert table.severities[0] == 0.0
    assert np.allclose(table.severities[1:], drops, atol=0.01 * 0.5 + 1 / N)
    assert table.accuracy == 1.0
    for level, (before, after) in zip(table.severities[1:], table.brackets, strict=True):
        assert before <= level <= after


def test_the_table_is_an_axis() -> None:
    table = calibrate(model, (ROWS, LABELS), SHIFT, [0.1, 0.3])
    tomogram = ta.scan(model, (ROWS, LABELS), ta.Space({"shift": table}), strategy="full")
    assert np.allclose(tomogram.estimate, [1.0, 0.9, 0.7], atol=0.01)


def test_drops_out_of_reach_are_left_out_and_named() -> None:
    table = calibrate(model, (ROWS, LABELS), SHIFT, [0.7, 0.2])
    assert (table.drops, table.unreached, len(table.severities)) == ((0.2,), (0.7,), 2)
    with pytest.raises(InputError, match=r"accuracy never falls by 0\.7"):
        calibrate(model, (ROWS, LABELS), SHIFT, [0.7])


def test_it_can_be_continued() -> None:
    batches: list[SweepBatch] = []
    first = calibrate(model, (ROWS, LABELS), SHIFT, on_batch=batches.append)
    fresh: list[SweepBatch] = []
    again = calibrate(model, (ROWS, LABELS), SHIFT, recorded=batches, on_batch=fresh.append)
    assert fresh == []
    assert json.dumps(again.as_dict()) == json.dumps(first.as_dict())
    assert sum(len(one.passed) for one in batches) == first.inferences


@pytest.mark.parametrize("drops", [[], [0.0], [1.0], [-0.1], "0.1", [np.nan], 0.1])
def test_mistakes_are_one_line(drops: Any) -> None:
    with pytest.raises(InputError, match="drops"):
        calibrate(model, (ROWS, LABELS), SHIFT, drops)


def test_a_table_perturbation_stays_one() -> None:
    table = calibrate(model, (ROWS, LABELS), "tabular.noise", [0.05, 0.2], points=64)
    assert table.table
    assert table.columns == ta.perturb.get("tabular.noise").columns
    tomogram = ta.scan(model, (ROWS, LABELS), ta.Space({"noise": table}), strategy="full")
    assert np.allclose(tomogram.estimate[1:], [0.95, 0.8], atol=0.04)


def test_a_rotation_still_moves_label_maps() -> None:
    lengths = np.random.default_rng(0).integers(4, 15, 200)
    images, maps = np.full((200, 32, 32), 50, np.uint8), np.zeros((200, 32, 32), np.uint8)
    for image, labels, length in zip(images, maps, lengths, strict=True):
        image[14:18, 16 - length : 16 + length], labels[14:18, 16 - length : 16 + length] = 200, 1

    def stripe(batch: Any) -> Any:
        """Find the bar where it is level: the longer it is, the sooner a rotation hides its ends."""
        seen = (batch > 125).astype(np.int64)
        seen[:, :11] = seen[:, 21:] = 0
        return seen

    rotation = ta.perturb.get("classic.rotation")
    oracle = {"use": "segmentation", "iou": 0.9}
    table = calibrate(stripe, (images, maps), rotation, [0.2, 0.5], points=32, oracle=oracle)
    assert table.shows is rotation.shows
    tomogram = ta.scan(stripe, (images, maps), ta.Space({"turn": table}), strategy="full", oracle=oracle)
    assert np.allclose(tomogram.estimate, [1.0, 0.8, 0.5], atol=0.06)
