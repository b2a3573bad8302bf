"""Every command on runs of a space in which the order of application counts, made by default."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from testifai import cli
from testifai.space import LISTED

SPEC = """
[space]
order_sensitive = true
noise = { use = "mnist_c.shot_noise", severities = [0, 3, 5] }
bright = { use = "mnist_c.brightness", severities = [0, 2, 4] }
blur = { use = "mnist_c.motion_blur", severities = [0, 2, 4] }
[scan]
budget = 1600
seed = SEED
keep = ["predicted"]
[[gate]]
query = "before(noise, bright) and order == 2"
at_least = 0.1
"""


@pytest.fixture(scope="module")
def ready(digits):
    """A folder with two specs and their finished runs."""
    folder = digits(60, a=SPEC.replace("SEED", "0"), b=SPEC.replace("SEED", "1"))
    for name in "ab":
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", ["testifai", "run", str(folder / f"{name}.toml"), "--json"])
            with pytest.raises(SystemExit) as ended:
                cli.main()
            assert not ended.value.code
    return folder


def test_every_command_answers(command, folder):
    code, out, _ = command("check", "a.toml")
    assert (code, "79 of 79 tests" in out) == (0, True)
    asked = {"before(noise, bright)": 28, "before(bright, noise)": 28, "not before(noise, bright)": 51}
    for query, tests in asked.items():
        code, out, error = command("query", "a.db", query, "--json")
        assert (code, error) == (0, "")
        assert json.loads(out)["tests"] == tests
    code, out, error = command("query", "a.db", "before(noise, blr)")
    assert (code, "did you mean 'blur'" in error, len(error.splitlines())) == (2, True, 1)

    code, out, _ = command("show", "a.db")
    assert (code, "order of application: " in out) == (0, True)
    code, out, _ = command("show", "a.db", "--json")
    shown = json.loads(out)
    assert [len(shown["by_order"]), shown["by_order"]["3"]["tests"]] == [4, 48]
    assert all(one["before"]["robustness"] > one["after"]["robustness"] for one in shown["precedences"])

    code, out, error = command("report", "a.db", "-o", "r.html", "--md", "r.md", "--junit", "r.xml")
    assert code == 0, error
    assert "Order of application: " in (folder / "r.md").read_text(encoding="utf-8")
    code, out, error = command("compare", "a.db", "b.db")
    assert (code, "79 tests run in both" in out) == (0, True), error
    code, out, error = command("export", "a.db", "-o", "a.csv")
    with (folder / "a.csv").open() as table:
        rows = list(csv.DictReader(table))
    assert len(rows) == 79
    assert {"noise_place", "bright_place", "blur_place"} <= rows[0].keys()


def test_the_explorer_shows_it(folder):
    pytest.importorskip("dash")
    from testifai.app import figures
    from testifai.app.state import Runs

    runs = Runs([folder / "a.db", folder / "b.db"])
    assert runs.answer(0, "before(noise, blur)").tests == 28
    for view in ("space", "voxels", "pairs", "curves", "tests", "errors", "compare"):
        wanted = figures.FigureRequest(0, view, "before(noise, blur)", ("noise", "bright", "blur"), against=1, at={})
        assert dict(figures.of_view(runs, wanted, dark=False)), view


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
LARGE = """
[model]
python = "order_commands_case:model"
classes = 2
outputs = "labels"
[data]
npz = "rows.npz"
[space]
order_sensitive = true
{axes}
[scan]
budget = 1500
"""


@pytest.mark.slow
def test_a_space_too_large_to_list(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, 200)
    np.savez("rows.npz", inputs=np.column_stack([generator.random(200), labels]), labels=labels)
    (tmp_path / "order_commands_case.py").write_text(CASE)
    axes = "\n".join(f'a{number} = {{ python = "order_commands_case:weak" }}' for number in range(5))
    (tmp_path / "large.toml").write_text(LARGE.format(axes=axes))
    code, _, error = call("run", "large.toml", "--json")
    assert code == 0, error
    code, out, error = call("query", "large.db", "before(a0, a1) and order <= 4", "--json")
    assert (code, error) == (0, "")
    found = json.loads(out)
    assert found["tests"] * 2 == sum(25 * ways for ways in (2, 3 * 5 * 6, 3 * 25 * 24))  # both of them, and more
    assert found["low"] <= found["robustness"] <= found["high"]
    assert LISTED < 458_026
    code, out, error = call("show", "large.db")
    assert (code, "458,026 tests" in out) == (0, True), error
