"""A run file that is deleted, renamed or replaced while the run goes on: nothing measured is lost, and it is said."""

import shutil
import sys
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import testifai as ta
from testifai import cli
from testifai.runs.store import Store
from testifai.session.stored_runs import open_run

NUMBER = count()
MODEL = """
from itertools import count
import os, shutil
from pathlib import Path

HERE, CALLS = Path(__file__).parent, count(1)

def model(rows):
    if next(CALLS) == 37 and (HERE / "now").exists():
        exec((HERE / "now").read_text(), {"run": HERE / "run.db", "os": os, "shutil": shutil})
    return (rows[:, 0] > 0.5).astype(int)
"""
AXES = "import testifai as ta\nshift = ta.Perturbation('shift', lambda x, by, rng: x + by, [0, 0.1, 0.2, 0.3, 0.4])\n"


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    number = next(NUMBER)  # imports are kept
    rows = np.random.default_rng(0).random((150, 3)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=rows, y=(rows[:, 0] > 0.5).astype(int))
    (tmp_path / f"lost_model_{number}.py").write_text(MODEL)
    (tmp_path / f"lost_axes_{number}.py").write_text(AXES)
    spec = tmp_path / "run.toml"
    axis = f'{{ python = "lost_axes_{number}:shift" }}'
    spec.write_text(
        f'[model]\npython = "lost_model_{number}:model"\n[data]\nnpz = "data.npz"\n'
        f"[space]\na = {axis}\nb = {axis}\n[scan]\nstrategy = 'full'\nbatch_size = 25\nkeep = ['predicted']\n"
    )
    return spec


@pytest.fixture
def command(monkeypatch, capfd):
    def run(*arguments: object) -> tuple[int, str, list[str]]:
        monkeypatch.setattr(sys, "argv", ["testifai", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capfd.readouterr()
        return int(ended.value.code or 0), out, [line for line in err.splitlines() if not line.startswith("note:")]

    return run


@pytest.mark.parametrize(
    ("now", "word", "save_every"),
    [
        ("run.unlink()", "was deleted", 0.0),
        ("run.unlink()", "was deleted", 60.0),
        ("run.rename(run.with_name('elsewhere.db'))", "was deleted", 0.0),
        ("run.unlink(); run.write_text('something else')", "was replaced by another file", 0.0),
        (
            "copy = run.with_name('copy'); shutil.copy(run, copy); copy.replace(run)",
            "was replaced by another file",
            60.0,
        ),
        ("[file.unlink() for file in run.parent.glob('run.db*')]", "was deleted", 0.0),
    ],
)
def test_what_was_measured_is_written_beside_and_can_be_continued(spec, command, monkeypatch, now, word, save_every):
    monkeypatch.setattr("testifai.session.observers.SAVE_EVERY", save_every)
    (spec.parent / "now").write_text(now)
    code, out, lines = command("run", spec)
    copy = spec.parent / "run.recovered-1.db"
    assert code == 2
    assert "Saved" not in out
    (line,) = lines
    assert f"run.db {word} while the run went on; all that was measured is in {copy}" in line
    found = open_run(copy)
    assert found.inferences >= 25 * 20  # without the probe's calls and the batch in flight
    if save_every:  # noticed at the end
        assert found.inferences == 25 * 150
    (spec.parent / "now").unlink()
    whole = spec.parent / "whole.db"
    again = command("run", spec, "--out", copy)
    assert again[0] == 0, again
    assert command("run", spec, "--out", whole)[0] == 0
    for run in (copy, whole):
        assert command("export", run, "-o", run.with_suffix(".csv"))[0] == 0
    assert copy.with_suffix(".csv").read_bytes() == whole.with_suffix(".csv").read_bytes()


def test_a_file_that_is_there_already_is_left_alone(spec, command):
    (spec.parent / "now").write_text("run.unlink()")
    (spec.parent / "run.recovered-1.db").write_text("mine")
    code, _, lines = command("run", spec)
    assert code == 2
    assert "run.recovered-2.db" in lines[0]
    assert (spec.parent / "run.recovered-1.db").read_text() == "mine"


def test_a_write_ahead_log_that_is_deleted_costs_nothing(spec, command):
    (spec.parent / "now").write_text("run.with_name('run.db-wal').unlink()")
    code, out, _ = command("run", spec)
    assert code == 0
    assert "Saved" in out
    assert open_run(spec.with_suffix(".db")).inferences == 25 * 150


def test_a_folder_that_is_gone_leaves_the_current_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "folder"
    folder.mkdir()
    store = Store.create_or_open(folder / "run.db")
    store.put(inputs=3)
    shutil.rmtree(folder)
    with pytest.raises(ta.InputError, match="was deleted while the run went on; all that was measured is in "):
        store.put(classes=["a", "b"])
    store.close()
    with Store.open(tmp_path / "run.recovered-1.db") as copy:
        assert (copy.get("inputs"), copy.get("classes")) == (3, ["a", "b"])


def test_a_model_that_changes_the_current_folder_is_no_loss(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Store.create_or_open(Path("run.db")) as store:
        (tmp_path / "other").mkdir()
        monkeypatch.chdir(tmp_path / "other")
        store.put(inputs=3)
