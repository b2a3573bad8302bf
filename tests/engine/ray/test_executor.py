"""Two real nodes on loopback: every disturbance ends with the undisturbed result."""

import functools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.engine.ray.nodes import Nodes, descendants

from testifai.engine.ray.executor import RayExecutor
from testifai.errors import InputError
from testifai.present import export
from testifai.scans.session import scan
from testifai.scans.stored import open_measured, open_run
from testifai.space import Space
from testifai.testing import check_executor

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.slow

PAUSE = 0.05  # seconds a batch, on the nodes: long enough to disturb a run in the middle of it
INPUTS, TESTS, BATCH = 400, 64, 40
CALLS = INPUTS * TESTS // BATCH  # at the least

# The pace is the nodes' environment, so that it is no part of the model.
CODE = """
import os, time
from pathlib import Path
import numpy as np
import testifai as ta

def model(rows):
    if "TEST_PAUSE" in os.environ:
        time.sleep(float(os.environ["TEST_PAUSE"]))
        with Path(__file__).with_name("calls").open("a") as file:
            file.write(".")
    return np.stack([np.sin(9 * rows[:, 0]), rows[:, 1] ** 2, rows.mean(axis=1)], axis=1)

shift = ta.Perturbation("shift", lambda x, by, rng: x + x.dtype.type(by), [0, 0.05, 0.1, 0.2])
noise = ta.Perturbation("noise", lambda x, by, rng: (x + by * rng.normal((3,))).astype(x.dtype), [0, 0.1, 0.2, 0.3])
scale = ta.Perturbation("scale", lambda x, by, rng: x * x.dtype.type(by), [1, 0.9, 0.8, 0.7])
"""

SPEC = """
[model]
python = "own:model"
[data]
npz = "data.npz"
[space]
shift = { python = "own:shift" }
noise = { python = "own:noise" }
scale = { python = "own:scale" }
[scan]
strategy = "full"
oracle = "ORACLE"
batch_size = BATCH
keep = ["value", "predicted"]
"""


@pytest.fixture(scope="module")
def nodes():
    """A cluster of two nodes, one CPU and one declared GPU each."""
    started = Nodes("--num-gpus=1", pause=PAUSE)
    try:
        started.add()
        yield started
    finally:
        started.close()


@pytest.fixture
def here(nodes):
    """This process as a driver of the cluster."""
    return f"ray:{nodes.address}"


def project(folder: Path, oracle: str = "label") -> Path:
    rows = np.random.default_rng(0).random((INPUTS, 3)).astype(np.float32)
    labels = np.stack([np.sin(9 * rows[:, 0]), rows[:, 1] ** 2, rows.mean(axis=1)], axis=1).argmax(axis=1)
    np.savez(folder / "data.npz", x=rows, y=labels)
    (folder / "own.py").write_text(CODE)
    spec = folder / "spec.toml"
    spec.write_text(SPEC.replace("ORACLE", oracle).replace("BATCH", str(BATCH)))
    return spec


