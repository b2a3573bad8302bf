"""`make examples`: what ran, what was skipped and why, what failed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def folder(tmp_path, monkeypatch, runner):
    monkeypatch.setattr(runner, "EXAMPLES", tmp_path)
    (tmp_path / "good.py").write_text("open('left_behind', 'w').close()\nprint('fine …')\n", encoding="utf-8")
    (tmp_path / "lacking.py").write_text("print('skipped: needs a library')\n", encoding="utf-8")
    return tmp_path


def call(runner, monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["run.py", *words])
    with pytest.raises(SystemExit) as ended:
        runner.main()
    return ended.value.code, capsys.readouterr().out


def test_seconds_and_reasons_are_listed(folder, runner, monkeypatch, capsys):
    code, out = call(runner, monkeypatch, capsys)
    first, second, last = out.splitlines()
    assert code == 0
    assert first.startswith("good") and first.endswith(" s of processors)")  # noqa: PT018
    assert second.startswith("lacking") and second.endswith("skipped: needs a library")  # noqa: PT018
    assert last == "1 examples ran, 1 skipped, 0 failed"
    assert sorted(path.name for path in folder.iterdir()) == ["good.py", "lacking.py"]


def test_a_failure_is_shown_and_the_rest_still_runs(folder, runner, monkeypatch, capsys):
    (folder / "bad.py").write_text("print('before')\nraise ValueError('why')\n", encoding="utf-8")
    code, out = call(runner, monkeypatch, capsys)
    assert code == 1
    assert "before" in out
    assert "ValueError: why" in out
    assert "failed with exit code 1" in out
    assert out.endswith("1 examples ran, 1 skipped, 1 failed\n")


def test_names_choose_and_an_unknown_one_is_refused(folder, runner, monkeypatch, capsys):
    assert call(runner, monkeypatch, capsys, "good", "--show")[1].startswith("fine …\n")
    assert call(runner, monkeypatch, capsys, "god")[0] == "no example 'god'; there are good, lacking"


@pytest.mark.parametrize("name", ["pytorch_images", "hugging_face_folder"])
def test_without_torch_an_example_says_so_and_ends(name, tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('not here')")
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": paths},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("skipped: needs ")
    assert done.stdout.count("\n") == 1
