"""Data sets elsewhere are those of the same files here."""

import cv2
import numpy as np
import pytest

import testifai as ta
from testifai.data import load, recognise, wrap
from testifai.data.sample import demo_model_path
from testifai.errors import InputError

fsspec = pytest.importorskip("fsspec")


@pytest.fixture(autouse=True)
def memory(tmp_path, monkeypatch):
    monkeypatch.setenv("TESTIFAI_CACHE", str(tmp_path / "cache"))
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


@pytest.fixture
def pets(tmp_path):
    """Two classes of images in a folder."""
    random = np.random.default_rng(0)
    for name in ("cat/a.png", "cat/deep/b.png", "dog/a.png", "dog/.hidden.png"):
        file = tmp_path / "pets" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(file), random.integers(0, 255, (8, 8, 3), np.uint8))
    (tmp_path / "pets" / "notes.txt").write_text("not an image")
    return tmp_path / "pets"


def put(memory, folder, address):
    for file in folder.rglob("*"):
        if file.is_file():
            memory.pipe(f"/{address}/{file.relative_to(folder).as_posix()}", file.read_bytes())


def test_a_folder_of_images(memory, pets):
    put(memory, pets, "pets")
    there, here = wrap("memory://pets"), wrap(pets)
    assert there.fingerprint == here.fingerprint
    assert (there.classes, there.labels.tolist(), there.name) == (here.classes, here.labels.tolist(), "pets")
    np.testing.assert_array_equal(there.inputs[:], here.inputs[:])


def test_images_are_fetched_when_they_are_read(memory, pets, tmp_path, monkeypatch):
    from testifai.data import image_files

    monkeypatch.setattr(image_files, "MAX_FILES", 2)
    random = np.random.default_rng(1)
    for number in range(40):
        cv2.imwrite(str(pets / "cat" / f"{number}.png"), random.integers(0, 255, (8, 8, 3), np.uint8))
    put(memory, pets, "pets")
    there = load("folder", "memory://pets")
    there.inputs[np.array([5, 7])]
    assert len(list((tmp_path / "cache").rglob("*.png"))) <= 4  # the first, one of each class, and these


def test_a_changed_image_is_noticed(memory, pets):
    put(memory, pets, "pets")
    before = wrap("memory://pets").fingerprint
    memory.pipe("/pets/dog/a.png", (pets / "cat" / "a.png").read_bytes())
    assert wrap("memory://pets").fingerprint != before


@pytest.mark.parametrize("protocol", ["file", "memory"])
def test_arrays_and_tables(memory, tmp_path, protocol):
    rows = np.random.default_rng(0).random((6, 3))
    np.savez(tmp_path / "x.npz", x=rows, y=np.arange(6) % 2)
    (tmp_path / "t.csv").write_text("text,label\ngood,1\nbad,0\n")
    for name in ("x.npz", "t.csv"):
        address = f"file://{tmp_path}/{name}"
        if protocol == "memory":
            address = f"memory://{name}"
            memory.pipe(f"/{name}", (tmp_path / name).read_bytes())
        assert wrap(address).fingerprint == wrap(tmp_path / name).fingerprint


def test_a_changed_file_is_another_run(memory, tmp_path):
    rows = np.random.default_rng(0).random((30, 3))
    shift = ta.Space({"shift": ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.5])})

    def scan():
        np.savez(tmp_path / "x.npz", x=rows, y=(rows[:, 0] > 0.5).astype(int))
        memory.pipe("/x.npz", (tmp_path / "x.npz").read_bytes())
        return ta.scan(lambda x: (x[:, 0] > 0.5).astype(int), "memory://x.npz", shift, store=tmp_path / "run.db")

    assert scan().estimate.tolist() == scan().estimate.tolist()
    rows[0] += 0.001
    with pytest.raises(InputError, match="data"):
        scan()


def test_a_model_elsewhere(memory):
    from testifai.models import wrap as wrap_model

    memory.pipe("/m/net.onnx", demo_model_path().read_bytes())
    there, here = wrap_model("memory://m/net.onnx"), wrap_model(demo_model_path())
    assert there.fingerprint == here.fingerprint


def test_folders_of_other_kinds_are_refused(memory):
    memory.pipe("/cifar/test_batch.bin", b"0" * 3073)
    with pytest.raises(InputError, match="memory://cifar holds no images"):
        wrap("memory://cifar")
    with pytest.raises(InputError, match="cifar: memory://cifar is a folder; of folders elsewhere"):
        load("cifar", "memory://cifar")
    assert recognise("memory://cifar/test_batch.bin") == "cifar"
