"""A run file from someone else opens nothing and runs nothing that its spec names, until the user names the spec."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest

from testifai.data.sample import demo_data
from testifai.errors import InputError
from testifai.runs import keys, trusted_runs
from testifai.runs.merge import merge
from testifai.runs.store import Store
from testifai.session.stored_runs import open_run, reopen, source

EVIL = """
from pathlib import Path
Path(__file__).with_name('was-run').touch()

def model(batch):
    return batch
"""


@pytest.fixture
def stranger(whole_run, tmp_path, monkeypatch):
    """A received folder: a run file whose spec names code beside it, its folder given as here."""
    folder = tmp_path / "received"
    shutil.copytree(whole_run, folder)
    (folder / "evil_of_this_test.py").write_text(EVIL)
    with Store.create_or_open(folder / "spec.db") as store:
        spec = {**store.get("spec"), "model": {"python": "evil_of_this_test:model"}}
        store.put(spec=spec, folder=".")
    monkeypatch.chdir(folder)
    yield folder
    sys.modules.pop("evil_of_this_test", None)


@pytest.fixture
def here(whole_run, tmp_path):
    """A copy of the run that was made here, where it says it was."""
    shutil.copy(whole_run / "spec.db", tmp_path / "run.db")
    return tmp_path / "run.db"


def test_a_received_run_runs_no_code_whatever_lies_beside_it(stranger, call):
    # A spec that says the same lies there too, which was enough once.
    with Store.open("spec.db") as store:
        stored = store.get("spec")
    assert stored["model"] == {"python": "evil_of_this_test:model"}
    text = (stranger / "spec.toml").read_text().replace('onnx = "lenet5.onnx"', 'python = "evil_of_this_test:model"')
    (stranger / "spec.toml").write_text(text)
    code, _, err = call("report", "spec.db", "-o", "r.html", "--json")
    assert code in (0, 1)
    assert "name it with --spec SPEC.toml" in err or (stranger / "r.html").is_file()
    code, _, err = call("export", "spec.db", "--inputs", "0,0", "-o", "x.npz")
    assert code == 2
    assert err.count("\n") == 1
    assert "name it with --spec SPEC.toml" in err
    code, _, err = call("show", "spec.db", "--validity", "--examples", "sheet.png")
    assert code == 2
    code, _, err = call("errors", "spec.db", "--failures", "f.npz")
    assert code == 2
    assert not (stranger / "was-run").exists()
    assert not (stranger / "x.npz").exists()


def test_the_explorer_shows_a_received_run_without_its_inputs(stranger):
    pytest.importorskip("dash")
    from testifai.app.state import Runs

    runs = Runs([stranger / "spec.db"])
    assert runs.answer(0, "order == 0").tests == 1
    with pytest.raises(InputError, match="name it with --spec"):
        runs.session(0)
    assert not (stranger / "was-run").exists()


def test_a_report_shows_nothing_of_files_that_a_received_run_names(whole_run, tmp_path, call, monkeypatch):
    """The first line of a private file came into a report as a class name, or as a text."""
    shutil.copytree(whole_run, tmp_path / "received")
    (tmp_path / "private.csv").write_text("text,label\nmy secret,0\nanother,1\n")
    run = tmp_path / "received" / "spec.db"
    with Store.create_or_open(run) as store:
        spec = {**store.get("spec"), "data": {"csv": "../private.csv", "text": "text", "label": "label"}}
        store.put(spec=spec, folder=str(tmp_path / "received"))
    opened = []
    monkeypatch.setattr("testifai.session.assembly.session", lambda *given, **options: opened.append(given))
    code, out, _ = call("report", run, "-o", tmp_path / "r.html", "--md", tmp_path / "r.md", "--json")
    assert code in (0, 1)
    assert "was not made on this machine" in json.loads(out)["failures_note"]
    assert not opened
    assert "secret" not in (tmp_path / "r.html").read_text() + (tmp_path / "r.md").read_text()


def test_naming_the_spec_allows_it(whole_run, tmp_path, call, monkeypatch):
    monkeypatch.setenv("TESTIFAI_STATE", str(tmp_path / "another account"))
    given = ("export", whole_run / "spec.db", "--inputs", "0,0", "-o", tmp_path / "x.npz", "--limit", "3")
    assert call(*given)[0] == 2
    assert call(*given, "--spec", whole_run / "spec.toml")[0] == 0
    assert np.load(tmp_path / "x.npz")["x"].shape == (3, 28, 28)
    assert not (tmp_path / "another account").exists()  # looking at a run notes nothing


def test_a_run_made_here_is_followed_also_as_a_copy(here, whole_run):
    assert len(reopen(here).data) == 40
    data, _ = source(whole_run / "spec.local.db").data()
    assert len(data) == 40


@pytest.mark.parametrize("change", ["spec", "folder", "id", "no id"])
def test_a_copied_id_with_another_spec_is_a_strangers(here, change):
    with Store.create_or_open(here) as store:
        if change == "spec":
            store.put(spec={**store.get("spec"), "data": {"npz": "other.npz"}})
        elif change == "folder":
            store.put(folder=str(here.parent))
        else:
            store.put(id=uuid4().hex if change == "id" else None)
    with pytest.raises(InputError, match="was not made on this machine under this account"):
        reopen(here)


def test_a_run_of_an_earlier_version_is_followed_once_it_was_continued_here(whole_run, tmp_path, call):
    folder = tmp_path / "old"
    shutil.copytree(whole_run, folder)
    with Store.create_or_open(folder / "spec.db") as store:
        store.put(id=None)
    with pytest.raises(InputError, match="--spec"):
        reopen(folder / "spec.db")
    assert call("run", folder / "spec.toml")[0] in (0, 1)
    assert len(reopen(folder / "spec.db").data) == 40


def test_merged_parts_are_mine_if_the_first_is(whole_run, tmp_path, monkeypatch):
    merge([whole_run / "spec.db"], tmp_path / "mine.db")
    assert len(reopen(tmp_path / "mine.db").data) == 40
    monkeypatch.setenv("TESTIFAI_STATE", str(tmp_path / "another account"))
    merge([whole_run / "spec.db"], tmp_path / "theirs.db")
    with pytest.raises(InputError, match="was not made on this machine"):
        reopen(tmp_path / "theirs.db")


def test_the_id_is_no_part_of_what_is_exported(here, call, tmp_path):
    run = open_run(here)
    assert run.provenance[keys.ID]
    texts = [call("show", here, "--json")[1], call("report", here, "-o", tmp_path / "r.html", "--json")[1]]
    assert call("export", here, "-o", tmp_path / "a.csv")[0] == 0
    texts += [(tmp_path / name).read_text() for name in ("a.csv", "r.html")]
    assert not any(run.provenance[keys.ID] in text for text in texts)


# -- the record -------------------------------------------------------------------------------------------------------


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("TESTIFAI_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def _store(path: Path, number: int) -> tuple[str, dict[str, int], str]:
    with Store.create_or_open(path) as store:
        store.put(spec={"number": number}, folder="/somewhere")
        trusted_runs.remember(store)
        return store.get(keys.ID), store.get(keys.SPEC), store.get(keys.FOLDER)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")
def test_only_this_account_reads_and_writes_the_record(state, tmp_path):
    noted = _store(tmp_path / "a.db", 1)
    assert trusted_runs.made_here(*noted)
    assert stat.S_IMODE((state / "runs.db").stat().st_mode) == 0o600
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    (state / "runs.db").chmod(0o666)  # others may have written into it
    assert not trusted_runs.made_here(*noted)


def test_processes_note_at_the_same_time_and_the_oldest_are_dropped(state, tmp_path, monkeypatch):
    monkeypatch.setattr(trusted_runs, "MOST", 30)
    with ThreadPoolExecutor(8) as pool:
        noted = list(pool.map(lambda number: _store(tmp_path / f"{number}.db", number), range(24)))
    assert all(trusted_runs.made_here(*one) for one in noted)
    more = [_store(tmp_path / f"{number}.db", number) for number in range(24, 40)]
    assert all(trusted_runs.made_here(*one) for one in more)
    connection = sqlite3.connect(state / "runs.db")
    assert connection.execute("SELECT count(*) FROM made").fetchone()[0] == 30
    connection.close()


def test_a_record_that_cannot_be_written_or_read_is_no_error(state, tmp_path):
    state.write_text("a file where the folder should be")
    assert not trusted_runs.made_here(*_store(tmp_path / "a.db", 1))
    state.unlink()
    state.mkdir(mode=0o700)
    (state / "runs.db").write_bytes(b"no database" * 100)
    (state / "runs.db").chmod(0o600)
    assert not trusted_runs.made_here(*_store(tmp_path / "b.db", 2))


def test_where_the_record_is(monkeypatch, tmp_path):
    monkeypatch.delenv("TESTIFAI_STATE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert trusted_runs.state_folder() == tmp_path / "xdg" / "testifai"
    monkeypatch.setenv("XDG_STATE_HOME", "not/absolute")
    assert trusted_runs.state_folder() == tmp_path / ".local" / "state" / "testifai"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert trusted_runs.state_folder() == tmp_path / "local" / "testifai"


def test_a_scan_without_a_spec_notes_nothing(state, tmp_path):
    import testifai as ta

    data = demo_data()
    fade = ta.Perturbation("fade", lambda x, by, rng: (x * by).astype(x.dtype), [1.0, 0.5])
    ta.scan(lambda x: np.zeros(len(x), int), (data.inputs[:9], data.labels[:9]), ta.Space({"fade": fade}),
            strategy="full", store=tmp_path / "run.db")  # fmt: skip
    assert not state.exists()
    with pytest.raises(InputError, match="was not made from a spec"):
        reopen(tmp_path / "run.db")
