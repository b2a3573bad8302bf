"""A whole suite from the command line: spec, run, scores, report."""

from __future__ import annotations

import json

import pytest

SPEC = """
[space]
suite = "mnist_c"
[scan]
strategy = "full"
"""


@pytest.fixture(scope="module")
def ready(finished):
    return finished(40, SPEC)


def test_scores_with_intervals(command):
    code, out, _ = command("show", "spec.db", "--benchmark", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["suite"] == "mnist_c"
    assert found["missing"] == []
    assert found["accuracy"]["low"] <= found["accuracy"]["value"] <= found["accuracy"]["high"]
    assert found["worst"]["value"] == min(one["value"] for one in found["perturbations"].values())
    code, out, _ = command("show", "spec.db", "--benchmark")
    assert code == 0
    assert "mean accuracy over" in out
    assert "by severity" in out
    code, out, _ = command("show", "spec.db", "--benchmark", "--baseline", "spec.db", "--json")
    assert code == 0
    assert json.loads(out)["mce"]["value"] == pytest.approx(1)


def test_two_at_once_are_not_in_the_space(command):
    code, _, err = command("query", "spec.db", "zoom > 1 and brightness > 1")
    assert code == 2
    assert "selects no test (of at most 1 at once" in err


def test_the_report_has_them(command, folder):
    code, _, _ = command("report", "spec.db", "--examples", "0")
    page = (folder / "spec.html").read_text()
    assert code == 0
    assert "Standard scores of mnist_c" in page
    assert "on up to one axis at once" in page


def test_a_suite_that_is_not_there_is_one_line(command):
    code, _, err = command("show", "spec.db", "--benchmark", "--suite", "imagenet_c")
    assert code == 2
    assert "no suite of this run; known: mnist_c" in err
