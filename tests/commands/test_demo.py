"""The embedded example against the figures of the paper's Table 2 and a recount by hand."""

import io
import json
import math
import time

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from testifai.cli import app
from testifai.commands import example as demo
from testifai.errors import InputError
from testifai.present.terminal import blocks
from testifai.session.stored_runs import open_run

MEASURED = [19, 15, 15, 9, 15, 9, 9, 0, 7, 37, 61, 91]
INFERRED = [8, 12, 12, 18, 12, 18, 18, 27, 1, 27, 64, 125]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def result(folder):
    start = time.process_time()
    made = demo.run(folder)
    assert time.process_time() - start < 60
    return made


def test_table_2_is_the_octants_and_four_cubes():
    queries = demo.table_2(("a", "b", "c"))
    assert list(queries) == [f"Q{i}" for i in range(1, 13)]
    assert queries["Q1"] == "a <= 2 and b <= 2 and c <= 2"
    assert queries["Q5"] == "a >= 3 and b <= 2 and c <= 2"
    assert queries["Q8"] == "a >= 3 and b >= 3 and c >= 3"
    assert queries["Q9"] == "a <= 1 and b <= 1 and c <= 1"
    assert queries["Q12"] == "a <= 5 and b <= 5 and c <= 5"


@pytest.mark.slow
def test_measured_and_inferred_are_the_published_counts(result):
    answers = [row.answer for row in result.published.rows]
    assert [found.measured for found in answers] == MEASURED
    assert [found.inferred for found in answers] == INFERRED
    assert [found.tests for found in answers] == [m + i for m, i in zip(MEASURED, INFERRED, strict=True)]
    assert (result.published.tomogram.trials > 0).sum() == 91


@pytest.mark.slow
def test_the_truth_is_full_tomography(result):
    full, rows = result.full, result.published.rows
    assert full.inferences == 216 * 1000
    assert (full.trials == 1000).all()
    grid = np.indices((6, 6, 6))
    for row in rows[8:]:
        most = int(row.query[-1])
        assert row.truth == pytest.approx(full.estimate[(grid <= most).all(axis=0)].mean())
    octants = [full.estimate[np.ix_(*[[3, 4, 5] if q >> s & 1 else [0, 1, 2] for s in (2, 1, 0)])] for q in range(8)]
    assert [row.truth for row in rows[:8]] == pytest.approx([octant.mean() for octant in octants])
    assert full.base > 0.95


@pytest.mark.slow
def test_ours_needs_fewer_inferences_and_errs_less(result):
    published, equal, small = result.ways
    assert equal.tomogram.inferences == published.tomogram.inferences
    assert small.tomogram.inferences == demo.BUDGET == 0.03 * result.full.inferences
    assert result.saved == published.tomogram.inferences / demo.BUDGET > 10
    assert equal.mean_error < small.mean_error < published.mean_error
    assert small.largest_error < published.largest_error
    for way in result.ways:
        errors = np.array([row.answer.robustness - row.truth for row in way.rows])
        assert way.mean_error == pytest.approx(np.abs(errors).mean())
        assert way.largest_error == pytest.approx(np.abs(errors).max())
    assert published.held is None
    assert equal.held == sum(row.answer.low <= row.truth <= row.answer.high for row in equal.rows)
    assert small.held >= 8, "of 12 intervals of 95 %"


@pytest.mark.slow
def test_the_result_as_plain_data(result):
    found = json.loads(json.dumps(result.as_dict()))
    assert (found["inputs"], found["inferences_full"]) == (1000, 216_000)
    assert [query["name"] for query in found["published"]["queries"]] == [f"Q{i}" for i in range(1, 13)]
    assert [query["measured"] for query in found["published"]["queries"]] == MEASURED
    assert found["published"]["queries"][7]["low"] is None
    assert found["small"]["queries"][7]["error"] == pytest.approx(result.small.rows[7].error)
    assert found["times_fewer"] == result.saved
    assert found["worst_region"]["query"] == result.worst.query


@pytest.mark.slow
def test_the_table_shows_every_query_three_ways(result):
    out = Console(file=io.StringIO(), width=200)
    demo.show(out, result)
    text = out.file.getvalue()
    lines = {line.split()[0]: line for line in text.splitlines() if line.startswith("Q")}
    for rows in zip(*(way.rows for way in result.ways), strict=True):
        cells = [f"{row.truth:.3f}" for row in rows[:1]] + [f"{row.error:+.3f}" for row in rows]
        assert [cell for cell in lines[rows[0].name].split() if cell in cells] == cells
        half = (rows[2].answer.high - rows[2].answer.low) / 2
        assert lines[rows[0].name].endswith(f"±{half:.3f}")
        assert math.isnan(rows[0].answer.low)
        assert "no interval" in lines[rows[0].name]
    assert f"{result.saved:.0f} times fewer inferences" in text
    assert f"Worst region found: {result.worst.query}" in " ".join(text.split())
    assert blocks(result.small.tomogram)[1] in text


@pytest.mark.slow
def test_the_small_run_can_be_gone_on_with(result, folder):
    run = open_run(folder / demo.RUN)
    assert run.inferences == demo.BUDGET
    again = CliRunner().invoke(app, ["run", str(folder / demo.SPEC), "--json"])
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["inferences"] == demo.BUDGET, "nothing is run twice"


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "taken").write_text("")
    found = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "taken")])
    assert isinstance(found.exception, InputError)
    assert str(found.exception).startswith("--out: ")
    assert str(found.exception).endswith("name another folder")


@pytest.mark.parametrize("name", [demo.SPEC, demo.RUN, demo.PAGE])
def test_files_of_others_are_left_alone(tmp_path, name):
    (tmp_path / name).write_text("mine")
    found = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)])
    assert isinstance(found.exception, InputError)
    assert f"has a {name} that was not written by this command" in str(found.exception)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"
