"""testifai hunt, through the entry point: failures in a table, and a run file that stays as it is."""

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
budget = 800
"""


@pytest.fixture(scope="module")
def ready(finished):
    return finished(200, SPEC)


def test_failures_are_listed_and_the_run_is_left_alone(command, folder):
    before = (folder / "spec.db").read_bytes()
    code, out, _ = command("hunt", "spec.db", "--budget", "100", "--region", "zoom <= 4")
    assert code == 0
    assert "100 inferences" in out
    assert "say nothing of others" in out
    with (folder / "spec-failures.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows
    assert all(int(row["zoom"]) <= 4 for row in rows)
    assert (folder / "spec.db").read_bytes() == before


def test_json_has_the_curve(command, folder):
    code, out, _ = command("hunt", "spec.db", "--budget", "40", "--once", "-o", "f.csv", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["inferences"] == 40
    assert found["curve"][-1]["failures"] == found["failures"] == found["inputs"]


def test_mistakes_are_one_line(command, folder):
    for arguments in (("spec.toml",), ("spec.db", "--budget", "0"), ("spec.db", "--region", "zom <= 2")):
        code, _, err = command("hunt", *arguments)
        assert code == 2
        assert len(err.splitlines()) == 1


def test_nothing_is_written_over_the_run_and_nothing_run_for_a_file_that_cannot_be(command, folder):
    before = (folder / "spec.db").read_bytes()
    for out in ("spec.db", "none/f.csv"):
        code, _, err = command("hunt", "spec.db", "--budget", "20", "-o", out)
        assert code == 2
        assert f"--out: {out} is not accepted" in err
    assert (folder / "spec.db").read_bytes() == before
