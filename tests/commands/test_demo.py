"""The embedded example against the figures of the paper's Table 2 and a recount by hand."""

import json
import time

import numpy as np
import pytest

from testifai.commands import example as demo

MEASURED = [19, 15, 15, 9, 15, 9, 9, 0, 7, 37, 61, 91]
INFERRED = [8, 12, 12, 18, 12, 18, 18, 27, 1, 27, 64, 125]


@pytest.fixture(scope="module")
def result():
    start = time.monotonic()
    made = demo.run()
    assert time.monotonic() - start < 60
    return made


def test_table_2_is_the_octants_and_four_cubes():
    queries = demo.table_2(("a", "b", "c"))
    assert list(queries) == [f"Q{i}" for i in range(1, 13)]
    assert queries["Q1"] == "a <= 2 and b <= 2 and c <= 2"
    assert queries["Q5"] == "a >= 3 and b <= 2 and c <= 2"
    assert queries["Q8"] == "a >= 3 and b >= 3 and c >= 3"
    assert queries["Q9"] == "a <= 1 and b <= 1 and c <= 1"
    assert queries["Q12"] == "a <= 5 and b <= 5 and c <= 5"


def test_measured_and_inferred_are_the_published_counts(result):
    assert [row.answer.measured for row in result.rows] == MEASURED
    assert [row.answer.inferred for row in result.rows] == INFERRED
    assert [row.answer.tests for row in result.rows] == [m + i for m, i in zip(MEASURED, INFERRED, strict=True)]


def test_the_truth_is_full_tomography(result):
    full = result.full
    assert full.inferences == 216 * 1000
    assert (full.trials == 1000).all()
    grid = np.indices((6, 6, 6))
    for row in result.rows[8:]:
        most = int(row.query[-1])
        assert row.truth == pytest.approx(full.estimate[(grid <= most).all(axis=0)].mean())
    octants = [full.estimate[np.ix_(*[[3, 4, 5] if q >> s & 1 else [0, 1, 2] for s in (2, 1, 0)])] for q in range(8)]
    assert [row.truth for row in result.rows[:8]] == pytest.approx([octant.mean() for octant in octants])
    assert full.base > 0.95


def test_errors_and_savings_add_up(result):
    for row in result.rows:
        assert row.error == pytest.approx(row.answer.robustness - row.truth)
    assert result.saved == pytest.approx(1 - result.partial.inferences / 216_000)
    # At least every test of order three is saved.
    assert 125 / 216 < result.saved < 1
    close = np.abs(result.partial.estimate - result.full.estimate) <= 0.1
    assert result.within == pytest.approx(close.mean())
    assert 0.5 < result.within <= 1
    assert (result.partial.trials > 0).sum() == 91


def test_the_result_as_plain_data(result):
    found = json.loads(json.dumps(result.as_dict()))
    assert (found["inputs"], found["inferences_full"]) == (1000, 216_000)
    assert [query["name"] for query in found["queries"]] == [f"Q{i}" for i in range(1, 13)]
    assert [query["measured"] for query in found["queries"]] == MEASURED
    assert found["queries"][7]["low"] is None
    assert found["queries"][7]["error"] == pytest.approx(result.rows[7].error)
    assert found["saved"] == result.saved


def test_the_table_shows_every_query(result):
    import io

    from rich.console import Console

    from testifai.commands import example

    out = Console(file=io.StringIO(), width=200)
    example.show(out, result)
    text = out.file.getvalue()
    lines = {line.split()[0]: line.split() for line in text.splitlines() if line.startswith("Q")}
    for row in result.rows:
        answer = row.answer
        numbers = [f"{answer.measured}", f"{answer.inferred}", f"{answer.robustness:.3f}", f"{row.truth:.3f}"]
        assert lines[row.name][-5:] == [*numbers, f"{row.error:+.3f}"]
    assert f"{result.saved:.0%} saved" in text
