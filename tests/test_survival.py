"""What a run must survive: kill -9, Ctrl-C, bad models, bad data, bad specs; and that nothing else changes results."""

import csv
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from testifai import cli
from testifai.data.sample import demo_data, demo_model_path
from testifai.engine.stopping import Window
from testifai.models.onnx import OnnxModel
from testifai.perturb import Perturbation
from testifai.session import Session, open_run
from testifai.space import Space

COMMAND = [sys.executable, "-m", "testifai"]
NUMBER = count()

# The pace is the environment's, so that it is no part of the model. `broken` stands for what goes wrong outside it.
MODEL = """
import os, time
from pathlib import Path
import numpy as np

CALLS = 0
HERE = Path(__file__).parent

def model(rows):
    global CALLS
    CALLS += 1
    if "TEST_MARK" in os.environ and CALLS == 20:
        Path(os.environ["TEST_MARK"]).touch()
    time.sleep(float(os.environ.get("TEST_PAUSE", "0")))
    scores = np.stack([np.sin(9 * rows[:, 0]), rows[:, 1] ** 2, rows.mean(axis=1)], axis=1)
    if CALLS > 12 and (HERE / "broken").exists():
        return BROKEN
    return scores
"""

PERTURBATIONS = """
import numpy as np
import testifai as ta

shift = ta.Perturbation("shift", lambda x, by, rng: x + x.dtype.type(by), [0, 0.05, 0.1, 0.2, 0.3])
noise = ta.Perturbation("noise", lambda x, by, rng: (x + by * rng.normal((3,))).astype(x.dtype), [0, 0.1, 0.2, 0.3])
scale = ta.Perturbation("scale", lambda x, by, rng: x * x.dtype.type(by), [1, 0.9, 0.8, 0.7])
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
    np.savez(folder / "data.npz", x=rows, y=np.arange(inputs) % 3)
    (folder / f"model_{number}.py").write_text(MODEL.replace("BROKEN", broken))
    (folder / f"perturbations_{number}.py").write_text(PERTURBATIONS)
    spec = folder / "spec.toml"
    spec.write_text(
        f'[model]\npython = "model_{number}:model"\n[data]\nnpz = "data.npz"\n'
        + SPACE.replace("NUMBER", number)
        + f"[scan]\n{scan}\n"
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


def start(*arguments: object, pause: float = 0, mark: Path | None = None) -> subprocess.Popen[str]:
    """The command line in a process of its own, with a model that takes its time."""
    environment = {**os.environ, "TEST_PAUSE": str(pause)}
    if mark is not None:
        environment["TEST_MARK"] = str(mark)
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever runs the tests in the background may have switched interrupts off for the children, too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def finish(*arguments: object) -> None:
    process = start(*arguments)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err


def exported(run: Path) -> bytes:
    finish("export", run, "-o", run.with_suffix(".csv"))
    return run.with_suffix(".csv").read_bytes()


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
    "full": ('strategy = "full"\nbatch_size = 8\nkeep = ["value", "predicted"]', 17),
    "stopped early": (
        'strategy = "ordered"\nbatch_size = 5\nstopping = { use = "window", batch = 40, delta = 0.15 }',
        16,
    ),
    "consistency": ('strategy = "full"\nbatch_size = 16\noracle = "consistency"\nworkers = 2\nbudget = 20000', 17),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_killed_again_and_again_ends_as_one_left_alone(tmp_path, name):
    scan, kills = RUNS[name]
    spec = project(tmp_path, scan)
    whole, run = tmp_path / "whole.db", tmp_path / "run.db"
    begin = time.monotonic()
    finish("run", spec, "--out", whole)
    start_up = time.monotonic() - begin
    truth = open_run(whole)
    dice = random.Random(name)
    pause = 0.004 if name == "stopped early" else 0.006
    reached, hits = 0, 0
    for number in range(kills):
        process = start("run", spec, "--out", run, pause=pause)
        time.sleep(dice.uniform(0.5 * start_up, start_up + 0.4))
        process.kill()
        _, err = process.communicate()
        hits += process.returncode == -signal.SIGKILL
        assert "error" not in err
        # Looking at the file tidies up after the killed process; mostly that is left to the next run.
        if number % 4 == 3 and run.exists() and run.stat().st_size:
            found = open_run(run)
            assert found.inferences >= reached, "what was in the file stays in the file"
            assert is_part_of(found.outcomes, truth.outcomes)
            reached = found.inferences
    assert hits >= kills - 3, "the run must be long enough to be killed in the middle"
    assert 0 < reached
    finish("run", spec, "--out", run)
    resumed = open_run(run)
    assert facts(resumed.outcomes) == facts(truth.outcomes)
    for kind in ("value", "predicted"):
        if kind in truth.outcomes.kept_names():
            for i in truth.outcomes:
                np.testing.assert_array_equal(resumed.outcomes.kept(i, kind), truth.outcomes.kept(i, kind))
    assert exported(run) == exported(whole)
    for query in QUERIES:
        assert resumed.query(query) == truth.query(query)
    assert sorted(file.name for file in tmp_path.glob("run.db*")) == ["run.db"]


# -- Ctrl-C ----------------------------------------------------------------------------------------------------------


def interrupt(spec: Path, run: Path, mark: Path, times: int = 1) -> list[str]:
    """Start a run, interrupt it once it is under way; the lines on standard error."""
    mark.unlink(missing_ok=True)
    process = start("run", spec, "--out", run, pause=0.01, mark=mark)
    deadline = time.monotonic() + 30
    while not mark.exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    return [line for line in err.splitlines() if line.strip() and not line.startswith("note:")]


@pytest.mark.parametrize("name", RUNS)
def test_an_interrupted_run_says_so_loses_nothing_and_goes_on(tmp_path, name):
    spec = project(tmp_path, RUNS[name][0])
    whole, run = tmp_path / "whole.db", tmp_path / "run.db"
    finish("run", spec, "--out", whole)
    truth = open_run(whole)
    before = 0
    for times in (1, 1, 2):  # the second time while it resumes; at last by someone impatient
        (line,) = interrupt(spec, run, tmp_path / "mark", times)
        found = open_run(run)
        assert line.startswith(f"stopped: {found.inferences:,} of at most ") or times == 2
        assert line.endswith(f"inferences are in {run}; the same command continues")
        assert is_part_of(found.outcomes, truth.outcomes)
        # Twenty batches were measured before the signal; the model is asked for little more than those.
        assert before < found.inferences < truth.inferences
        before = found.inferences
    finish("run", spec, "--out", run)
    assert exported(run) == exported(whole)


def test_an_interrupt_while_things_are_loaded_is_one_line_too(tmp_path):
    spec = project(tmp_path, "")
    mark = tmp_path / "mark"
    (module,) = tmp_path.glob("model_*.py")
    module.write_text(f"from pathlib import Path; Path({str(mark)!r}).touch()\nimport time; time.sleep(20)\n")
    process = start("run", spec)
    while not mark.exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert process.returncode == 130
    assert [line for line in err.splitlines() if line.strip() and not line.startswith("note:")] == ["error: stopped"]


# -- a second writer, and readers ------------------------------------------------------------------------------------


def test_a_second_run_on_the_same_file_is_refused_while_queries_are_answered(tmp_path, command):
    spec = project(tmp_path, RUNS["full"][0])
    run, mark = tmp_path / "run.db", tmp_path / "mark"
    process = start("run", spec, "--out", run, pause=0.02, mark=mark)
    while not mark.exists():
        time.sleep(0.01)
    time.sleep(0.5)
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
    spec = project(tmp_path, 'strategy = "ordered"\nbudget = 500\nbatch_size = 3')
    text = spec.read_text()
    assert command("run", spec)[0] == 0
    measured = facts(open_run(tmp_path / "spec.db").outcomes)
    for old, new, field in [
        ('strategy = "ordered"', 'strategy = "full"', "strategy"),
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
    for change in ("budget = 900", "batch_size = 50", "workers = 2", "target = 0.1"):
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


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("broken", "words"), BROKEN)
def test_a_model_that_goes_wrong_in_the_middle_loses_nothing(tmp_path, command, broken, words, workers):
    spec = project(tmp_path, f'strategy = "full"\nbatch_size = 10\nworkers = {workers}', broken, inputs=60)
    run = tmp_path / "spec.db"
    (tmp_path / "broken").touch()
    code, out, err = command("run", spec)
    assert (code, out) == (2, "")
    assert [line for line in err if not line.startswith("note:")] == err[1:]
    assert len(err) == 2
    assert err[1].startswith("error: ")
    assert words in err[1]
    kept = open_run(run)
    # Twelve batches came back; only what other workers had in flight may be lost.
    assert kept.inferences == 120 if workers == 1 else 60 <= kept.inferences <= 120
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
    ("np.full(len(rows), 7)", "model returned label 7 (10 of 10 labels are outside the 3 classes); accepted: 0 … 2"),
    ("np.full(len(rows), -1)", "model returned label -1"),
    ("np.full(len(rows), 0.5)", "model returned label 0.5"),
    ("np.ones((len(rows), 2))", "labels: 2 (input 2; 20 of 60 labels) cannot be produced by the model"),
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
    ({"x": X, "y": Y - 100}, "cannot be produced by the model; accepted: 0 … 9"),
    ({"x": X, "y": Y + 0.5}, "labels: dtype float64 is not accepted"),
    ({"x": X}, "needs labels, and the data have none"),
    ({"x": X, "y": Y[:-1]}, "labels: 39 labels for 40 inputs"),
    ({"x": X[:0], "y": Y[:0]}, "data.npz: has no rows; at least one input is needed"),
    ({"x": X.astype(complex), "y": Y}, "inputs: dtype complex128 is not accepted; numbers or strings are"),
    ({"x": X.astype("M8[s]"), "y": Y}, "inputs: dtype datetime64[s] is not accepted"),
    ({"x": np.array(["a", "b"]), "y": Y[:2]}, ""),
    ({"x": X[:, :5, :5], "y": Y}, ""),
    ({"x": X.astype(np.float32), "y": Y}, ""),
    ({"x": np.float32(3), "y": Y}, "inputs: a single value is not accepted"),
    ({"a": X, "b": X, "c": Y}, "which arrays are inputs and labels is not clear; set x and y"),
    ({}, "holds no arrays"),
    (b"no zip file", "data.npz is not a readable npz file"),
    (b"", "data.npz is not a readable npz file"),
    (None, "data.npz does not exist"),
]


@pytest.mark.parametrize(("data", "words"), BAD_DATA)
def test_bad_data_are_one_line_and_make_no_run(tmp_path, command, data, words):
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
    with pytest.raises(ValueError):
        assert not open_run(tmp_path / "spec.db").inferences
        raise ValueError
