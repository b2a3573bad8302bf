"""Sliders and text: reading and writing ranges agree with what a query selects."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testifai.app import query_sliders
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Outcomes
from testifai.space import Space
from testifai.tomogram import Tomogram

FADE = Perturbation("fade", lambda batch, parameter, rng: batch, tuple(range(8)))
SPACE = Space({"a": (FADE, [0, 1, 4, 7]), "b": (FADE, [0, 2, 3]), "c": (FADE, [0, 5])})
TOMOGRAM = Tomogram(SPACE, Outcomes(3), np.arange(3))


def span(levels):
    return st.tuples(st.integers(0, levels - 1), st.integers(0, levels - 1)).map(lambda pair: tuple(sorted(pair)))


RANGES = st.fixed_dictionaries({axis.name: span(len(axis.severities)) for axis in SPACE.axes})


def inside(found):
    """Which tests lie in all ranges, by looking at each of them."""
    levels = {axis.name: axis.severities for axis in SPACE.axes}
    return [
        all(levels[n][found[n][0]] <= s <= levels[n][found[n][1]] for n, s in zip(SPACE.names, sigma, strict=True))
        for sigma in map(SPACE.configuration, range(SPACE.size))
    ]


@given(RANGES, st.sampled_from(["order >= 0", "a > 1", "b in {0, 3} and c == 5", "order == 2", "a == 1 or b == 2"]))
def test_what_is_written_selects_the_ranges_and_keeps_other_conditions(wanted, text):
    written = query_sliders.write(text, SPACE, wanted)
    found, rest = query_sliders.read(written, SPACE)
    assert found == wanted
    assert [str(part) for part in rest] == [str(part) for part in query_sliders.read(text, SPACE)[1]]
    others = np.ones(SPACE.size, bool)
    for part in rest:
        others &= TOMOGRAM.query_engine.select(str(part))
    expected = np.array(inside(wanted)) & others
    if expected.any():
        assert TOMOGRAM.query_engine.select(written).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a == 4", {"a": (2, 2)}),
        ("1 < a <= 7 and a < 7", {"a": (2, 2)}),
        ("b >= 1 and 5 == c", {"b": (1, 2), "c": (1, 1)}),
        ("a != 1", {}),
        ("not a > 1", {}),
        ("a > 1 or b > 0", {}),
        ("a < b", {}),
        ("a > 4 and a < 1", {"a": (3, 3)}),  # nothing at all; the second condition is kept beside
    ],
)
def test_ranges_of_a_text(text, expected):
    whole = {axis.name: (0, len(axis.severities) - 1) for axis in SPACE.axes}
    assert query_sliders.read(text, SPACE)[0] == {**whole, **expected}


def test_nothing_chosen_is_everything():
    whole = {axis.name: (0, len(axis.severities) - 1) for axis in SPACE.axes}
    assert query_sliders.write("a > 1", SPACE, whole) == "order >= 0"
