"""Which of two perturbations is better applied first."""

from __future__ import annotations

import math

import numpy as np

import testifai as ta
from testifai.present.terminal import precedence
from testifai.tomogram.interactions import precedences

ROWS = np.linspace(0, 1, 400)[:, None]
LABELS = np.ones(400, int)
ADD = ta.Perturbation("add", lambda rows, by, rng: rows + by, (0.0, 0.1, 0.2))
DOUBLE = ta.Perturbation("double", lambda rows, by, rng: rows * by, (1.0, 1.5, 2.0))


def below_one(rows):
    """The label 1 as long as a value stays below 1: to add first and multiply then is worse."""
    return (np.asarray(rows)[:, 0] < 1).astype(int)


def scan(axes, **options):
    return ta.scan(below_one, (ROWS, LABELS), ta.Space(axes, order_sensitive=True), population="data", **options)


def test_the_better_order_is_found():
    (found,) = precedences(scan({"add": ADD, "double": DOUBLE}, budget=4_000))
    assert (found.first, found.second) == ("double", "add")
    assert found.before.robustness - found.after.robustness == found.difference > 0.05
    assert found.as_dict()["before"]["tests"] == 4


def test_it_is_said_in_a_line():
    (line,) = precedence(scan({"add": ADD, "double": DOUBLE}, strategy="full"))
    # By hand: rows below (1 - a) / f, or below 1 / f - a.
    before = np.mean([np.floor(399 * (1 - a) / f - 1e-9) + 1 for a in (0.1, 0.2) for f in (1.5, 2)]) / 400
    assert line.startswith(f"order of application: double before add {before:.3f} (exact), after it 0.")


def test_no_difference_is_said_too():
    found = scan({"one": ADD, "two": ADD}, budget=4_000)
    assert precedences(found) == []
    assert precedence(found) == ["order of application: no difference beyond the noise between any two perturbations"]


def test_nothing_is_said_where_it_was_not_asked():
    plain = ta.scan(below_one, (ROWS, LABELS), ta.Space({"add": ADD, "double": DOUBLE}), budget=4_000)
    assert precedences(plain) is None
    forest = scan({"a": ADD, "b": ADD, "c": ADD}, strategy={"use": "ordered", "max_order": 1})
    assert math.isnan(forest.query("before(a, b)").low)
    assert precedences(forest) is None
    many = ta.Space({f"a{axis}": ADD for axis in range(7)}, order_sensitive=True)
    assert precedences(ta.scan(below_one, (ROWS, LABELS), many, budget=500)) is None