def start(nodes: Nodes, spec: Path, out: Path, workers: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "testifai", "run", str(spec), "--out", str(out), "--workers", workers],
        env=nodes.environment, cwd=spec.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> None:
    """It ends well, and nothing but what it is to say is on the terminal."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert [line for line in err.splitlines() if not line.startswith("note: runs your own code")] == []
    assert "ray" not in out.lower()


def calls(folder: Path) -> int:
    """How many batches the model has had on the nodes."""
    return (folder / "calls").stat().st_size if (folder / "calls").exists() else 0


def wait_until_under_way(process: subprocess.Popen[str], folder: Path) -> None:
    deadline = time.monotonic() + 90
    while calls(folder) < CALLS // 6:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def files(run: Path, folder: Path) -> list[bytes]:
    """A run as it is handed to others, and every value kept of it."""
    export.write_table(open_measured(run), folder / "table.csv")
    export.write_grid(open_run(run), folder / "grid.npz")
    outcomes = open_run(run).outcomes
    kept = [outcomes.kept(test, name).tobytes() for name in outcomes.kept_names() for test in sorted(outcomes)]
    return [(folder / "table.csv").read_bytes(), (folder / "grid.npz").read_bytes(), *kept]


def test_a_node_killed_in_the_middle_changes_nothing(nodes, tmp_path):
    spec = project(tmp_path, "consistency")
    finish(start(nodes, spec, tmp_path / "here.db", "1"))
    other = nodes.add()
    process = start(nodes, spec, tmp_path / "there.db", f"ray:{nodes.address}")
    wait_until_under_way(process, tmp_path)
    nodes.kill(other)
    assert calls(tmp_path) < CALLS, "it was over before the node was killed"
    finish(process)
    assert files(tmp_path / "there.db", tmp_path) == files(tmp_path / "here.db", tmp_path)


def test_an_actor_killed_in_the_middle_changes_nothing(nodes, tmp_path):
    spec = project(tmp_path)
    finish(start(nodes, spec, tmp_path / "here.db", "1"))
    process = start(nodes, spec, tmp_path / "there.db", f"ray:{nodes.address}")
    wait_until_under_way(process, tmp_path)
    os.kill(actors(nodes)[0], signal.SIGKILL)
    finish(process)
    assert files(tmp_path / "there.db", tmp_path) == files(tmp_path / "here.db", tmp_path)


def actors(nodes: Nodes) -> list[int]:
    """The processes of actors, as Ray names them."""
    family = [child for node in nodes._started for child in descendants(node.pid)]
    named = {child: Path(f"/proc/{child}/cmdline") for child in family}
    found = [child for child, line in named.items() if line.exists() and line.read_bytes().startswith(b"ray::Actor")]
    assert found
    return found


def test_a_driver_killed_in_the_middle_goes_on_where_it_was(nodes, tmp_path):
    spec = project(tmp_path)
    finish(start(nodes, spec, tmp_path / "here.db", "1"))
    process = start(nodes, spec, tmp_path / "there.db", f"ray:{nodes.address}")
    wait_until_under_way(process, tmp_path)
    process.kill()
    process.communicate()
    assert 0 < open_run(tmp_path / "there.db").inferences < INPUTS * TESTS
    finish(start(nodes, spec, tmp_path / "there.db", f"ray:{nodes.address}"))
    assert files(tmp_path / "there.db", tmp_path) == files(tmp_path / "here.db", tmp_path)


def test_an_interrupt_ends_the_actors_and_leaves_the_cluster(nodes, tmp_path):
    spec = project(tmp_path)
    process = start(nodes, spec, tmp_path / "there.db", f"ray:{nodes.address}")
    wait_until_under_way(process, tmp_path)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "stopped: " in err
    assert "the same command continues" in err
    assert "Traceback" not in err
    deadline = time.monotonic() + 20
    while True:
        try:
            actors(nodes)
        except AssertionError:
            break
        assert time.monotonic() < deadline, "an actor goes on"
        time.sleep(0.2)
    assert 0 < open_run(tmp_path / "there.db").inferences < INPUTS * TESTS


def test_it_keeps_the_contract(here):
    check_executor(functools.partial(RayExecutor, address=here.removeprefix("ray:"), cpus=0.5))


def test_gpus_are_asked_for_and_not_needed(here):
    """Two declared GPUs, four actors with half of one each; there is none, so the model stays where it is."""
    torch = pytest.importorskip("torch")
    rows = np.random.default_rng(0).random((60, 3)).astype(np.float32)
    module = torch.nn.Linear(3, 3)
    labels = np.zeros(60, int)
    executor = {"use": "ray", "address": here.removeprefix("ray:"), "actors": 4, "cpus": 0.25, "gpus": 0.5}
    seen = []
    options = {"strategy": "full", "keep": ["value"], "batch_size": 10}
    there = scan(module, (rows, labels), space(), executor=executor, progress=seen.append, **options)
    assert seen[-1].where.startswith("2 nodes, ")
    near = scan(module, (rows, labels), space(), workers=1, **options)
    assert there.estimate.tolist() == near.estimate.tolist()
    with pytest.raises(InputError, match="too little for 5 actors, each with"):
        scan(module, (rows, labels), space(), executor={**executor, "actors": 5}, **options)


def space() -> Space:
    from testifai.perturb import Perturbation

    return Space({"shift": Perturbation("shift", lambda x, by, rng: x + np.float32(by), [0.0, 0.3, 0.6])})


def test_a_fault_of_the_model_is_one_line(here):
    rows = np.zeros((50, 3))

    def broken(batch):
        raise ArithmeticError("no such number")

    with pytest.raises(InputError, match="model: raised ArithmeticError: no such number"):
        scan(broken, (rows, np.zeros(50, int)), space(), workers=here)


def test_a_model_that_ends_its_process_is_one_line(here):
    def deadly(batch):
        import os

        os._exit(1)

    with pytest.raises(InputError, match="3 actors ended one after the other with the same task"):
        scan(deadly, (np.zeros((50, 3)), np.zeros(50, int)), space(), workers=here)


def test_what_cannot_travel_is_one_line(here):
    import threading

    lock = threading.Lock()

    def model(batch):
        with lock:
            return batch[:, 0] > 0

    with pytest.raises(InputError, match="workers: the model or the data cannot be sent to another process"):
        scan(model, (np.zeros((50, 3)), np.zeros(50, int)), space(), workers=here)
