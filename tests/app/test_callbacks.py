"""The slider of quality: there only where it was measured, and a second hand on the query's limit."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("dash")

from testifai.app import callbacks, layout, query_sliders
from testifai.app.query_sliders import Track
from testifai.app.state import Runs
from testifai.quality.predict import Scores


@pytest.fixture
def scored(folder):
    """A run whose quality was measured: the lower, the less was perturbed."""
    runs = Runs([folder / "a.db"])
    space = runs.space
    values = np.broadcast_to(space.columns()["severity"], space.shape).reshape(-1) / 20
    known = np.arange(space.size)
    scores = Scores(space, "kid", False, known, values, np.full(space.size, 0.01))
    runs.tomograms = (replace(runs.tomograms[0], quality=scores),)
    return runs


def page(runs):
    return json.dumps(layout.page(runs).to_plotly_json(), default=lambda part: part.to_plotly_json())


def test_only_where_it_was_measured(runs, scored):
    assert "kid, lower is better" in page(scored)
    assert '"type": "limit"' not in page(runs)


def test_moving_it_changes_the_limit_and_nothing_else(scored):
    moved = callbacks.limited(scored, "zoom >= 2 and quality <= 0.7", [0.4])
    assert moved == "zoom >= 2 and quality <= 0.4"
    track = Track.of(scored.tomograms[0].quality)
    assert callbacks.limited(scored, moved, [track.none]) == "zoom >= 2"
    assert callbacks.limited(scored, None, [track.none]) == "order >= 0"


def test_it_follows_the_query(scored):
    track = Track.of(scored.tomograms[0].quality)
    assert callbacks.limit_mark(scored, "zoom >= 2") == track.none
    assert callbacks.limit_mark(scored, "quality <= 0.25 and zoom >= 2") == 0.25
    assert callbacks.limit_mark(scored, "quality <= 99") == track.last
    assert callbacks.limit_mark(scored, "quality <= 0.25 or zoom >= 2") == track.none


def test_an_answer_says_what_is_left_out(scored):
    from testifai.app import panels

    found = scored.answer(0, "quality <= 0.3")
    estimate = scored.tomograms[0].estimate.reshape(-1)
    inside = scored.tomograms[0].quality.estimate.reshape(-1) <= 0.3
    assert found.tests == inside.sum()
    words = json.dumps(panels.answer(found, "", "").to_plotly_json(), default=lambda part: part.to_plotly_json())
    rest = estimate[~inside].mean()
    assert f"{(~inside).sum()} tests are left out for their quality: robustness {rest:.3f} there" in words


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=20), st.booleans(), st.integers(0, 200))
def test_its_track_holds_all_tests_at_one_end_and_asks_in_round_numbers(values, higher, place):
    quality = SimpleNamespace(estimate=np.array(values), higher_is_better=higher, sign=">=" if higher else "<=")
    track = Track.of(quality)
    assert track.first <= min(values) <= max(values) <= track.last
    assert track.none == (track.first if higher else track.last)
    assert (track.last - track.first) / track.step <= query_sliders.STEPS + 3
    assert len(repr(round(track.first + place * track.step, 9))) <= 12


def test_an_axis_that_another_dropdown_took_is_replaced():
    assert callbacks.apart(["fog", "fog", "night"], 0, ("fog", "rain", "night")) == ["fog", "rain", "night"]
