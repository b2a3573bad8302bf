"""What a run must survive: kill -9, Ctrl-C, bad models, bad data, bad specs; and that nothing else changes results."""

import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from testifai import cli
from testifai.data.sample import demo_data, demo_model_path
from testifai.engine.stopping import Window
from testifai.errors import InputError
from testifai.models.onnx import OnnxModel
from testifai.perturb import Perturbation
from testifai.runs.store import Store
from testifai.session import observers
from testifai.session.assembly import session_of
from testifai.session.session import Session
from testifai.session.stored_runs import open_run
from testifai.space import Space

COMMAND = [sys.executable, "-m", "testifai"]
NUMBER = count()

# The pace is the environment's, so that it is no part of the model. `broken` stands for what goes wrong outside it,
# after nine calls that check whether it is repeatable and twelve batches.
MODEL = """
import os, time
from itertools import count
from pathlib import Path
import numpy as np

CALLS = count(1)
HERE = Path(__file__).parent

def model(rows):
    call = next(CALLS)
    if call == int(os.environ.get("TEST_CALL", "0")):
        (HERE / "mark").touch()
    time.sleep(float(os.environ.get("TEST_PAUSE", "0")))
    scores = np.stack([np.sin(9 * rows[:, 0]), rows[:, 1] ** 2, rows.mean(axis=1)], axis=1)
    if call > 21 and (HERE / "broken").exists():
        return BROKEN
    return scores
"""

PERTURBATIONS = """
import numpy as np
import testifai as ta

shift = ta.Perturbation("shift", lambda x, by, rng: x + x.dtype.type(by), [0, 0.05, 0.1, 0.2, 0.3])
noise = ta.Perturbation("noise", lambda x, by, rng: (x + by * rng.normal((3,))).astype(x.dtype), [0, 0.1, 0.2, 0.3])
scale = ta.Perturbation("scale", lambda x, by, rng: x * x.dtype.type(by), [1, 0.9, 0.8, 0.7])

def near(clean, perturbed):
    return np.exp(-np.abs(clean - perturbed).mean(axis=1))
"""

SPACE = """
[space]
shift = { python = "perturbations_NUMBER:shift" }
noise = { python = "perturbations_NUMBER:noise" }
scale = { python = "perturbations_NUMBER:scale" }
"""


def project(folder: Path, scan: str, broken: str = "scores", inputs: int = 300) -> Path:
    """A folder with a model, data, perturbations and a spec; module names are new each time, as imports are kept."""
    number = str(next(NUMBER))
    rows = np.random.default_rng(0).random((inputs, 3)).astype(np.float32)
    labels = np.stack([np.sin(9 * rows[:, 0]), rows[:, 1] ** 2, rows.mean(axis=1)], axis=1).argmax(axis=1)
    np.savez(folder / "data.npz", x=rows, y=labels)
    (folder / f"model_{number}.py").write_text(MODEL.replace("BROKEN", broken))
    (folder / f"perturbations_{number}.py").write_text(PERTURBATIONS)
    spec = folder / "spec.toml"
    spec.write_text(
        f'[model]\npython = "model_{number}:model"\nversion = "1"\n[data]\nnpz = "data.npz"\n'
        + (SPACE + f"[scan]\n{scan}\n").replace("NUMBER", number)
    )
    return spec


