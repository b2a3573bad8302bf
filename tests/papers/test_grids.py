"""The committed grids are what their page says; `record.py` measures them anew, and says what it cannot."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import record
from evaluation.recording._grids import joined, write
from evaluation.setting import MissingFileError, Setting
from evaluation.tasks import TASKS
from replay import Grid

from testifai import perturb
from testifai.data.sample import demo_data, demo_model_path
from testifai.models.onnx import OnnxModel

FOLDER = Path(record.__file__).parent / "grids"


@pytest.fixture(scope="module")
def described():
    """The cells of the page's table of grids, by the name of the file."""
    lines = (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    start = next(at for at, line in enumerate(lines) if "clean rate" in line)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[start + 2 : start + 2 + len(TASKS)]]
    return {row[0].strip("`"): row[1:] for row in rows}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_grid_of_a_task_is_what_its_page_says(task, described):
    grid = task.grid(Setting(FOLDER, FOLDER))
    inputs, axes, clean, least, _ = described[f"{task.name}.npz"]
    assert axes == f"`{task.suite}`: {', '.join(grid.axes)}"
    assert grid.axes == task.axes
    assert grid.levels == (6,) * len(task.axes)
    assert grid.inputs == int(inputs)
    assert f"{grid.inputs:,}" == task.data.split()[0]
    assert grid.truth.flat[0] == pytest.approx(float(clean), abs=5e-5)
    assert grid.truth.min() == pytest.approx(float(least), abs=5e-5)
    assert grid.margins is None


def test_files_are_small():
    assert {path.name: path.stat().st_size for path in FOLDER.iterdir() if path.stat().st_size > record.LIMIT} == {}


def test_cube_is_the_grid_with_its_last_axis_off():
    cube = TASKS[0].cube(Setting(FOLDER, FOLDER))
    assert cube.axes == TASKS[0].axes[:3]
    assert cube.truth.size == 216


@pytest.fixture
def family(tmp_path, monkeypatch):
    """A folder of modules beside the real ones; says how to add one."""
    folder = tmp_path / "families"
    folder.mkdir()
    monkeypatch.setattr(record.evaluation.recording, "__path__", [str(folder)])

    def add(name, text):
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
        monkeypatch.delitem(sys.modules, f"evaluation.recording.{name}", raising=False)

    return add


GRID = """
import numpy as np
from testifai.support.files import write_npz

def record(out, data, device, inputs=16):
    passes = np.packbits(np.add.outer([0, 1], np.arange(inputs)) % 3 > 0, axis=-1)
    write_npz(out / "fade.npz", {"axes": np.array(["fade"]), "inputs": np.array(inputs), "passes": passes})
    (out / "device.txt").write_text(f"{device} {data.name}")
"""


ABSENT = """
from evaluation.setting import Setting

def record(out, data, device):
    Setting(out, data).file("models/no.onnx")
"""


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["record.py", *map(str, arguments)])
    record.main()


def test_modules_are_found_and_measure(family, monkeypatch, tmp_path, capsys):
    family("made_up", GRID)
    family("_shared", "")
    run(monkeypatch, "--out", tmp_path / "out", "--device", "cpu")
    assert record.families() == ["made_up"]
    assert Grid.read(tmp_path / "out" / "fade.npz").inputs == 16
    assert (tmp_path / "out" / "device.txt").read_text().startswith("cpu ")
    assert capsys.readouterr().out.startswith("made_up: ")


def test_what_is_missing_is_said_and_the_rest_goes_on(family, monkeypatch, tmp_path, capsys):
    family(
        "absent", "from evaluation.setting import Setting\ndef record(o, d, e): Setting(o, d).file('models/no.onnx')"
    )
    family("library", "import no_such_library")
    family("made_up", GRID)
    run(monkeypatch, "--out", tmp_path / "out", "--device", "cpu")
    assert (tmp_path / "out" / "fade.npz").exists()
    assert capsys.readouterr().err.splitlines() == [
        "not measured: absent: models/no.onnx (below TESTIFAI_DATA)",
        "not measured: library: No module named 'no_such_library'",
    ]


