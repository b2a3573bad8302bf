from __future__ import annotations

import numpy as np
import pytest

from testifai import data
from testifai.errors import InputError

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (7, 32, 32, 3), dtype=np.uint8)
LABELS = np.array([0, 9, 3, 3, 1, 2, 8])


def records(rows: slice, coarse: bool = False) -> bytes:
    """As the format's page words it, one record after the other."""
    text = b""
    for image, label in zip(IMAGES[rows], LABELS[rows], strict=True):
        text += bytes([7, 10 * label]) if coarse else bytes([label])
        text += b"".join(image[:, :, channel].tobytes() for channel in range(3))
    return text


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data_batch_1.bin").write_bytes(records(slice(0, 2)))
    (tmp_path / "data_batch_2.bin").write_bytes(records(slice(2, 5)))
    (tmp_path / "test_batch.bin").write_bytes(records(slice(5, 7)))
    (tmp_path / "batches.meta.txt").write_text("\n".join("abcdefghij") + "\n\n")
    return tmp_path


def test_one_file(folder):
    read = data.load("cifar", folder / "data_batch_2.bin")
    assert np.array_equal(read.inputs[:], IMAGES[2:5])
    assert read.inputs.shape == (3, 32, 32, 3)
    assert read.labels.tolist() == [3, 3, 1]
    assert read.classes == tuple("abcdefghij")
    assert read.fingerprint == data.from_arrays(IMAGES[2:5], [3, 3, 1], "abcdefghij").fingerprint


def test_rows_across_files_in_any_order(folder):
    read = data.load("cifar", ["data_batch_1.bin", "data_batch_2.bin", "test_batch.bin"], folder=folder)
    rows = np.array([6, 0, 3, 3, 1, 5])
    batch = read.inputs[rows]
    assert np.array_equal(batch, IMAGES[rows])
    assert batch.flags.c_contiguous
    assert read.labels.tolist() == LABELS.tolist()


@pytest.mark.parametrize(
    ("split", "rows"), [(None, [5, 6]), ("test", [5, 6]), ("train", [0, 1, 2, 3, 4]), ("all", range(7))]
)
def test_splits_of_a_folder(folder, split, rows):
    read = data.load("cifar", folder, split=split)
    assert np.array_equal(read.inputs[:], IMAGES[list(rows)])


def test_cifar_100(tmp_path):
    (tmp_path / "test.bin").write_bytes(records(slice(0, 7), coarse=True))
    read = data.load("cifar", tmp_path / "test.bin")
    assert read.labels.tolist() == (10 * LABELS).tolist()
    assert np.array_equal(read.inputs[:], IMAGES)
    assert data.load("cifar", tmp_path / "test.bin", coarse=True).labels.tolist() == [7] * 7


def test_refused(folder):
    file = folder / "x.bin"
    file.write_bytes(records(slice(0, 2))[:-1])
    with pytest.raises(InputError, match="not a whole number of CIFAR images"):
        data.load("cifar", file)
    file.write_bytes(bytes([11]) + records(slice(0, 1))[1:])
    with pytest.raises(InputError, match="label 11 of image 0"):
        data.load("cifar", file)
    file.write_bytes(b"")
    with pytest.raises(InputError, match="is empty"):
        data.load("cifar", file)
    with pytest.raises(InputError, match="does not exist"):
        data.load("cifar", folder / "none.bin")
    with pytest.raises(InputError, match="split: should be 'test', 'train' or 'all', got 'tset'"):
        data.load("cifar", folder, split="tset")
    with pytest.raises(InputError, match="classes = 20"):
        data.load("cifar", folder / "test_batch.bin", classes=20)
    with pytest.raises(InputError, match="CIFAR-100 only"):
        data.load("cifar", folder / "test_batch.bin", coarse=True)
    (folder / "empty").mkdir()
    with pytest.raises(InputError, match=r"holds no CIFAR \.bin files"):
        data.load("cifar", folder / "empty")
