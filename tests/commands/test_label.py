"""testifai label page as a command: what select wrote is served, killed, gone on with; what is wrong is one line."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import numpy as np
import pytest

from testifai.data.sample import demo_data, demo_model_path

pytest.importorskip("flask")

SPEC = """
[model]
onnx = "lenet5.onnx"
[data]
npz = "stream.npz"
[space]
zoom = "mnist_c.zoom"
"""


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    """A folder with a model, unlabelled digits and a spec."""
    folder = tmp_path_factory.mktemp("label")
    shutil.copy(demo_model_path(), folder / "lenet5.onnx")
    np.savez(folder / "stream.npz", x=demo_data().inputs[:60])
    (folder / "spec.toml").write_text(SPEC)
    return folder


@pytest.fixture
def selected(command, folder):
    code, out, _ = command("label", "select", "spec.toml", "-n", 10, "--technique", "srs", "-o", "a.csv")
    assert code == 0
    assert (
        "Next: testifai label page a.csv (or fill in its column label from the top), then testifai label estimate a.csv"
        in out
    )
    return folder / "a.csv"


class Served:
    """The command in a process of its own."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "testifai", "label", "page", *map(str, arguments), "--port", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.said = self.process.stdout.readline()
        found = re.search(r"(http://127\.0\.0\.1:\d+/)\?token=(\S{32,})", self.said)
        assert found, self.said + self.process.stderr.read()
        self.address, self.token = found.groups()

    def ask(self, path, given=None, token=True):
        address = f"{self.address}{path}" + (f"?token={self.token}" if token else "")
        body = None if given is None else json.dumps(given).encode()
        with urllib.request.urlopen(
            urllib.request.Request(address, body, {"Content-Type": "application/json"}), timeout=30
        ) as reply:
            return json.load(reply)

    def end(self, how):
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=60)
        return out, err


@pytest.fixture
def served():
    made = []

    def start(*arguments):
        made.append(Served(*arguments))
        return made[-1]

    yield start
    for one in made:
        if one.process.poll() is None:
            one.end(signal.SIGTERM)


def labels(path):
    with open(path, newline="") as file:
        return [row["label"] for row in csv.DictReader(file)]


@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL here")
def test_killed_and_gone_on_with(selected, served, command):
    first = served(selected)
    assert "(0 of 10 done)" in first.said
    with pytest.raises(urllib.error.HTTPError, match="401"):
        first.ask("task", token=False)
    assert [one["key"] for one in first.ask("task")["classes"]] == list("0123456789")
    assert first.ask("rows/0")["input"]["picture"].startswith("data:image/png")
    first.ask("answer", {"row": 0, "label": "7"})
    first.ask("answer", {"row": 1, "label": "3"})
    code, _, err = command("label", "page", "a.csv", "--port", "0")
    assert (code, "file: a.csv is being written by another testifai" in err) == (2, True)
    first.end(signal.SIGKILL)
    assert labels(selected) == ["7", "3", *[""] * 8]
    second = served(selected)
    assert "(2 of 10 done)" in second.said
    assert second.ask("task")["next"] == 2
    out, err = second.end(signal.SIGINT)
    assert "2 of 10 labelled. Next: testifai label page " in out
    assert "label page page" not in out
    assert err == ""
    assert sorted(one.name for one in selected.parent.glob("a.*")) == [
        "a.csv", "a.html", "a.inputs.zip", "a.selection.npz",
    ]  # fmt: skip
    assert "Next: testifai label page a.csv" in command("label", "estimate", "a.csv")[1]


def test_the_file_of_the_round_is_named(command, folder, monkeypatch):
    """The second round has a file of its own."""
    select = ("label", "select", "spec.toml", "-n", 50)
    assert "Next: testifai label page to_label.csv " in command(*select)[1]
    code, _, err = command(*select)
    assert (code, "fill it in (testifai label page to_label.csv)" in err) == (2, True)
    rows = (folder / "to_label.csv").read_text().replace(",,", ",1,")
    (folder / "to_label.csv").write_text(rows)
    out = command(*select)[1]
    assert "Next: testifai label page to_label.2.csv " in out
    assert "then testifai label estimate to_label.csv" in out
    assert "Next: testifai label page to_label.2.csv" in command("label", "estimate", "to_label.csv")[1]
    assert (folder / "to_label.2.inputs.zip").is_file()


def test_what_is_wrong_is_one_line(command, selected, folder, monkeypatch):
    def wrong(*arguments):
        code, out, err = command("label", "page", *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        return err

    assert "none.csv does not exist; testifai label select writes such a file" in wrong("none.csv")
    (folder / "mine.csv").write_text("a,b\n1,2\n")
    assert "mine.csv: its mine.selection.npz is not beside it" in wrong("mine.csv")
    content = selected.read_text()
    selected.write_text(content.replace(",,", ",eleven,", 1))
    assert "a.csv line 2 (id" in wrong("a.csv")
    selected.write_text(content)
    (folder / "a.inputs.zip").unlink()
    assert "put a.inputs.zip, which testifai label select writes, beside it" in wrong("a.csv")
    monkeypatch.setitem(sys.modules, "flask", None)
    assert "flask is not installed; install it with: pip install 'testifai[app]'" in wrong("a.csv")
    assert not (folder / "a.csv-lock").exists()
