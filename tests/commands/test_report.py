"""testifai report, through the entry point: all formats, and one line for whatever is wrong."""

from __future__ import annotations

import json
import shutil
import sqlite3
from xml.etree import ElementTree

import numpy as np
import pytest

from testifai.report.pdf import VARIABLE
from testifai.runs import trusted_runs
from testifai.runs.store import Store

SPEC = """
[space]
zoom = { use = "mnist_c.zoom", severities = [0, 2, 5] }
blur = { use = "mnist_c.motion_blur", severities = [0, 2, 4] }
[scan]
strategy = "full"
[[gate]]
name = "too much"
query = "order == 2"
at_least = 0.999
"""


@pytest.fixture(scope="module")
def ready(finished):
    return finished(50, SPEC)


@pytest.fixture
def folder(ready, tmp_path, monkeypatch):
    shutil.copytree(ready, tmp_path, dirs_exist_ok=True)
    with Store.create_or_open(tmp_path / "spec.db") as store:
        store.put(folder=str(tmp_path))
        trusted_runs.remember(store)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_all_formats(command, folder):
    code, out, _ = command("report", "spec.db", "-o", "r.html", "--md", "r.md", "--junit", "r.xml")
    assert code == 1  # everything is written, and the gate does not hold
    lines = out.splitlines()
    assert [line.split()[1] for line in lines[:3]] == ["r.html", "r.md", "r.xml"]
    assert " ".join(" ".join(lines[3:]).split()).startswith("fails too much: order == 2 >= 0.999 (between 0.")
    assert (folder / "r.html").stat().st_size < 8_000_000
    assert "taken for" in (folder / "r.html").read_text(encoding="utf-8")
    assert "❌ fails" in (folder / "r.md").read_text(encoding="utf-8")
    assert ElementTree.parse(folder / "r.xml").getroot().get("failures") == "1"


def test_every_format_names_the_model_and_the_data(command, folder):
    code, out, _ = command("report", "spec.db", "--md", "r.md", "--junit", "r.xml", "--json")
    assert code == 1
    found = json.loads(out)
    assert (found["model"]["named"], found["data"]["named"]) == (["lenet5.onnx"], ["digits.npz"])
    model, data = (found[part]["fingerprint"][:12] for part in ("model", "data"))
    words = f"Model lenet5.onnx ({model}), data digits.npz ({data})"
    assert words in (folder / "spec.html").read_text(encoding="utf-8")
    assert words in (folder / "r.md").read_text(encoding="utf-8").replace("\\", "")
    properties = ElementTree.parse(folder / "r.xml").getroot().iter("property")
    told = {one.get("name"): one.get("value") for one in properties}
    assert (told["model"], told["data"]) == (f"lenet5.onnx ({model})", f"digits.npz ({data})")


def test_json_and_default_name(command, folder):
    code, out, _ = command("report", "spec.db", "--json", "--examples", 0)
    assert code == 1
    found = json.loads(out)
    assert found["written"] == ["spec.html"]
    assert (folder / "spec.html").is_file()
    assert found["gates"][0]["status"] == "fails"
    assert found["tests"] == found["everything"]["measured"] == 9
    assert found["failures_note"] == "left out, as asked"
    assert "taken for" not in (folder / "spec.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("missing", ["digits.npz", "lenet5.onnx"])
def test_missing_files_leave_the_rest(command, folder, missing):
    (folder / missing).unlink()
    code, _, err = command("report", "spec.db")
    assert code == 1
    assert len(err.splitlines()) == 1
    assert missing in err
    page = (folder / "spec.html").read_text(encoding="utf-8")
    assert "Not shown: " in page
    assert "Standard queries" in page


def test_moved_data_are_found_by_the_spec(command, folder):
    moved = folder / "elsewhere"
    moved.mkdir()
    for name in ("digits.npz", "lenet5.onnx", "spec.toml"):
        shutil.move(folder / name, moved / name)
    assert command("report", "spec.db")[2]
    code, _, err = command("report", "spec.db", "--spec", moved / "spec.toml")
    assert (code, err) == (1, "")
    (moved / "digits.npz").unlink()
    assert command("report", "spec.db", "--spec", moved / "spec.toml")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "r.pdf"], "must end in .html"),
        (["-o", "no/r.html"], "folder no does not exist"),
        (["-o", "r.html", "--md", "r.html"], "named twice"),
        (["--junit", "spec.db"], "named twice"),
        (["--pdf", "r.png"], "must end in .pdf"),
        (["--md", "no/r.md"], "does not exist"),
    ],
)
def test_bad_names_are_refused_before_any_work(command, folder, arguments, words):
    before = sorted(folder.iterdir())
    code, _, err = command("report", "spec.db", *arguments)
    assert code == 2
    assert len(err.splitlines()) == 1
    assert words in err
    assert sorted(folder.iterdir()) == before


def test_pdf_without_a_browser(command, folder, monkeypatch):
    monkeypatch.setenv(VARIABLE, "no-such-browser")
    code, _, err = command("report", "spec.db", "--pdf", "r.pdf")
    assert code == 2
    assert "no Chromium was found (no-such-browser)" in err
    assert not (folder / "spec.html").exists()


def newer(path):
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")


def half_written(path):
    path.write_bytes(path.read_bytes()[:9000])


def without_outcomes(path):
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM kept")
        connection.execute("DELETE FROM outcomes")


def empty(path):
    path.write_bytes(b"")


