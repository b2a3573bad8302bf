"""The figures of each view: what they are, what a click on them tells, and the difference of two runs."""

from __future__ import annotations

import numpy as np
import pytest

from testifai.app import figures
from testifai.report import theme
from testifai.report.projection import project

AXES = ("brightness", "zoom", "blur")


def of(runs, view, query="order >= 0", *, axes=AXES, dark=False):
    return dict(figures.of_view(runs, 0, view, query, axes, against=1, dark=dark))


@pytest.mark.parametrize(
    ("view", "names"),
    [
        ("space", ["heatmap", "voxels"]),
        ("pairs", [f"pair {number}" for number in range(6)]),
        ("curves", ["alone", "orders", "others", "sum"]),
        ("tests", ["worst", "classes"]),
        ("compare", ["A", "B", "difference"]),
    ],
)
def test_views(runs, view, names):
    light, dark = (of(runs, view, dark=dark) for dark in (False, True))
    assert list(light) == list(dark) == names
    for name in names:
        assert light[name]["data"] == dark[name]["data"]
        assert light[name]["layout"]["font"]["color"] == theme.LIGHT.ink
        assert dark[name]["layout"]["font"]["color"] == theme.DARK.ink


def test_a_click_tells_a_test_of_the_region(runs):
    inside = set(np.flatnonzero(runs.tomograms[0].select("zoom == 2")).tolist())
    drawn = of(runs, "space", "zoom == 2")
    corners = drawn["voxels"]["data"][0]["customdata"]
    cells = [test for row in drawn["heatmap"]["data"][0]["customdata"] for test in row]
    assert set(corners) <= inside
    assert len(corners) == 8 * 9
    assert {test for test in cells if test >= 0} <= inside


def test_the_difference_is_b_minus_a(runs):
    drawn = figures.difference(runs, 0, 1, "zoom", "blur")
    a, b = (project(tomogram, ("blur", "zoom")).estimate for tomogram in runs.tomograms)
    np.testing.assert_allclose(drawn.data[0].z, b - a)
    assert drawn.layout.coloraxis.cmax == -drawn.layout.coloraxis.cmin >= np.abs(b - a).max()


def test_a_view_is_drawn_once(runs, monkeypatch):
    of(runs, "space", "blur == 2")
    monkeypatch.setattr("testifai.report.heatmaps.heatmap", None)
    assert list(of(runs, "space", "blur == 2", dark=True)) == ["heatmap", "voxels"]
