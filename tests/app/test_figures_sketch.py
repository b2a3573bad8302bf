"""The first picture of a run: pass rates, before there are estimates."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

import testifai as ta
from testifai.app import figures
from testifai.app.state import Runs

SHIFT = ta.Perturbation("shift", lambda rows, by, rng: rows + by, [0.0, 0.1, 0.2, 0.4])
ROWS = np.random.default_rng(1).random((60, 1))
DATA = (ROWS, (ROWS[:, 0] > 0.5).astype(int))


def decide(rows):
    return (rows[:, 0] > 0.5).astype(int)


def written(drawn: str) -> list[float]:
    return [float(number) for number in re.findall(r">(\d\.\d\d)</text>", drawn)]


def test_cells_are_pass_rates_over_the_other_axes(folder):
    """From the tests' own trials, whatever surrogate there is, which has not been asked."""
    cold = Runs([folder / "a.db"])
    tomogram = replace(cold.tomograms[0], surrogate="process", population="future")
    passes, trials = tomogram.outcomes.counts(np.arange(54))
    rates = (passes / trials).reshape(3, 3, 6).mean(axis=2).T
    drawn = figures.draw(tomogram)
    ElementTree.fromstring(drawn)
    np.testing.assert_allclose(np.reshape(written(drawn), (3, 3)), rates, atol=0.0051)
    assert "_whole" not in tomogram.__dict__


def test_one_axis_is_one_row_and_what_was_not_tried_is_empty():
    space = ta.Space({"shift": SHIFT})
    whole = figures.draw(ta.scan(decide, DATA, space, strategy="full"))
    assert len(written(whole)) == 4
    few = ta.scan(decide, DATA, ta.Space({"a": SHIFT, "b": SHIFT}), strategy={"use": "ordered", "max_order": 1})
    drawn = figures.draw(few)
    assert (drawn.count('fill="none"'), len(written(drawn))) == (9, 7)


def test_names_are_escaped_and_many_levels_are_left_to_the_browser():
    odd = ta.Space({"ünï": SHIFT, "b": SHIFT})
    assert "ünï" in figures.draw(ta.scan(decide, DATA, odd, strategy="full"))
    fine = ta.Perturbation("fine", lambda rows, by, rng: rows + by, np.linspace(0, 1, 40).tolist())
    assert figures.draw(ta.scan(decide, DATA, ta.Space({"fine": fine}), strategy="full")) is None


@pytest.mark.parametrize("space", [{"a": SHIFT, "b": SHIFT}])
def test_orders_of_application_are_averaged_over(space):
    tomogram = ta.scan(decide, DATA, ta.Space(space, order_sensitive=True), strategy="full")
    assert len(written(figures.draw(tomogram))) == 16
