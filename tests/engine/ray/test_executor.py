"""Two real nodes on loopback: every disturbance ends with the undisturbed result."""

import functools
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np
import pytest
from tests.engine.ray.nodes import Nodes, descendants

from testifai.data.sample import demo_data, demo_model_path
from testifai.engine.ray.executor import RayExecutor, RayWorkers
from testifai.errors import InputError
from testifai.models import wrap
from testifai.operational.selection import choose
from testifai.present import export
from testifai.session.assembly import scan
from testifai.session.stored_runs import open_measured, open_run
from testifai.space import Space
from testifai.sweeps import sweep_model
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
version = "1"
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
    """A cluster of two nodes, one CPU and two declared GPUs each; with a door for clients where that can be."""
    started = Nodes("--num-gpus=2", pause=PAUSE, client=find_spec("grpc") is not None)
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


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_actor_killed_in_the_middle_changes_nothing(nodes, tmp_path, number):
    spec = project(tmp_path)
    finish(start(nodes, spec, tmp_path / "here.db", "1"))
    process = start(nodes, spec, tmp_path / "there.db", f"ray:{nodes.address}")
    wait_until_under_way(process, tmp_path)
    os.kill(actors(nodes)[0], number)
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
    """Four declared GPUs, four actors with half of one each; there is none, so the model stays where it is."""
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
    with pytest.raises(InputError, match="too little for 9 actors, each with"):
        scan(module, (rows, labels), space(), executor={**executor, "actors": 9}, **options)


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


class Where:
    """An job about who answers it: the node, the GPUs that this process is shown, and the process."""

    model = wrap(lambda batch: batch[:, 0] > 0)

    def __call__(self, job):
        time.sleep(0.1)
        return ray.get_runtime_context().get_node_id(), os.environ.get("CUDA_VISIBLE_DEVICES"), os.getpid()


@pytest.mark.parametrize(("gpus", "sharing"), [(1.0, 1), (0.5, 2)])
def test_actors_are_shown_the_gpus_that_they_were_given(here, gpus, sharing):
    """Of two declared on each of two nodes; a model that goes to "cuda" then is on the first that is shown."""
    with closing(RayWorkers(address=here.removeprefix("ray:"), actors=4, cpus=0.5, gpus=gpus)) as workers:
        deadline = time.monotonic() + 60
        found: set[tuple[str, str, int]] = set()
        while len(found) < 4 and time.monotonic() < deadline:  # the last to start are asked last
            found |= set(workers.map(Where(), range(8)))
    actors = Counter((node, shown) for node, shown, _ in found)
    assert sum(actors.values()) == 4
    assert {shown for _, shown in actors} <= {"0", "1"}
    assert max(actors.values()) <= sharing
    assert set(Counter(node for node, _, _ in found).values()) == {2}


class Mortal:
    """Squares; the first to be asked about 7 ends with its process."""

    model = wrap(lambda batch: batch[:, 0] > 0)

    def __init__(self, folder):
        self.mark = folder / "was here"

    def __call__(self, job):
        if job == 7 and not self.mark.exists():
            self.mark.touch()
            os._exit(1)
        return job**2


def test_what_a_lost_actor_was_asked_is_asked_again(here, tmp_path):
    with closing(RayWorkers(address=here.removeprefix("ray:"))) as workers:
        assert list(workers.map(Mortal(tmp_path), range(50))) == [job**2 for job in range(50)]
    assert (tmp_path / "was here").exists()


def rows_and_labels() -> tuple[np.ndarray, np.ndarray]:
    rows = np.random.default_rng(0).random((300, 3)).astype(np.float32)
    return rows, scores(rows).argmax(axis=1)


def scores(rows: np.ndarray) -> np.ndarray:
    return np.stack([np.sin(9 * rows[:, 0]), rows[:, 1] ** 2, rows.mean(axis=1)], axis=1)


