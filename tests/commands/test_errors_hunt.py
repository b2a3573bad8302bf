"""`testifai errors --hunt`: failures in a table, and a run file that is unchanged."""

from __future__ import annotations

import csv
import json

import pytest

SPEC = """
[space]
zoom = "mnist_c.zoom"
brightness = "mnist_c.brightness"
[scan]
strategy = "ordered"
budget = 400
"""


@pytest.fixture(scope="module")
def ready(finished):
    return finished(80, SPEC)


def test_failures_are_listed_and_the_run_is_left_alone(command, folder):
    before = (folder / "spec.db").read_bytes()
    code, out, _ = command("errors", "spec.db", "--hunt", "60", "--region", "zoom <= 4")
    assert code == 0
    assert "60 inferences" in out
    assert "say nothing of others" in out
    with (folder / "spec-failures.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows
    assert all(int(row["zoom"]) <= 4 for row in rows)
    assert (folder / "spec.db").read_bytes() == before


def test_json_has_the_curve(command, folder):
    code, out, _ = command("errors", "spec.db", "--hunt", "40", "--once", "--failures", "f.csv", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["inferences"] == 40
    assert found["curve"][-1]["failures"] == found["failures"] == found["inputs"]


def test_mistakes_are_one_line(command, folder):
    for arguments in (
        ("spec.toml", "--hunt", "9"),
        ("spec.db", "--hunt", "0"),
        ("spec.db", "--hunt", "9", "--region", "zom <= 2"),
        ("spec.db", "--once"),
        ("spec.db", "--hunt", "9", "--html", "page.html"),
    ):
        code, _, err = command("errors", *arguments)
        assert code == 2
        assert len(err.splitlines()) == 1


def test_nothing_is_written_over_the_run_and_nothing_run_for_a_file_that_cannot_be(command, folder):
    before = (folder / "spec.db").read_bytes()
    for out, words in (("spec.db", "must end in .csv"), ("none/f.csv", "the folder none does not exist")):
        code, _, err = command("errors", "spec.db", "--hunt", "20", "--failures", out)
        assert code == 2
        assert words in err
    assert (folder / "spec.db").read_bytes() == before
