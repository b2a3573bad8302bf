"""Figures of each view, what a click on them reports, and the sketch shown first."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

import testifai as ta
from testifai.app import figures
from testifai.app.figures import FigureRequest
from testifai.app.state import Runs
from testifai.present import theme
from testifai.present.figures.heatmaps import project
from testifai.tomogram import EstimatorSettings

AXES = ("brightness", "zoom", "blur")


def of(runs, view, query="order >= 0", *, axes=AXES, at=None, dark=False):
    return dict(figures.of_view(runs, FigureRequest(0, view, query, axes, against=1, at=at or {}), dark=dark))


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
    wanted = FigureRequest(0, "compare", "order >= 0", ("zoom", "blur"), against=1, at={"noise": 5})
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
    drawn = figures.heatmap(tomogram).data[0]
    labels = tomogram.labels[tomogram.order]
    for row, label in enumerate(np.unique(labels)):
        places = np.flatnonzero(labels == label)
        ids = [tomogram.space.id((0, severity, 0, 0)) for severity in (2, 5)]
        rates = [tomogram.outcomes.passed(test, places).mean() for test in ids]
        assert drawn.z[row][1] == pytest.approx(np.mean(rates))


def test_a_path_of_the_error_summary_is_no_test(runs):
    assert all("customdata" not in trace for trace in of(runs, "errors")["confusions"]["data"])


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
    tomogram = replace(cold.tomograms[0], settings=EstimatorSettings("process", population="future"))
    passes, trials = tomogram.outcomes.counts(np.arange(54))
    rates = (passes / trials).reshape(3, 3, 6).mean(axis=2).T
    drawn = figures.draw(tomogram)
    ElementTree.fromstring(drawn)
    np.testing.assert_allclose(np.reshape(written(drawn), (3, 3)), rates, atol=0.0051)
    assert not tomogram.estimator.estimated


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
