"""HTML for notebooks: well-formed, complete, escaped."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

import testifai as ta
from testifai.present.notebook import answer_html, tomogram_html
from testifai.runs.outcomes import Outcomes, visiting_order
from testifai.tomogram import Answer, Excluded, Tomogram


def add(x, by, rng):
    return x + by


SPACE = ta.Space(
    {"shift": ta.Perturbation("shift", add, [0, 0.3, 0.6]), "push": ta.Perturbation("push", add, [0, 0.2])}
)


@pytest.fixture(scope="module")
def run():
    inputs = np.random.default_rng(0).normal(size=(60, 1))
    return ta.scan(
        lambda x: (x[:, 0] > 1).astype(int), (inputs, np.zeros(60, int)), SPACE, strategy="full", population="data"
    )


def tables(html):
    """Every table as rows of texts; XML's parser refuses what is not closed or escaped."""
    root = ElementTree.fromstring(f"<page>{html}</page>")
    return [
        [["".join(cell.itertext()).strip() for cell in row] for row in table.iter("tr")] for table in root.iter("table")
    ]


def test_a_tomogram_in_tables(run):
    by_order, by_axis, worst = tables(tomogram_html(run))
    assert by_order[0] == ["order", "tests", "robustness", "95 % interval"]
    assert [row[:2] for row in by_order[1:]] == [["0", "1"], ["1", "3"], ["2", "2"]]
    assert [row[2] for row in by_order[1:]] == [f"{found.robustness:.3f}" for found in run.by_order().values()]
    assert by_axis[0] == ["axis", "0", "1", "2"]
    assert by_axis[2] == ["push", f"{run.estimate[:, 0].mean():.3f}", f"{run.estimate[:, 1].mean():.3f}", ""]
    assert worst[1] == ["shift 2, push 1", f"{run.estimate.min():.3f}", "exact"]
    assert f"{run.inferences:,} inferences on 60 inputs" in tomogram_html(run)


def test_a_tomogram_without_outcomes_is_a_line():
    html = tomogram_html(Tomogram(SPACE, Outcomes(60), visiting_order(60, 0)))
    assert "0 run on all inputs, 0 on some, 6 not run; 0 inferences" in html
    assert tables(html) == []


def test_what_a_limit_on_quality_leaves_out_is_said():
    found = Answer(0.5, 0.4, 0.6, -0.1, 1, 1, 0, (), excluded=Excluded(7, 2, 0.25, 0.2, 0.3))
    html = answer_html(found)
    assert "7 tests excluded as implausible: 0.250  (0.200 … 0.300)  on them; with 2 it is not sure" in html


def test_an_answer_of_a_tomogram_names_its_tests_and_says_what_was_asked(run):
    answer = run.query("shift == 2")
    (named,), (plain,) = tables(answer_html(answer)), tables(answer_html(replace(answer, info=None)))
    assert (named[1][0], plain[1][0]) == ("shift 2, push 1", "(2, 1)")
    assert "for shift == 2" in answer_html(answer)
    assert named[1][1:] == plain[1][1:]
    assert f"<b>{answer.robustness:.3f}</b> (exact)" in answer_html(answer)


def test_what_does_not_exist_is_said():
    nan = float("nan")
    html = answer_html(Answer(nan, nan, nan, nan, 2, 0, 2, (((1, 0), nan, nan, nan),)))
    assert "no interval" in html
    assert "nan" not in html


def test_disagreement_is_shown():
    free = (0.5, 0.4, 0.6)
    html = answer_html(Answer(*free, 0.0, 2, 0, 2, (), model_free=free, disagrees=True, modelled=(0.9, 0.8, 0.95)))
    assert html.index("<b>0.500</b> (0.400 … 0.600)") < html.index("0.900 (0.800 … 0.950) by the smooth surface")
    assert "the answer is from the trials alone" in html
    assert tables(html) == []


def test_names_are_escaped(run, monkeypatch):
    """Axis names are identifiers, and escaped all the same."""
    monkeypatch.setattr("testifai.space.Space.words", lambda space, sigma: "<script>alert(1)</script>")
    html = tomogram_html(run)
    assert "<script>" not in html
    assert tables(html)[2][1][0] == "<script>alert(1)</script>"