@pytest.mark.parametrize("oracle", ["label", "consistency"])
def test_a_sweep_is_the_one_of_this_machine(here, oracle):
    from testifai.perturb import Perturbation

    def shifted(x, by, rng):
        return (x + by * rng.normal((3,))).astype(x.dtype)

    shift = Perturbation("shift", shifted, [0.0, 1.0], levels=(0.0, 1.0))
    options = {"threshold": [0.7, 0.8], "oracle": oracle, "points": 64, "batch_size": 50}
    batches: list[int] = []
    there = sweep_model(
        scores, rows_and_labels(), shift, workers=here, on_batch=lambda one: batches.append(one.start), **options
    )
    near = sweep_model(scores, rows_and_labels(), shift, workers=1, **options)
    assert batches
    assert [one.as_dict() for one in there] == [one.as_dict() for one in near]


def close_to(clean: np.ndarray, perturbed: np.ndarray) -> np.ndarray:
    return 1 - np.abs(clean - perturbed).mean(axis=1)


@pytest.mark.parametrize("measure", ["function", "kid"])
def test_quality_is_the_one_of_this_machine_and_costs_as_much(here, measure, tmp_path):
    if measure == "function":
        model, data, axes, use = scores, rows_and_labels(), space(), {"use": close_to}
    else:
        whole = demo_data()
        model, data = demo_model_path(), (whole.inputs[:200], whole.labels[:200])
        axes, use = Space({"brightness": "mnist_c.brightness"}), {"use": "kid", "extractor": str(demo_model_path())}
    options = {"strategy": "full", "quality": use}
    there = scan(model, data, axes, workers=here, **options).quality
    near = scan(model, data, axes, workers=1, **options).quality
    assert there.measured.tolist() == list(range(axes.size))
    assert there.values.tolist() == near.values.tolist()
    assert there.errors.tolist() == near.errors.tolist()
    assert there.inferences == near.inferences


def test_what_is_selected_for_labels_is_the_same(here):
    from testifai import data

    given = data.wrap(rows_and_labels()[0])
    there = choose(scores, given, tests=50, workers=here)
    assert there.tag == choose(scores, given, tests=50).tag
    assert there.save() == choose(scores, given, tests=50, workers=1).save()


def test_model_and_data_elsewhere_are_fetched_by_every_node(nodes, here, tmp_path, monkeypatch):
    """Through fsspec, with a folder of copies of their own for nodes and driver."""
    pytest.importorskip("fsspec")
    monkeypatch.setenv("TESTIFAI_CACHE", str(tmp_path / "copies"))
    whole = demo_data()
    for number, (image, label) in enumerate(zip(whole.inputs[:60], whole.labels, strict=False)):
        folder = tmp_path / "digits" / str(label)
        folder.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(folder / f"{number}.png"), image)
    (tmp_path / "net.onnx").write_bytes(demo_model_path().read_bytes())
    axes, options = Space({"brightness": "mnist_c.brightness"}), {"strategy": "full", "keep": ["value"]}
    before = len(list(nodes.cache.rglob("*")))
    there = scan(f"local://{tmp_path}/net.onnx", f"local://{tmp_path}/digits", axes, workers=here, **options)
    assert {file.name for file in nodes.cache.rglob("*")} >= {"net.onnx", "0.png", "59.png"}
    assert len(list(nodes.cache.rglob("*"))) > before
    near = scan(f"file://{tmp_path}/net.onnx", f"file://{tmp_path}/digits", axes, workers=1, **options)
    assert there.estimate.tolist() == near.estimate.tolist()


def test_a_client_gets_the_same_results_and_lines(nodes):
    pytest.importorskip("grpc")
    options = {"strategy": "full", "oracle": "consistency", "keep": ["value"], "batch_size": 50}
    there = scan(scores, rows_and_labels(), space(), workers=nodes.door, **options)
    near = scan(scores, rows_and_labels(), space(), workers=1, **options)
    assert there.estimate.tolist() == near.estimate.tolist()

    def broken(batch):
        raise ArithmeticError("no such number")

    with pytest.raises(InputError, match="model: raised ArithmeticError: no such number"):
        scan(broken, rows_and_labels(), space(), workers=nodes.door)
    assert not ray.is_initialized()