@pytest.fixture
def command(monkeypatch, capfd):
    """The command line in this process: exit code, standard output, lines of standard error."""

    def run(*arguments: object) -> tuple[int, str, list[str]]:
        monkeypatch.setattr(sys, "argv", ["testifai", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capfd.readouterr()
        return int(ended.value.code or 0), out, [line for line in err.splitlines() if line.strip()]

    return run


def start(*arguments: object, pause: float = 0, call: int = 0) -> subprocess.Popen[str]:
    """The command line in a process of its own, with a model that takes its time and leaves a mark at a call."""
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        env={**os.environ, "TEST_PAUSE": str(pause), "TEST_CALL": str(call)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(mark: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 30
    while not mark.exists():
        assert process.poll() is None, "ended before it was under way"
        assert time.monotonic() < deadline
        time.sleep(0.005)
    mark.unlink()


def exported(command, run: Path) -> bytes:
    code, _, err = command("export", run, "-o", run.with_suffix(".csv"))
    assert code == 0, err
    return run.with_suffix(".csv").read_bytes()


def opened(run: Path):
    """The run as far as it got; None where it was killed before the file said whose it is."""
    try:
        return open_run(run)
    except InputError as error:
        if re.search(r"does not exist|holds no run yet", str(error)):
            return None
        raise


def facts(outcomes):
    return {i: tuple(bits.tobytes() for bits in outcomes.bits(i)) for i in sorted(outcomes)}


def is_part_of(some, whole) -> bool:
    """Whether everything measured in one run was measured with the same outcome in the other."""
    for configuration in some:
        tried, passed = some.bits(configuration)
        all_tried, all_passed = whole.bits(configuration)
        if (tried & ~all_tried).any() or (passed != (all_passed & tried)).any():
            return False
    return True


QUERIES = ["shift > 1", "noise == 3 or scale <= 1", "order == 3", "severity >= 5", "not shift == 0"]


# -- kill -9 ---------------------------------------------------------------------------------------------------------

RUNS = {
    "full": 'strategy = "full"\nbatch_size = 8\nkeep = ["value", "predicted"]',
    "consistency": 'strategy = "full"\nbatch_size = 16\noracle = "consistency"\nworkers = 2\nbudget = 7000',
}


# With more to lose than outcomes: where to stop, scores of quality, kept values, and plans made from what was measured.
QUALITY = 'quality = { python = "perturbations_NUMBER:near", orders = 1, extra = 3 }'
MANY_RUNS = {
    "stopped early": 'strategy = "ordered"\nbatch_size = 5\nstopping = { use = "window", batch = 40, delta = 0.15 }',
    "quality": f'strategy = "full"\nbatch_size = 8\nkeep = ["value", "predicted"]\n{QUALITY}',
    "adaptive": 'strategy = "adaptive"\nbudget = 7000\nbatch_size = 8\nkeep = ["value"]',
    "adaptive with quality": (
        f'strategy = "adaptive"\nbudget = 7000\nbatch_size = 8\nkeep = ["predicted"]\nworkers = 2\n{QUALITY}'
    ),
}


# A few kills in the usual tests; some of every kind of run in the slow ones, and many outside continuous integration.
@pytest.mark.parametrize(
    ("name", "kills"),
    [
        *((name, 2) for name in RUNS),
        *(pytest.param(name, 6, marks=pytest.mark.slow) for name in MANY_RUNS | RUNS),
        *(pytest.param(name, 17, marks=pytest.mark.simulation) for name in MANY_RUNS | RUNS),
    ],
)
def test_a_run_killed_again_and_again_ends_as_one_left_alone(tmp_path, command, name, kills):
    spec = project(tmp_path, {**RUNS, **MANY_RUNS}[name], inputs=100)
    whole, run = tmp_path / "whole.db", tmp_path / "run.db"
    assert command("run", spec, "--out", whole)[0] == 0
    truth = open_run(whole)
    dice = random.Random(name)
    reached, hits, start_up = 0, 0, 0.0
    for number in range(kills):
        # Every other time surely after something was saved, however busy the machine is.
        under_way = number % 2 == 0
        begin = time.monotonic()
        process = start("run", spec, "--out", run, pause=0.04, call=16 * under_way)
        if under_way:
            wait_for(tmp_path / "mark", process)
            start_up = time.monotonic() - begin
        time.sleep(dice.uniform(0, 0.3) if under_way else dice.uniform(0.5 * start_up, start_up + 0.3))
        process.kill()
        _, err = process.communicate()
        hits += process.returncode == -signal.SIGKILL
        assert "error" not in err
        # Looking at the file tidies up after the killed process; mostly that is left to the next run.
        if (number % 4 == 3 or number == kills - 1) and (found := opened(run)) is not None:
            assert found.inferences >= reached, "what was in the file stays in the file"
            assert is_part_of(found.outcomes, truth.outcomes)
            reached = found.inferences
    assert hits >= kills - 1, "the run must be long enough to be killed in the middle"
    assert reached > 0
    assert command("run", spec, "--out", run)[0] == 0
    resumed = open_run(run)
    assert facts(resumed.outcomes) == facts(truth.outcomes)
    for kind in ("value", "predicted"):
        if kind in truth.outcomes.kept_names():
            for i in truth.outcomes:
                np.testing.assert_array_equal(resumed.outcomes.kept(i, kind), truth.outcomes.kept(i, kind))
    assert exported(command, run) == exported(command, whole)
    if truth.quality is not None:
        assert resumed.quality is not None
        for what in ("estimate", "low", "high"):
            np.testing.assert_array_equal(getattr(resumed.quality, what), getattr(truth.quality, what))
    for query in QUERIES:
        assert resumed.query(query).as_dict() == truth.query(query).as_dict()
    assert sorted(file.name for file in tmp_path.glob("run.db*")) == ["run.db"]


# -- Ctrl-C ----------------------------------------------------------------------------------------------------------


def interrupt(spec: Path, run: Path, times: int = 1) -> list[str]:
    """Start a run, interrupt it once it is under way; the lines on standard error."""
    process = start("run", spec, "--out", run, pause=0.01, call=20)
    wait_for(spec.with_name("mark"), process)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    return [line for line in err.splitlines() if line.strip() and not line.startswith("note:")]


@pytest.mark.parametrize(
    ("name", "signals"),
    [("full", (1, 2)), ("consistency", (2,)), pytest.param("consistency", (1, 1, 2), marks=pytest.mark.slow)],
)
def test_an_interrupted_run_says_so_loses_nothing_and_goes_on(tmp_path, command, name, signals):
    spec = project(tmp_path, RUNS[name], inputs=100)
    whole, run = tmp_path / "whole.db", tmp_path / "run.db"
    assert command("run", spec, "--out", whole)[0] == 0
    truth = open_run(whole)
    before = 0
    for times in signals:  # later while it resumes; at last by someone impatient
        (line,) = interrupt(spec, run, times)
        found = open_run(run)
        assert line.startswith(f"stopped: {found.inferences:,} of at most ") or times == 2
        assert line.endswith(f"inferences are in {run}; the same command continues")
        assert is_part_of(found.outcomes, truth.outcomes)
        # Twenty batches were measured before the signal; the model is asked for little more than those.
        assert before < found.inferences < truth.inferences
        before = found.inferences
    assert command("run", spec, "--out", run)[0] == 0
    assert exported(command, run) == exported(command, whole)


def test_an_interrupt_while_things_are_loaded_is_one_line_too(tmp_path):
    spec = project(tmp_path, "")
    mark = tmp_path / "mark"
    (module,) = tmp_path.glob("model_*.py")
    module.write_text(f"from pathlib import Path; Path({str(mark)!r}).touch()\nimport time; time.sleep(20)\n")
    process = start("run", spec)
    wait_for(mark, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert process.returncode == 130
    assert [line for line in err.splitlines() if line.strip() and not line.startswith("note:")] == ["error: stopped"]


# -- a second writer, and readers ------------------------------------------------------------------------------------


def test_a_second_run_on_the_same_file_is_refused_while_queries_are_answered(tmp_path, command):
    spec = project(tmp_path, RUNS["full"], inputs=60)
    run = tmp_path / "run.db"
    process = start("run", spec, "--out", run, pause=0.05, call=20)
    wait_for(tmp_path / "mark", process)
    time.sleep(0.3)
    code, _, err = command("run", spec, "--out", run)
    assert (code, err[-1:]) == (2, [f"error: run file: {run} is being written by another testifai; wait for it to end"])
    code, out, _ = command("query", run, "shift >= 0", "--json")
    assert code == 0
    assert 0 <= json.loads(out)["robustness"] <= 1
    process.kill()
    process.communicate()
    assert command("run", spec, "--out", run)[0] == 0


# -- a changed run ---------------------------------------------------------------------------------------------------


def test_what_may_change_between_resumes_and_what_may_not(tmp_path, command):
    spec = project(tmp_path, 'strategy = "full"\nbudget = 500\nbatch_size = 3')
    text = spec.read_text()
    assert command("run", spec)[0] == 0
    measured = facts(open_run(tmp_path / "spec.db").outcomes)
    for old, new, field in [
        ('strategy = "full"', 'strategy = "ordered"', "strategy"),
        ("budget = 500", "budget = 500\nseed = 4", "seed was 0, now 4"),
        ("budget = 500", 'budget = 500\noracle = "consistency"', "oracle"),
        ("budget = 500", 'budget = 500\nstopping = "window"', "stopping was null"),
        ("[space]", "[space]\norder_sensitive = true", "space"),
    ]:
        spec.write_text(text.replace(old, new))
        code, _, err = command("run", spec)
        assert code == 2
        assert err[-1].startswith("error: run file: ")
        assert f"belongs to another run: {field}" in err[-1]
        assert facts(open_run(tmp_path / "spec.db").outcomes) == measured
    for change in ("budget = 900", "batch_size = 50", "workers = 2"):
        key = change.partition(" ")[0]
        kept = "\n".join(line for line in text.splitlines() if not line.startswith(key))
        spec.write_text(f"{kept}\n{change}\n")
        assert command("run", spec)[0] == 0
    np.savez(tmp_path / "data.npz", x=np.zeros((300, 3), np.float32), y=np.arange(300) % 3)
    code, _, err = command("run", spec)
    assert code == 2
    assert "belongs to another run: data was" in err[-1]


# -- bad models ------------------------------------------------------------------------------------------------------

BROKEN = [
    ("[][0]", "model: raised IndexError: list index out of range (batch of 10 inputs, configuration ("),
    ("1 / 0", "model: raised ZeroDivisionError: division by zero"),
    ("np.full_like(scores, np.nan)", "model returned NaN for 10 of 10 inputs"),
    ("np.full_like(scores, np.inf)", "model returned infinity for 10 of 10 inputs"),
    ("scores[:-1]", "model returned 9 outputs for 10 inputs"),
    ("scores[:, :2]", "model returned outputs of shape (N, 2) after (N, 3)"),
    ("scores.argmax(axis=1)", "model returned outputs of shape (N,) after (N, 3)"),
    ("scores[None]", "model returned outputs of shape (1, 10, 3) for 10 inputs"),
    ("None", "model returned NoneType"),
    ("'cat'", "model returned str"),
    ("scores.astype(str)", "model returned outputs of dtype <U"),
    ("[[1], [1, 2]]", "model returned rows of different length"),
]


@pytest.mark.parametrize(
    ("broken", "words", "workers"),
    [
        *((*case, 1) for case in BROKEN),
        *((*case, 2) for case in BROKEN[:3]),
        *(pytest.param(*case, 2, marks=pytest.mark.slow) for case in BROKEN[3:]),
    ],
)
def test_a_model_that_goes_wrong_in_the_middle_loses_nothing(tmp_path, command, broken, words, workers):
    spec = project(tmp_path, f'strategy = "full"\nbatch_size = 10\nworkers = {workers}', broken, inputs=30)
    run = tmp_path / "spec.db"
    (tmp_path / "broken").touch()
    code, out, err = command("run", spec)
    assert (code, out) == (2, "")
    assert [line for line in err if not line.startswith("note:")] == err[1:]
    assert len(err) == 2
    assert err[1].startswith("error: ")
    assert words in err[1]
    kept = open_run(run)
    assert kept.inferences == 120, "twelve batches came back"
    (tmp_path / "broken").unlink()
    code, _, err = command("run", spec)
    assert (code, len(err)) == (0, 1)
    assert is_part_of(kept.outcomes, open_run(run).outcomes)
    whole = tmp_path / "whole.db"
    assert command("run", spec, "--out", whole)[0] == 0
    assert facts(open_run(run).outcomes) == facts(open_run(whole).outcomes)


def test_a_mended_model_is_another_model_and_what_was_measured_stays(tmp_path, command):
    spec = project(tmp_path, 'strategy = "full"\nbatch_size = 10', "1 / 0", inputs=60)
    (tmp_path / "broken").touch()
    assert command("run", spec)[0] == 2
    measured = facts(open_run(tmp_path / "spec.db").outcomes)
    (old,) = tmp_path.glob("model_*.py")
    (tmp_path / "mended.py").write_text(old.read_text().replace("1 / 0", "scores"))
    spec.write_text(spec.read_text().replace(old.stem, "mended"))
    code, _, err = command("run", spec)
    assert code == 2
    assert "belongs to another run: model was" in err[-1]
    assert facts(open_run(tmp_path / "spec.db").outcomes) == measured
    sys.modules.pop("mended", None)


WRONG_FROM_THE_START = [
    ("np.full(len(rows), 7)", "model returned label 7 (16 of 16 labels are outside the 3 classes); accepted: 0 … 2"),
    ("np.full(len(rows), -1)", "model returned label -1"),
    ("np.full(len(rows), 0.5)", "model returned label 0.5"),
    ("np.ones((len(rows), 2))", "of 60 labels) cannot be produced by the model; accepted: 0 … 1"),
    ("np.ones((len(rows), 0))", "model returned no columns"),
    ("{'scores': rows}", "model returned dict"),
]


@pytest.mark.parametrize(("returned", "words"), WRONG_FROM_THE_START)
def test_outputs_that_cannot_be_judged_are_one_line(tmp_path, command, returned, words):
    spec = project(tmp_path, "batch_size = 10", inputs=60)
    (module,) = tmp_path.glob("model_*.py")
    module.write_text(f"import numpy as np\ndef model(rows):\n    return {returned}\n")
    code, out, err = command("run", spec)
    assert (code, out) == (2, "")
    assert [line.partition(":")[0] for line in err] == ["note", "error"]
    assert words in err[1]
    # Mended, it is another model; but nothing had been measured of the first.
    (tmp_path / "mended.py").write_text("import numpy as np\ndef model(rows):\n    return np.zeros(len(rows), int)\n")
    spec.write_text(spec.read_text().replace(module.stem, "mended"))
    sys.modules.pop("mended", None)
    assert command("run", spec)[0] == 0


# -- bad data --------------------------------------------------------------------------------------------------------

DIGITS = demo_data()
X, Y = np.asarray(DIGITS.inputs)[:40], np.asarray(DIGITS.labels)[:40]

LENET = f"""
[model]
onnx = "{demo_model_path()}"
[data]
npz = "data.npz"
[space]
brightness = "mnist_c.brightness"
zoom = {{ use = "mnist_c.zoom", severities = [0, 2] }}
[scan]
strategy = "ordered"
batch_size = 20
"""

BAD_DATA = [
    ({"x": np.full((4, 28, 28), np.nan, np.float32), "y": Y[:4]}, "inputs: 4 of 4 hold NaN or infinity"),
    ({"x": X, "y": Y + 3}, "cannot be produced by the model; accepted: 0 … 9"),
    ({"x": X, "y": Y - 100}, "cannot be produced by the model; accepted: 0 … "),
    ({"x": X, "y": Y + 0.5}, "labels: dtype float64 is not accepted"),
    ({"x": X}, "needs labels, and the data have none"),
    ({"x": X, "y": Y[:-1]}, "labels: 39 labels for 40 inputs"),
    ({"x": X[:0], "y": Y[:0]}, "data.npz: has no rows; at least one input is needed"),
    ({"x": X.astype(complex), "y": Y}, "inputs: dtype complex128 is not accepted; numbers or strings are"),
    ({"x": X.astype("M8[s]"), "y": Y}, "inputs: dtype datetime64[s] is not accepted"),
    ({"x": np.array(["a", "b"]), "y": Y[:2]}, "images must be an array, got a list"),
    ({"x": X[:, :5, :5], "y": Y}, "inputs: have shape (N, 5, 5) (grey images); the model takes (N, 1, 28, 28)"),
    ({"x": X.astype(np.float32), "y": Y}, "float images must lie in 0..1, got 0 to 255"),
    ({"x": np.float32(3), "y": Y}, "inputs: a single value is not accepted"),
    ({"a": X, "b": X, "c": Y}, "which arrays are inputs and labels is not clear; set x and y"),
    ({}, "holds no arrays"),
    (b"no zip file", "data.npz is not a readable npz file"),
    (b"", "data.npz is not a readable npz file"),
    (None, "data.npz does not exist"),
]


@pytest.mark.parametrize(("data", "words"), BAD_DATA)
def test_bad_data_are_one_line(tmp_path, command, data, words):
    path = tmp_path / "data.npz"
    if isinstance(data, dict):
        np.savez(path, **data)
    elif data is not None:
        path.write_bytes(data)
    (tmp_path / "spec.toml").write_text(LENET)
    code, out, err = command("run", tmp_path / "spec.toml")
    assert (code, out) == (2, "")
    (line,) = err
    assert line.startswith("error: ")
    assert words in line
    if (tmp_path / "spec.db").exists():
        np.savez(path, x=X, y=Y)
        measured = open_run(tmp_path / "spec.db").inferences
        code, _, err = command("run", tmp_path / "spec.toml")
        # What was measured on other data is not given up; a file without an outcome is in nobody's way.
        assert (code, len(err)) == ((2, 1) if measured else (0, 0))


# -- bad specs -------------------------------------------------------------------------------------------------------

BAD_SPECS = [
    ("[scan]", "[scan]\nstratgy = 'full'", "unknown key 'scan.stratgy'; did you mean 'strategy'?"),
    ("[scan]", "[scna]", "unknown key 'scna'; did you mean 'scan'?"),
    ("onnx =", "layuot = 'NCHW'\nonnx =", "unknown key 'model.layuot' for onnx; did you mean 'layout'"),
    ("npz =", "z = 1\nnpz =", "unknown key 'data.z'"),
    ("use =", "serverities = [0, 1], use =", "did you mean 'severities'?"),
    ("[space]", "[space]\nzoom = 'mnist_c.zoom'", "not valid TOML.*written twice"),
    ("severities = [0, 2]", "severities = [0, 9]", "9"),
    ("severities = [0, 2]", "severities = [0, -1]", "-1"),
    ("severities = [0, 2]", "severities = [0, 1.5]", "1.5"),
    ("severities = [0, 2]", "severities = [0, 2, 2]", "2"),
    ("severities = [0, 2]", "severities = []", "zoom"),
    ("severities = [0, 2]", "severities = 'all'", "'all'"),
    ("[scan]", "[scan]\nbudget = 0", "scan.budget: .* 2, got 0"),
    ("[scan]", "[scan]\nbudget = -5", "scan.budget: .* 2, got -5"),
    ("[scan]", "[scan]\nbudget = 1.5", "scan.budget"),
    ("[scan]", "[scan]\nbudget = 'all'", "scan.budget"),
    ("batch_size = 20", "batch_size = 0", "scan.batch_size: .* 1, got 0"),
    ("[scan]", "[scan]\nworkers = 0", "scan.workers: .* 1, got 0"),
    ("[scan]", "[scan]\nseed = -1", "scan.seed: .* 0, got -1"),
    ("[scan]", "[scan]\nseed = 99999999999999999999", "seed: must be a whole number, at most 9223"),
    ("[scan]", "[scan]\ntarget = 2", "scan.target: .* 1, got 2"),
    ("[scan]", "[scan]\npopulation = 'people'", "scan.population: must be one of data, future, got 'people'"),
    ("[scan]", "[scan]\nkeep = ['logits']", "scan.keep"),
    ("[scan]", "[scan]\noracle = 'lable'", "did you mean 'label'?"),
    ("[scan]", "[scan]\noracle = 'tolerance'", "eps"),
    ("[scan]", "[scan]\noracle = { use = 'tolerance', eps = -1 }", "eps: must be a number, at least 0, got -1"),
    ("[scan]", "[scan]\noracle = { eps = 1 }", "no 'use'"),
    ("[scan]", "[scan]\nstopping = 'windo'", "did you mean 'window'?"),
    (
        "[scan]",
        "[scan]\nstopping = { use = 'window', batch = 0 }",
        "batch of window: must be a whole number, at least 1, got 0",
    ),
    (
        "[scan]",
        "[scan]\nstopping = { use = 'interval', confidence = 2 }",
        "confidence of interval: must be a number, above 0 and below 1",
    ),
    ("[scan]", "[scan]\nstopping = { use = ['window'] }", "window"),
    ("[scan]", "[scan]\nsurrogate = 'forrest'", "did you mean 'forest'?"),
    ('"ordered"', '"orderd"', "did you mean 'ordered'?"),
    ('"ordered"', '{ use = "ordered", max_order = 0 }', "max_order: must be a whole number, at least 1, got 0"),
    ('"ordered"', '{ use = "ordered", order = 1 }', "order"),
    ('"ordered"', "3", "scan.strategy"),
    ('"mnist_c.brightness"', '"mnist_c.brightnes"', "did you mean 'mnist_c.brightness'?"),
    ('"mnist_c.brightness"', '"fog"', "did you mean 'cifar_c.fog' or 'imagenet_c.fog' or 'mnist_c.fog'?"),
    ('"mnist_c.brightness"', "true", "brightness: expected a perturbation, got true"),
    ('"mnist_c.brightness"', "5", "brightness: expected a perturbation, got 5"),
    ('"mnist_c.brightness"', "{ severities = [0, 1] }", "needs exactly one of use, python, got none of them"),
    ('"mnist_c.brightness"', '{ python = "nowhere:fade" }', "space.brightness: 'nowhere:fade': no module 'nowhere'"),
    ('"mnist_c.brightness"', '{ python = "json:dumps" }', "'json:dumps' is a function, not a perturbation"),
    ("brightness =", "order =", "order"),
    ("brightness =", "'light-on' =", "light-on"),
    ("[scan]", "[[gate]]\nquery = 'zom > 1'\nat_least = 0.5\n[scan]", "gate 1: "),
    ("[scan]", "[[gate]]\nquery = 'zoom > 5'\nat_least = 0.5\n[scan]", "selects no test"),
    ("[scan]", "[[gate]]\nquery = 'zoom >'\nat_least = 0.5\n[scan]", "gate 1: "),
    ("[scan]", "[[gate]]\nquery = '__import__(1)'\nat_least = 0.5\n[scan]", "gate 1: "),
    ("[scan]", "[[gate]]\nquery = 'zoom > 1'\nat_least = 1.5\n[scan]", "gate.0.at_least: .*"),
    ("[scan]", "[[gate]]\nquery = 'zoom > 1'\n[scan]", "gate.0.at_least is missing"),
    ("[scan]", "[[gate]]\nquery = 'zoom > 1'\nat_least = 0\ninputs = 'label == 77'\n[scan]", "selects no input"),
    ("[scan]", "[[gate]]\nquery = 'zoom > 1'\nat_least = 0\nname = 'dark'\ninputs = 'lbl'\n[scan]", "gate dark: "),
    (
        "[model]",
        "[model]\npython = 'a:b'",
        "model: needs exactly one of onnx, transformers, encoder, python, torch, skops, xgboost, lightgbm, got onnx",
    ),
    ("[model]", "[model]\nscale = 'twice'", "model.scale"),
    ("[model]", "[model]\nthreads = 0", "model.threads: .* 1, got 0"),
    ("lenet5.onnx", "missing.onnx", "missing.onnx"),
    ("data.npz", "missing.npz", "missing.npz does not exist"),
    ("[data]", "[date]", "unknown key 'date'; did you mean .*known: data"),
    ("npz =", "idx =", "data"),
    ("[model]", "[model", "not valid TOML"),
    ("[model]", "model = 3\n[x]", ""),
    (LENET, "", "model is missing"),
    (LENET, "\0", "not valid TOML"),
]


@pytest.mark.parametrize(("old", "new", "words"), BAD_SPECS)
def test_a_bad_spec_is_one_line_and_makes_no_run(tmp_path, command, old, new, words):
    assert old in LENET
    np.savez(tmp_path / "data.npz", x=X, y=Y)
    spec = tmp_path / "spec.toml"
    spec.write_text(LENET.replace(old, new, 1))
    # Both read a spec in the same way: one of them each.
    name = "check" if BAD_SPECS.index((old, new, words)) % 3 == 2 else "run"
    code, out, err = command(name, spec)
    assert (code, out) == (2, "")
    (line,) = [line for line in err if not line.startswith("note:")]
    assert line.startswith("error: ")
    assert re.search(words, line), line
    assert not (tmp_path / "spec.db").exists()


def test_mistakes_in_a_command_line_are_one_line(tmp_path, command):
    spec = project(tmp_path, 'strategy = "full"\nbatch_size = 50', inputs=60)
    assert command("run", spec, "--part", "1/2")[0] == 0
    run = tmp_path / "spec.db"
    for arguments, words in [
        (["run", tmp_path / "missing.toml"], "missing.toml does not exist; write one with: testifai init"),
        (["run", tmp_path], "is a folder, not a spec; write one with: testifai init"),
        (["run", run], "spec.db is a run file, not a spec"),
        (["check", tmp_path / "data.npz"], "data.npz is a file of NumPy arrays, not a spec"),
        (["run", spec, "--out", tmp_path], "is a folder, not a run file; choose another place with --out"),
        (["run", spec, "--out", spec], "spec.toml is a spec, not a run file"),
        (["run", spec, "--out", tmp_path / "a" / "run.db"], "does not exist"),
        (["run", spec, "--part", "3/2"], "part: expected I/N with I from 1 to N, got 3/2"),
        (["run", spec, "--part", "one"], "part: expected I/N such as 1/3, got 'one'"),
        (["run", spec, "--ot", "x"], "--ot"),
        (["run"], "SPEC.toml"),
        (["rn", spec], "rn"),
        (["query", run, "shft > 1"], "did you mean 'shift'"),
        (["query", run, "shift > 9"], "selects no test"),
        (["query", run, "shift > 1", "--inputs", "label == 8"], "selects no input"),
        (["query", tmp_path / "missing.db", "shift > 1"], "missing.db does not exist"),
        (["export", run, "-o", tmp_path / "table.xls"], "use .csv or .json"),
        (["export", run, "-o", tmp_path / "a" / "table.csv"], "cannot write"),
        (["export", run, "-o", tmp_path / "grid.npz", "--grid"], "a grid needs every input on every test"),
        (["export", run, "-o", tmp_path / "x.npz", "--inputs", "9,9,9"], "9"),
        (["export", run, "-o", tmp_path / "x.npz", "--inputs", "a"], "severities with commas"),
        (["export", run, "-o", tmp_path / "x.txt", "--inputs", "1,0,0"], "written as .npz"),
        (["run", spec, "--merge", run, "-o", run], "exists; give a new file"),
    ]:
        code, out, err = command(*arguments)
        assert (code, out) == (2, ""), arguments
        (line,) = [line for line in err if not line.startswith("note:")]
        assert line.startswith("error: ")
        assert words in line


COMMANDS = [
    ["query", "FILE", "order > 0"], ["show", "FILE"], ["report", "FILE"], ["explore", "FILE"],
    ["export", "FILE", "-o", "out.csv"], ["compare", "FILE", "FILE"], ["show", "FILE", "--independence"],
    ["show", "FILE", "--validity"], ["run", "valid.toml", "--merge", "FILE", "-o", "out.db"],
]  # fmt: skip
OTHER_FILES = [
    ("other.toml", "is a spec, not a run file; its run file is FOLDER/other.db: testifai run FILE makes it"),
    ("made.toml", "is a spec, not a run file; its run file is FOLDER/made.db"),
    ("inputs.csv", "is a table, not a run file; make one with: testifai run SPEC.toml"),
    ("inputs.npz", "is a file of NumPy arrays, not a run file; make one with: testifai run SPEC.toml"),
    ("model.onnx", "is an ONNX model, not a run file; make one with: testifai run SPEC.toml"),
    ("folder", "is a folder, not a run file; make one with: testifai run SPEC.toml"),
    ("notes", "is damaged (file is not a database); restore a copy, or start a new run with another --out"),
]


# Every command with a spec and two other kinds of file, every kind with several commands.
@pytest.mark.parametrize(
    ("arguments", "name", "words"),
    [
        (arguments, *OTHER_FILES[kind])
        for number, arguments in enumerate(COMMANDS)
        for kind in sorted({0, 1 + number % 6, 1 + (number + 2) % 6})
    ],
)
def test_a_file_of_another_kind_is_named_for_what_it_is(tmp_path, monkeypatch, command, arguments, name, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made.db").write_bytes(b"")
    (tmp_path / "valid.toml").write_text(
        'model.onnx = "m.onnx"\ndata.npz = "d.npz"\nspace.blur = "mnist_c.motion_blur"\n'
    )
    file = tmp_path / name
    if name == "folder":
        file.mkdir()
    else:
        file.write_text("not what one would wish for")
    code, out, err = command(*(str(file) if one == "FILE" else one for one in arguments))
    assert (code, out) == (2, "")
    assert err == [f"error: run file: {file} {words.replace('FOLDER', str(tmp_path)).replace('FILE', str(file))}"]


def test_only_run_files_may_be_deleted(tmp_path, command):
    run = tmp_path / "run.db"
    Store.create_or_open(run).close()
    run.write_bytes(run.read_bytes()[:5000])
    assert "or delete it and run again" in command("show", run)[2][0]


def test_parts_run_by_command_and_merged_are_the_whole(tmp_path, command):
    spec = project(tmp_path, 'strategy = "full"\nbatch_size = 50', inputs=100)
    assert command("run", spec, "--out", tmp_path / "whole.db")[0] == 0
    parts = [tmp_path / f"part{i}.db" for i in (1, 2, 3)]
    for i, path in enumerate(parts, start=1):
        assert command("run", spec, "--out", path, "--part", f"{i}/3")[0] == 0
    assert command("run", spec, "--merge", *parts, "-o", tmp_path / "merged.db")[0] == 0
    for name in ("whole", "merged"):
        assert command("export", tmp_path / f"{name}.db", "-o", tmp_path / f"{name}.csv")[0] == 0
        assert command("export", tmp_path / f"{name}.db", "-o", tmp_path / f"{name}.npz", "--grid")[0] == 0
        # The merged run still knows its spec.
        shown = tmp_path / f"{name}_inputs.npz"
        assert command("export", tmp_path / f"{name}.db", "-o", shown, "--inputs", "2,1,0")[0] == 0
    for ending in (".csv", ".npz", "_inputs.npz"):
        assert (tmp_path / f"whole{ending}").read_bytes() == (tmp_path / f"merged{ending}").read_bytes()


def test_a_full_disk_ends_a_run_with_one_line_and_it_goes_on_when_there_is_room(tmp_path, command, monkeypatch):
    spec = project(tmp_path, 'strategy = "full"\nbatch_size = 50\nkeep = ["value"]', inputs=300)
    run, whole = tmp_path / "run.db", tmp_path / "whole.db"
    assert command("run", spec, "--out", whole)[0] == 0
    real = sqlite3.connect

    def connect(*arguments, **options):
        connection = real(*arguments, **options)
        connection.execute("PRAGMA max_page_count = 12")
        return connection

    monkeypatch.setattr(observers, "SAVE_EVERY", 0)
    monkeypatch.setattr(sqlite3, "connect", connect)
    code, _, err = command("run", spec, "--out", run)
    monkeypatch.setattr(sqlite3, "connect", real)
    assert code == 2
    assert len(err) == 2
    assert err[1].startswith(f"error: run file: could not write {run} (database or disk is full)")
    kept, truth = open_run(run), open_run(whole)
    assert 0 < kept.inferences < truth.inferences
    assert is_part_of(kept.outcomes, truth.outcomes)
    assert command("run", spec, "--out", run)[0] == 0
    assert facts(open_run(run).outcomes) == facts(truth.outcomes)


# -- nothing else changes results ------------------------------------------------------------------------------------


def everything(ready: Session):
    """Bits, kept values and remembered clean outputs of a finished session."""
    ready.run()
    outcomes, references = ready.outcomes, ready.executor.references.values
    kept = {(i, name): outcomes.kept(i, name).tobytes() for name in outcomes.kept_names() for i in sorted(outcomes)}
    return facts(outcomes), kept, None if references is None else references.tobytes()


IMAGES = Space({"blur": ("mnist_c.motion_blur", [0, 2, 5]), "noise": ("mnist_c.shot_noise", [0, 3, 5])})
ROW_SPACE = Space(
    {
        "noise": Perturbation("noise", lambda x, by, rng: x + by * rng.normal((3,)), [0, 0.1, 0.3]),
        "drop": Perturbation("drop", lambda x, by, rng: x * (rng.uniform((3,)) > by), [0, 0.2, 0.5]),
    }
)
ROWS = np.random.default_rng(5).random((211, 3))
ORACLES = ["label", "consistency", {"use": "tolerance", "eps": 0.25}]
STOPPING = [None, Window(batch=30, delta=0.06, window=2)]
BATCHES = [(1, 2), (7, 1), (100, 2), (None, 1)]  # sizes and workers


def row_scores(rows):
    """No sum over rows or columns: the last bit of a matrix product may depend on the batch."""
    return np.stack([rows[:, 0], rows[:, 1] * rows[:, 2], np.maximum(rows[:, 2], 0.4)], axis=1)


def pixel_scores(images):
    return images[:, 6:26:4, 8:20:3].reshape(len(images), -1).astype(np.float64) / 255


def make(kind: str, **options) -> Session:
    if kind == "table":
        return session_of(row_scores, (ROWS, row_scores(ROWS).argmax(axis=1)), ROW_SPACE, **options)
    images = np.asarray(DIGITS.inputs)[:101]
    if kind == "network":
        return session_of(OnnxModel(demo_model_path()), (images, np.asarray(DIGITS.labels)[:101]), IMAGES, **options)
    return session_of(pixel_scores, (images, pixel_scores(images).argmax(axis=1)), IMAGES, **options)


@pytest.mark.parametrize("stopping", STOPPING)
@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize("kind", ["table", "images"])
def test_neither_batch_size_nor_workers_change_a_bit(kind, oracle, stopping):
    options = {"strategy": "full", "oracle": oracle, "stopping": stopping, "keep": ("value", "predicted")}
    reference = everything(make(kind, batch_size=13, workers=1, **options))
    assert {len(set(bits)) for bits in reference[0].values()} != {1}, "some inputs must fail"
    for batch_size, workers in BATCHES:
        assert everything(make(kind, batch_size=batch_size, workers=workers, **options)) == reference


@pytest.mark.parametrize("oracle", ["label", "consistency"])
@pytest.mark.parametrize("stopping", STOPPING)
def test_nor_do_they_change_an_outcome_of_a_network(oracle, stopping):
    options = {"strategy": "full", "oracle": oracle, "stopping": stopping}
    found = [
        everything(make("network", batch_size=batch_size, workers=workers, **options))[0]
        for batch_size, workers in BATCHES
    ]
    assert all(one == found[0] for one in found)


@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize("kind", ["table", "images"])
def test_an_outcome_does_not_depend_on_what_else_is_visited(kind, oracle):
    options = {"oracle": oracle, "keep": ("value",), "batch_size": 11}
    whole = make(kind, strategy="full", **options)
    whole.run()
    inputs = len(whole.subject.order)
    for other in (
        {"strategy": "full", "stopping": Window(batch=30, delta=0.06, window=2)},
        {"strategy": "full", "stopping": {"use": "interval", "target": 0.12, "batch": 25}},
        {"strategy": "full", "budget": 400},
        {"strategy": {"use": "random", "tests_run": 4}},
        {"strategy": {"use": "ordered", "max_order": 1}},
        {"strategy": "full", "part": (2, 3)},
    ):
        some = make(kind, **other, **options)
        some.run()
        assert 0 < some.outcomes.total() < whole.outcomes.total()
        assert is_part_of(some.outcomes, whole.outcomes)
        for i in some.outcomes:
            tried = some.outcomes.attempted(i, np.arange(inputs))
            np.testing.assert_array_equal(some.outcomes.kept(i, "value")[tried], whole.outcomes.kept(i, "value")[tried])