def something_else(path):
    path.write_text("not a run at all, but long enough to be taken for a file" * 40)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (newer, "has format 99, this testifai reads format 2"),
        (half_written, "damaged"),
        (without_outcomes, "holds no outcome yet"),
        (empty, "holds no run yet"),
        (something_else, "damaged"),
        (lambda path: path.unlink(), "does not exist"),
    ],
)
def test_spoilt_runs(command, folder, spoil, words):
    spoil(folder / "spec.db")
    code, out, err = command("report", "spec.db")
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert words in err
    assert not (folder / "spec.html").exists()


def test_an_interrupted_run_is_reported_as_far_as_it_got(command, folder):
    with sqlite3.connect(folder / "spec.db") as connection:
        connection.execute("DELETE FROM kept WHERE configuration > 4")
        connection.execute("DELETE FROM outcomes WHERE configuration > 4")
    code, out, _ = command("report", "spec.db", "--json")
    assert code == 1
    assert json.loads(out)["measured"] == 5


@pytest.mark.parametrize(("gates", "code"), [([], 0), ([{"query": "order == 0", "at_least": 0.5}], 0)])
def test_the_exit_code_is_0_where_every_gate_holds(command, folder, gates, code):
    with Store.create_or_open(folder / "spec.db") as store:
        store.put(gates=gates)
    left, out, err = command("report", "spec.db")
    assert (left, err) == (code, "")
    assert out.split().count("holds") == len(gates)


def test_a_run_that_holds_only_sweeps(command, folder):
    assert command("sweep", "spec.toml", "-p", "classic.gaussian_noise", "-t", 0.8, "-t", 0.5, "-o", "only.db")[0] == 0
    code, out, err = command("report", "only.db", "--md", "only.md")
    assert (code, err) == (0, "")
    assert [line.split()[1] for line in out.splitlines()] == ["only.html", "only.md"]
    page = (folder / "only.html").read_text(encoding="utf-8")
    assert '"figure-sweeps-0":{"data":' in page
    assert "classic.gaussian_noise" in page
    assert (folder / "only.md").read_text(encoding="utf-8").count("classic.gaussian\\_noise") == 2
    found = json.loads(command("report", "only.db", "--json")[1])["sweeps"]["classic.gaussian_noise"]
    assert [sweep["threshold"] for sweep in found] == [0.8, 0.5]
    code, _, err = command("report", "only.db", "--junit", "only.xml")
    assert (code, "holds sweeps only" in err) == (2, True)


def test_a_run_with_an_unfinished_sweep(command, folder):
    with Store.create_or_open(folder / "only.db") as store:
        store.put_array("sweep/classic.noise/0.5", np.ones(4, np.uint8))
    code, _, err = command("report", "only.db")
    assert code == 2
    assert "no sweep in only.db is finished" in err
    assert not (folder / "only.html").exists()


def test_a_report_opens_and_checks_the_run_file_once(command, whole_run, tmp_path, monkeypatch):
    """A run that has everything: predictions, scores, an assessment, kept answers, and failing inputs to be shown."""
    folder = shutil.copytree(whole_run, tmp_path / "run")
    with Store.create_or_open(folder / "spec.db") as store:
        store.put(folder=str(folder))
        trusted_runs.remember(store)
    opened, loaded = [], []
    read, load = Store.open.__func__, Store.load

    def count_open(cls, path):
        opened.append(path)
        return read(cls, path)

    def count_load(self, *given):
        loaded.append(self.path)
        return load(self, *given)

    monkeypatch.setattr(Store, "open", classmethod(count_open))
    monkeypatch.setattr(Store, "load", count_load)
    _, out, err = command("report", folder / "spec.db", "--md", folder / "r.md", "--junit", folder / "r.xml", "--json")
    found = json.loads(out)
    assert err == ""
    assert found["failures_shown"] > 0
    assert found["errors"] is not None
    assert found["trust"] is not None
    assert loaded == [folder / "spec.db"]
    assert len(opened) <= 2


def test_another_file_than_was_run_is_a_warning_and_in_the_page(command, folder):
    (folder / "lenet5.onnx").write_bytes(b"another")
    code, _, err = command("report", "spec.db")
    assert code == 1
    assert err.splitlines()[0].startswith("warning: lenet5.onnx is not the file that was run: its SHA-256 was ")
    assert "Warning: lenet5.onnx is not the file that was run" in (folder / "spec.html").read_text(encoding="utf-8")


def test_who_ran_it_is_written_where_it_is_asked_for(command, folder):
    assert command("run", "spec.toml", "--run-by", " ")[0] == 2
    for name in ("Ada", "Grace"):
        assert command("run", "spec.toml", "--run-by", name)[0] == 1  # nothing is left to run, and the gate fails
    code, out, _ = command("report", "spec.db", "--json", "--examples", 0)
    assert code == 1
    ran = json.loads(out)["ran"]
    assert [(one["by"], one["inferences"]) for one in ran] == [("Ada", 450), ("Grace", 450)]
    assert all(one["started"] <= one["ended"] for one in ran)


def test_a_run_whose_gate_fails_names_the_command_that_shows_why(command, folder):
    code, out, _ = command("run", "spec.toml")
    assert code == 1
    assert "Next: testifai report spec.db --open" in out


def test_the_page_is_opened_where_that_is_asked_for(command, folder, monkeypatch):
    seen = []
    monkeypatch.setattr("webbrowser.open", lambda address: bool(seen.append(address)))
    code, _, err = command("report", "spec.db", "--open", "--examples", 0)
    assert code == 1
    assert seen == [(folder / "spec.html").as_uri()]
    assert "no browser could be opened; open spec.html in one" in err
