"""Commands on a run of a space with more tests than are listed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from testifai.space import LISTED

CASE = """
import numpy as np

from testifai import Perturbation


def model(rows):
    return np.where(rows[:, 0] > 0, rows[:, 1], 1 - rows[:, 1]).astype(int)


def weaken(rows, severity, rng):
    rows = rows.copy()
    rows[:, 0] -= severity / 30
    return rows


weak = Perturbation("weak", weaken, range(6))
"""
SPEC = """
[model]
python = "large_commands_case:model"
classes = 2
outputs = "labels"
[data]
npz = "rows.npz"
[space]
{axes}
[scan]
strategy = {{ use = "random", tests_run = 60 }}
surrogate = "{surrogate}"
budget = 1200
[[gate]]
query = "a0 <= 2 and order <= 4"
at_least = 0.3
"""


@pytest.fixture(params=["none", "forest"])
def run(request, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, 200)
    np.savez("rows.npz", inputs=np.column_stack([generator.random(200), labels]), labels=labels)
    (tmp_path / "large_commands_case.py").write_text(CASE)
    axes = "\n".join(f'a{number} = {{ python = "large_commands_case:weak" }}' for number in range(8))
    (tmp_path / "large.toml").write_text(SPEC.format(axes=axes, surrogate=request.param))
    code, _, error = call("run", "large.toml", "-o", "large.db")
    assert code in (0, 1), error
    return call


def test_every_command_answers_and_lists_nothing(run):
    assert LISTED < 6**8
    code, out, error = run("query", "large.db", "a0 > 2 and order <= 6", "--json")
    assert (code, error) == (0, "")
    assert json.loads(out)["tests"] == 277308
    for arguments in (["show"], ["show", "--by", "severity"], ["show", "--by", "axis"], ["check"]):
        file = "large.toml" if arguments == ["check"] else "large.db"
        code, out, error = run(arguments[0], file, *arguments[1:])
        assert (code, bool(out)) == (0, True), error
    code, out, error = run("report", "large.db", "--md", "large.md", "--examples", "0")
    assert code in (0, 1), error
    code, out, _ = run("export", "large.db", "-o", "large.csv")
    assert "60 tests that were tried, of 1,679,616" in out
    with open("large.csv") as table:
        assert len(table.readlines()) == 61
    code, out, error = run("compare", "large.db", "large.db")
    assert (code, "1,679,556 not run in both are left out" in out) == (0, True), error
