"""testifai run --explore: the page is there while the run goes on, and neither harms the other."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pytest

from testifai.app.explorer_process import ExplorerProcess
from testifai.commands import explore
from testifai.errors import InputError
from testifai.runs import keys
from testifai.session.stored_runs import open_run
from testifai.support.progress import Step

pytest.importorskip("dash")

# Some batches, then none until a file is there: the run goes on for as long as a test wants.
MODEL = """
import time
from itertools import count
from pathlib import Path

CALLS, GO = count(1), Path(__file__).parent / "go"

def model(rows):
    time.sleep(0 if GO.exists() else 0.1)
    if next(CALLS) > 14:
        while not GO.exists():
            time.sleep(0.01)
    return rows
"""

SPEC = """
[model]
python = "own_model:model"
version = "1"
[data]
npz = "data.npz"
[space]
shift = { python = "own_shift:shift" }
[scan]
strategy = "full"
batch_size = 10
"""

SHIFT = """
import testifai as ta
shift = ta.Perturbation("shift", lambda x, by, rng: x + x.dtype.type(by), [0, 0.1, 0.2, 0.3])
"""

PATIENCE = 120  # seconds


@pytest.fixture
def started(tmp_path):
    """A run with its page, under way: the process, and what asks the page how it stands."""
    rows = np.random.default_rng(0).random((100, 3)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=rows, y=rows.argmax(axis=1))
    (tmp_path / "own_model.py").write_text(MODEL)
    (tmp_path / "own_shift.py").write_text(SHIFT)
    (tmp_path / "spec.toml").write_text(SPEC)
    process = subprocess.Popen(
        [sys.executable, "-m", "testifai", "run", "spec.toml", "--explore", "--json"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    lines = iter(process.stderr.readline, "")
    address = next(found[1] for line in lines if (found := re.search(r"Exploring spec\.db .* at (http://\S+) ", line)))

    def standing():
        with urllib.request.urlopen(address + "following", timeout=PATIENCE) as reply:
            return json.load(reply)

    yield process, standing
    process.kill()
    process.communicate()


def until(happens):
    deadline = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def is_gone(standing):
    try:
        standing()
    except OSError:
        return True
    return False


def test_the_page_follows_the_run_and_stays_when_it_is_done(started, tmp_path):
    process, standing = started
    assert standing()["kind"] == "growing"
    (tmp_path / "go").touch()
    until(lambda: standing()["kind"] == "finished")
    assert standing()["words"] == "400 inferences · finished"
    assert process.poll() is None
    assert any("The run is done. Its page stays until Ctrl-C." in line for line in iter(process.stderr.readline, ""))
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    assert json.loads(output)["inferences"] == 400
    assert is_gone(standing)


@pytest.mark.slow
def test_an_interrupt_stops_the_run_and_its_page(started, tmp_path):
    process, standing = started
    process.send_signal(signal.SIGINT)
    (tmp_path / "go").touch()  # the batch in flight comes back
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert re.search(r"stopped: \d+ of at most 400 inferences are in spec.db; the same command continues", errors)
    assert "Traceback" not in errors
    assert is_gone(standing)
    assert open_run(tmp_path / "spec.db").provenance[keys.FINISHED] is None


@pytest.mark.slow
def test_a_killed_run_takes_its_page_along(started):
    process, standing = started
    process.kill()
    until(lambda: is_gone(standing))


@pytest.mark.parametrize("python", [shutil.which("false"), "/no/such/program"])
def test_a_page_that_cannot_be_is_one_line_and_the_run_goes_on(python, tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(sys, "executable", python or pytest.skip("no program that only fails"))
    with ExplorerProcess(tmp_path / "run.db", 0, said.append) as page:
        page.shown_with(lambda _: None)(Step(1, 2, 3))
        page.stay()  # for nothing
    assert said == [f"note: there is no page of this run; testifai explore {tmp_path / 'run.db'} says why"]


def test_without_dash_nothing_is_begun(monkeypatch):
    monkeypatch.setitem(sys.modules, "dash", None)
    with pytest.raises(InputError, match=r"^dash is not installed; install it with: pip install 'testifai\[app\]'$"):
        explore.require_dash()