def test_few_inputs_are_compared_with_a_recorded_grid(family, monkeypatch, tmp_path, capsys):
    family("made_up", GRID)
    run(monkeypatch, "--out", tmp_path / "all", "--device", "cpu")
    run(monkeypatch, "--out", tmp_path / "few", "--device", "cpu", "--inputs", 4, "--against", tmp_path / "all")
    assert capsys.readouterr().out.splitlines()[-1] == "fade.npz: 0 of 8 outcomes differ (4 inputs)"


def test_other_tests_are_not_compared(tmp_path, capsys):
    for name, axis in (("new", "fade"), ("old", "blur")):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "one.npz", Grid((axis,), 8, np.zeros((2, 1), np.uint8)))
    record.compare(tmp_path / "new", tmp_path / "old")
    assert "one.npz: blur (2,)" in capsys.readouterr().out


def test_large_files_are_said(family, monkeypatch, tmp_path, capsys):
    family("large", "def record(o, d, e): (o / 'large.npz').write_bytes(bytes(2_100_000))")
    run(monkeypatch, "--out", tmp_path / "out", "--device", "cpu")
    assert capsys.readouterr().err == "too large to be committed: large.npz: 2.1 MB (at most 2)\n"


def test_images_without_data_name_every_file(tmp_path):
    pytest.importorskip("torch")
    from evaluation.recording import images

    with pytest.raises(MissingFileError, match=r"mnist: .*mnist_lenet5\.onnx.*; cifar10: .*; gtsrb: "):
        images.record(tmp_path, tmp_path, "cpu")


def test_images_are_measured_where_their_files_are(tmp_path):
    torch = pytest.importorskip("torch")
    from evaluation.recording import images

    few, data = 3, demo_data()
    for name in ("models", "data", "out"):
        (tmp_path / name).mkdir()
    shutil.copyfile(demo_model_path(), tmp_path / "models" / "mnist_lenet5.onnx")
    np.savez(tmp_path / "data" / "mnist_test.npz", x=data.inputs[:few], y=data.labels[:few])
    with pytest.raises(MissingFileError, match=r"^cifar10: "):
        images.record(tmp_path / "out", tmp_path, "cpu")
    grid, sigma = Grid.read(tmp_path / "out" / "mnist.npz"), (3, 0, 2, 5)
    composite = {f"mnist_c.{axis}": severity for axis, severity in zip(grid.axes, sigma, strict=True)}
    changed = perturb.apply(composite, torch.from_numpy(data.inputs[:few]))
    expected = OnnxModel(demo_model_path())(changed.numpy()).argmax(axis=1) == data.labels[:few]
    assert grid.levels == (6, 6, 6, 6)
    assert grid.passed(int(np.ravel_multi_index(sigma, grid.levels)), np.arange(few)).tolist() == expected.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["driving", "images"])
def test_committed_grids_can_be_had_again(name, tmp_path):
    if name == "images":
        pytest.importorskip("torch")
    try:
        record.record(name, tmp_path, record.FOLDER.resolve(), "cpu", inputs=1)
    except MissingFileError as error:
        pytest.skip(str(error))
    for path in tmp_path.iterdir():
        ours, theirs = (np.unpackbits(Grid.read(one).passes, axis=-1, count=1) for one in (path, FOLDER / path.name))
        # Another processor may add up in another order: an outcome at the boundary can fall to the other side.
        assert (ours != theirs).mean() < 0.005


def test_grids_are_put_together_along_their_inputs(tmp_path):
    random = np.random.default_rng(0)
    flags, scores = random.random((3, 2, 11)) < 0.5, random.random((3, 2, 11)).astype(np.float32)
    parts = [
        Grid(("a", "b"), len(at), np.packbits(flags[..., at], axis=-1), score="f1", scores=scores[..., at])
        for at in (range(3), range(3, 11))
    ]
    write(tmp_path / "whole.npz", joined(parts))
    whole = Grid.read(tmp_path / "whole.npz")
    assert (whole.passes == np.packbits(flags, axis=-1)).all()
    assert whole.scores is not None
    assert (whole.scores == scores).all()


def test_command_says_which_families_there_are():
    told = subprocess.run(
        [sys.executable, record.__file__, "--help"], capture_output=True, text=True, check=True, timeout=120
    )
    assert "driving, images, " in told.stdout.replace("\n", " ")
