"""Figures hold the numbers they show, and the page needs nothing else."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.locality.synthetic import expected_table
from tests.locality.test_explain import worked_example

from testifai.locality import Local, compose
from testifai.locality.explain import explain
from testifai.present.figures.locality import confusions, heatmap, local_to_global
from testifai.report.page import render_errors

pytest.importorskip("plotly")


def with_all_kinds(classes=6):
    """A sink, a confusion and a class that fails more."""
    truth = np.tile(np.eye(classes) * 0.94 + 0.06 / classes, (3, 2, 1, 1))
    for place in range(classes - 1):
        truth[0, 1, place, [place, classes - 1]] += [-0.3, 0.3]
    truth[1, :, 2, [2, 1]] += np.array([[-0.2], [0.2]])
    truth[2, 1, 3] = 0.4 / (classes - 1)
    truth[2, 1, 3, 3] = 0.6
    return expected_table(truth, 300)


def test_the_heat_map_shows_rates_and_intervals():
    local = with_all_kinds()
    trace = heatmap(local).data[0]
    rates = local.by_class_and_property()
    np.testing.assert_allclose(np.array(trace.z), rates.rate)
    assert f"{rates.low[2, 1]:.2f} … {rates.high[2, 1]:.2f}" in trace.text[2][1]
    assert list(heatmap(local).layout.yaxis.ticktext) == list(local.classes)


def test_every_trend_is_a_path_from_its_class_to_what_it_is_read_as():
    found = explain(with_all_kinds(), arity=1)
    assert [one.kind for one in found.trends] == ["sink", "confusion", "class"]
    figure = confusions(found)
    marks = list(zip(*(figure.data[-1][key] for key in ("x", "text", "y")), strict=True))
    left, middle, right = ({text: round(y, 6) for x, text, y in marks if x == column} for column in range(3))
    paths = [trace for trace in figure.data if trace.customdata is not None]
    assert len(paths) == sum(len(one.classes) for one in found.trends)
    ends = {(trace.customdata[0], round(trace.y[0], 6), round(trace.y[-1], 6)) for trace in paths}
    for rank, one in enumerate(found.trends, start=1):
        answer = "several" if one.kind == "class" else one.answers[0]
        assert all((rank, left[name], right[answer]) in ends for name in one.classes)
    assert set(middle) == {one.property for one in found.trends}


@pytest.mark.parametrize("system", [None, "adder"])
def test_local_leads_to_global(system):
    local = with_all_kinds()
    composed = compose(local) if system else None
    figure = local_to_global(local, composed)
    labels = list(figure.data[-1].text)
    assert (
        f"system  {composed.overall.rate:.3f}" in labels
        if composed
        else f"overall  {local.overall().rate:.3f}" in labels
    )
    assert f"p1  {local.by_property().rate[1]:.3f}" in labels
    assert len(figure.data) == 1 + 6 * 3 + (3 + 3 if composed else 3)


def test_many_classes_are_cut_to_the_weakest():
    local = expected_table(np.tile(np.eye(40) * 0.9 + 0.1 / 40, (1, 1, 1, 1)), 50)
    assert "the 30 weakest of 40 classes" in local_to_global(local).layout.title.subtitle.text


def test_no_trend_is_drawn_as_none():
    found = explain(expected_table(np.tile(np.eye(4) * 0.6 + 0.1, (1, 2, 1, 1)), 50))
    assert "no trend" in confusions(found).layout.title.subtitle.text


def test_dark_changes_the_layout_alone():
    local = with_all_kinds()
    light, dark = heatmap(local), heatmap(local, dark=True)
    assert light.data == dark.data
    assert light.layout.font.color != dark.layout.font.color


def test_names_are_shown_as_they_are():
    local = Local.from_counts(["<b>a</b>", "b", "c"], ["<i>"], [[1]], [[[[50, 45, 5], [2, 96, 2], [2, 2, 96]]]])
    found = explain(local)
    page = render_errors(found, "<run>.db")
    assert found.trends
    assert "<b>a</b>" not in page
    assert "<run>" not in page
    assert all("<b>a" not in str(trace.hovertext) for trace in confusions(found).data)


def test_the_page_is_whole_and_equal_for_equal_summaries():
    page = render_errors(explain(worked_example()), "run.db")
    assert page == render_errors(explain(worked_example()), "run.db")
    assert "Class 5 under noise at severity 1 is read as 6" in page
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=", page)
