"""The figures of each view: what they are, what a click on them tells, and the difference of two runs."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from testifai.app import figures
from testifai.app import figures as classes
from testifai.app.figures import Wanted
from testifai.present import theme
from testifai.present.figures.heatmaps import project

AXES = ("brightness", "zoom", "blur")


def of(runs, view, query="order >= 0", *, axes=AXES, at=None, dark=False):
    return dict(figures.of_view(runs, Wanted(0, view, query, axes, against=1, at=at or {}), dark=dark))


@pytest.mark.parametrize(
    ("view", "names"),
    [
        ("space", ["heatmap"]),
        ("voxels", ["voxels"]),
        ("pairs", [f"pair {number}" for number in range(6)]),
        ("curves", ["alone", "orders", "others", "sum"]),
        ("tests", ["worst", "classes", "class and axis"]),
        ("errors", ["confusions", "local"]),
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
    inside = set(np.flatnonzero(runs.tomograms[0].query_engine.select("zoom == 2")).tolist())
    corners = of(runs, "voxels", "zoom == 2")["voxels"]["data"][0]["customdata"]
    cells = [test for row in of(runs, "space", "zoom == 2")["heatmap"]["data"][0]["customdata"] for test in row]
    assert set(corners) <= inside
    assert len(corners) == 8 * 9
    assert {test for test in cells if test >= 0} <= inside


def test_the_difference_is_b_minus_a(runs):
    wanted = Wanted(0, "compare", "order >= 0", ("zoom", "blur"), against=1, at={"noise": 5})
    drawn = figures.difference(runs, wanted)
    a, b = (project(tomogram, ("blur", "zoom"), at={"noise": 5}).estimate for tomogram in runs.tomograms)
    np.testing.assert_allclose(drawn.data[0].z, b - a)
    assert drawn.layout.coloraxis.cmax == -drawn.layout.coloraxis.cmin >= np.abs(b - a).max()


def test_a_view_is_drawn_once(runs, monkeypatch):
    of(runs, "space", "blur == 2", at={"noise": 5})
    monkeypatch.setattr("testifai.present.figures.heatmaps.heatmap", None)
    # An axis that is shown stands at no severity, and so changes nothing.
    assert list(of(runs, "space", "blur == 2", at={"noise": 5, "blur": 2}, dark=True)) == ["heatmap"]


def test_a_slice_is_that_of_the_array(runs):
    estimate = runs.tomograms[0].estimate
    sliced, mean = (of(runs, "space", at=at)["heatmap"]["data"][0] for at in ({"noise": 5}, {}))
    for drawn, expected in ((sliced, estimate[..., 1].mean(axis=2)), (mean, estimate.mean(axis=(2, 3)))):
        np.testing.assert_allclose(numbers(drawn["z"]).reshape(3, 3), expected.T)
    cubes = of(runs, "voxels", at={"noise": 5})["voxels"]["data"][0]
    np.testing.assert_allclose(numbers(cubes["intensity"])[::8], estimate[..., 1].reshape(-1), rtol=1e-6)


def numbers(packed):
    """As plotly packs them for the browser."""
    return np.frombuffer(base64.b64decode(packed["bdata"]), packed["dtype"])


def test_classes_under_each_axis_alone_are_counted(runs):
    tomogram = runs.tomograms[0]
    drawn = classes.heatmap(tomogram).data[0]
    labels = tomogram.labels[tomogram.order]
    for row, label in enumerate(np.unique(labels)):
        places = np.flatnonzero(labels == label)
        ids = [tomogram.space.id((0, severity, 0, 0)) for severity in (2, 5)]
        rates = [tomogram.outcomes.passed(test, places).mean() for test in ids]
        assert drawn.z[row][1] == pytest.approx(np.mean(rates))


def test_a_path_of_the_error_summary_is_no_test(runs):
    assert all("customdata" not in trace for trace in of(runs, "errors")["confusions"]["data"])
