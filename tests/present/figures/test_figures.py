"""What the figures show, read back from what plotly is given."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.present.figures import curves, dots, heatmaps, sweeps, voxels
from testifai.present.figures.heatmaps import SOURCES
from testifai.sweeps import sweep
from testifai.tomogram import EstimatorSettings

FIGURES = {
    "heatmap": lambda tomogram, **options: heatmaps.heatmap(tomogram, "a", "b", **options),
    "voxels": voxels.voxels,
    "alone": lambda tomogram, **options: curves.severity_curves(tomogram, alone=True, **options),
    "curves": curves.severity_curves,
    "sum": curves.severity_sum_curve,
    "orders": dots.by_order,
    "worst": dots.worst_tests,
    "classes": dots.classes,
}


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("dark", [False, True])
def test_valid_and_drawn_in_both_themes(partial, name, dark):
    figure = FIGURES[name](partial, dark=dark)
    assert figure.data
    assert figure.layout.title.text


@pytest.mark.parametrize("name", FIGURES)
def test_a_tomogram_without_surrogate_can_be_drawn(tomogram, name):
    assert FIGURES[name](tomogram(3, max_order=1, settings=EstimatorSettings(None))).data


# -- heat maps ----------------------------------------------------------------------------------------------------


def test_heatmap_is_the_mean_over_the_rest_or_a_slice(full):
    rates = full.estimate
    assert heatmaps.heatmap(full, "a", "c").data[0].z == pytest.approx(rates.mean(axis=1).T)
    assert heatmaps.heatmap(full, "a", "c", at={"b": 2}).data[0].z == pytest.approx(rates[:, 2, :].T)


def test_heatmap_marks_what_was_not_measured(partial):
    text = np.array(heatmaps.heatmap(partial, "a", "b", at={"c": 1}).data[0].text)
    assert all("○" in cell for cell in text[1:, 1:].ravel())
    assert not any("○" in cell for cell in (*text[0], *text[:, 0]))
    assert "○ predicted" in heatmaps.heatmap(partial, "a", "b", at={"c": 1}).layout.title.subtitle.text


def test_heatmap_of_a_region(full):
    figure = heatmaps.heatmap(full, "a", "b", chosen=full.query_engine.select("a >= 2 and b <= 1"))
    shown = ~np.isnan(np.array(figure.data[0].z, float))
    assert np.array_equal(shown, [[False, False, True, True]] * 2 + [[False] * 4] * 2)
    assert figure.data[0].hovertext[3][0] == "not selected"


def test_heatmap_ticks_are_severities(partial):
    assert list(heatmaps.heatmap(partial, "a", "b").layout.xaxis.ticktext) == ["0", "1", "3", "5"]


# -- voxels -------------------------------------------------------------------------------------------------------


def cubes(trace):
    """Centre, side and colour of each cube of a mesh, worked out from its triangles alone."""
    corners = np.stack([trace.x, trace.y, trace.z], axis=1)
    triangles = np.stack([trace.i, trace.j, trace.k], axis=1).reshape(-1, 12, 3)
    for faces in triangles:
        used, colour = corners[np.unique(faces)], np.asarray(trace.intensity)[np.unique(faces)]
        assert len(used) == 8
        assert np.ptp(colour) == 0
        edges = np.linalg.norm(corners[faces[:, [0, 1, 2]]] - corners[faces[:, [1, 2, 0]]], axis=2)
        area = 0.5 * np.linalg.norm(
            np.cross(corners[faces[:, 1]] - corners[faces[:, 0]], corners[faces[:, 2]] - corners[faces[:, 0]]), axis=1
        )
        side = float(edges.min())
        assert area.sum() == pytest.approx(6 * side**2, rel=1e-4)  # closed: the faces are all there, none twice
        yield tuple(np.rint(used.mean(axis=0)).astype(int)), side, float(colour[0])


def test_voxels_are_cubes_at_their_severities(partial):
    figure = voxels.voxels(partial)
    found = {}
    for trace in figure.data:
        if trace.type == "mesh3d":
            for place, side, colour in cubes(trace):
                found[place] = trace.name
                assert colour == pytest.approx(partial.estimate[place], abs=1e-6)
                assert side == pytest.approx(voxels.SIDE[SOURCES.index(trace.name)], rel=1e-4)
    assert len(found) == partial.space.size
    for place, source in found.items():
        assert (source == "measured") == (np.count_nonzero(place) <= 2)


def test_voxels_of_a_region(full):
    figure = voxels.voxels(full, chosen=full.query_engine.select("a == 3 and b == 2"))
    mesh, rest = figure.data[0], figure.data[-1]
    assert sorted(place for place, _, _ in cubes(mesh)) == [(3, 2, c) for c in range(4)]
    assert rest.name == "not selected"
    assert len(rest.x) == full.space.size - 4
    assert [full.space.configuration(int(i)) for i in np.unique(mesh.customdata)] == [(3, 2, c) for c in range(4)]


def test_voxels_of_more_axes(tomogram):
    four = tomogram(4, (0, 1, 2))
    mean = {place: colour for place, _, colour in cubes(voxels.voxels(four, ("d", "a", "b")).data[0])}
    sliced = {place: colour for place, _, colour in cubes(voxels.voxels(four, ("d", "a", "b"), at={"c": 2}).data[0])}
    for d, a, b in itertools.product(range(3), repeat=3):
        assert mean[d, a, b] == pytest.approx(four.estimate[a, b, :, d].mean(), abs=1e-6)
        assert sliced[d, a, b] == pytest.approx(four.estimate[a, b, 2, d], abs=1e-6)


@pytest.mark.parametrize("axes", [("a", "b"), ("a", "b", "b"), ("a", "b", "zoom")])
def test_voxels_need_three_axes(full, axes):
    with pytest.raises(InputError, match="ax"):
        voxels.voxels(full, axes)


def test_heatmap_needs_two_axes(full):
    with pytest.raises(InputError, match="two different"):
        heatmaps.heatmap(full, "a", "a")


# -- curves -------------------------------------------------------------------------------------------------------


def lines(figure):
    return {trace.name: trace for trace in figure.data if trace.mode == "lines+markers"}


def test_curves(full):
    alone, among = lines(curves.severity_curves(full, alone=True)), lines(curves.severity_curves(full))
    assert list(alone["b"].y) == pytest.approx(full.estimate[0, :, 0])
    assert list(among["b"].y) == pytest.approx(full.estimate.mean(axis=(0, 2)))
    assert list(lines(curves.severity_curves(full, ["c"]))) == ["c"]


def test_sum_curve(full):
    curve = lines(curves.severity_sum_curve(full))["severity sum"]
    total = np.sum(np.indices(full.space.shape), axis=0)
    assert list(curve.y) == pytest.approx([full.estimate[total == s].mean() for s in curve.x])


def test_bands_hold_the_intervals(tomogram):
    found = tomogram(2, settings=EstimatorSettings(population="future"))
    figure = curves.severity_curves(found, ["a"], alone=True)
    band = next(trace for trace in figure.data if trace.fill == "toself")
    low, high = found.low[:, 0], found.high[:, 0]
    assert list(band.y)[:-1] == pytest.approx([*low, *high[::-1]])


def test_no_interval_no_band(partial):
    bands = [trace for trace in curves.severity_curves(partial).data if trace.fill == "toself"]
    assert len(bands) == 3
    assert all(set(band.x) <= {0.0, None} for band in bands)  # with the axis off, all tests were measured


def test_predicted_points_are_hollow(tomogram):
    found = tomogram(2)
    del found.outcomes._rows[found.space.id((2, 0))]
    symbols = lines(curves.severity_curves(found, alone=True))["a"].marker.symbol
    assert list(symbols) == ["circle", "circle", "circle-open", "circle"]


# -- distributions, dots, sweeps ----------------------------------------------------------------------------------


def test_orders_show_every_test_once(partial):
    figure = dots.by_order(partial)
    points = [trace for trace in figure.data if trace.type == "scatter" and trace.mode == "markers"]
    assert {trace.name for trace in points} == {"measured", "predicted"}
    ids = np.concatenate([trace.customdata for trace in points])
    assert sorted(ids) == list(range(partial.space.size))
    orders = [partial.space.order(partial.space.configuration(int(i))) for i in ids]
    x = np.concatenate([trace.x for trace in points])
    assert np.array_equal(np.rint(x), orders)


def test_worst_tests_in_order(partial):
    figure = dots.worst_tests(partial, count=7)
    shown = sorted((y, x) for trace in figure.data for x, y in zip(trace.x, trace.y, strict=True))
    assert [x for _, x in shown] == pytest.approx(np.sort(partial.estimate.reshape(-1))[:7])
    bars = {trace.name: trace.error_x.array for trace in figure.data}
    assert np.isnan(np.array(bars["predicted"], float)).all()


def test_classes_are_escaped(full):
    figure = dots.classes(full)
    assert set(figure.layout.yaxis.ticktext) == {"&lt;i&gt;cat&lt;/i&gt;", "dog"}


def test_no_classes_no_figure(tomogram):
    assert dots.classes(replace(tomogram(2), labels=None)) is None


def test_sweeps():
    found = [sweep(lambda level: 1 - level / 2, 0, 1, threshold=at).as_dict() for at in (0.8, 0.6)]
    figure = sweeps.sweep_curves("<b>noise</b>", found)
    line = figure.data[1]
    assert list(line.y) == pytest.approx([1 - level / 2 for level in line.x])
    assert {shape.y0 for shape in figure.layout.shapes if shape.type == "line"} == {0.8, 0.6}
    shaded = [(shape.x0, shape.x1) for shape in figure.layout.shapes if shape.type == "rect"]
    assert any(low <= 0.4 <= high for low, high in shaded)  # where 1 - level / 2 crosses 0.8
    assert "<b>" not in figure.layout.title.text
