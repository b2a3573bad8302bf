from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest

from testifai import data
from testifai.data.lazy import MappedInputs
from testifai.errors import InputError

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 5, 4), dtype=np.uint8)
LABELS = np.array([5, 0, 4, 1, 9, 2], dtype=np.uint8)


def idx(array: np.ndarray, code: int = 8) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, code, array.ndim, *array.shape) + array.tobytes()


@pytest.fixture(params=["plain", "gz"])
def folder(tmp_path, request):
    for split, rows in (("train", slice(0, 4)), ("t10k", slice(0, 6))):
        for name, array in (("images-idx3", IMAGES[rows]), ("labels-idx1", LABELS[rows])):
            if request.param == "gz":
                (tmp_path / f"{split}-{name}-ubyte.gz").write_bytes(gzip.compress(idx(array)))
            else:
                (tmp_path / f"{split}-{name}-ubyte").write_bytes(idx(array))
    return tmp_path


def test_images_and_the_labels_beside_them(folder):
    images = next(folder.glob("train-images*"))
    read = data.load("idx", images)
    assert np.array_equal(read.inputs, IMAGES[:4])
    assert read.labels.tolist() == LABELS[:4].tolist()
    assert isinstance(read.inputs, MappedInputs) == (images.suffix != ".gz")
    assert read.fingerprint == data.from_arrays(IMAGES[:4], LABELS[:4]).fingerprint


def test_a_folder_means_its_test_split(folder):
    assert len(data.load("idx", folder)) == 6


def test_labels_by_name(folder):
    images = next(folder.glob("t10k-images*"))
    labels = next(folder.glob("train-labels*"))
    with pytest.raises(InputError, match="4 labels for 6 inputs"):
        data.load("idx", images.name, labels=labels.name, folder=folder)
    with pytest.raises(InputError, match=r"data: labels\.idx does not exist"):
        data.load("idx", images, labels="labels.idx")


def test_no_labels_beside(tmp_path):
    (tmp_path / "digits.idx").write_bytes(idx(IMAGES))
    assert data.load("idx", tmp_path / "digits.idx").labels is None


@pytest.mark.parametrize(("code", "dtype"), [(9, "i1"), (11, ">i2"), (12, ">i4"), (13, ">f4"), (14, ">f8")])
def test_other_types_are_big_endian(tmp_path, code, dtype):
    array = np.array([[1, -2], [300 if dtype != "i1" else 3, 4]], dtype=dtype)
    (tmp_path / "a").write_bytes(idx(array, code))
    assert data.load("idx", tmp_path / "a").inputs[:].tolist() == array.tolist()


def test_damaged_files(tmp_path):
    file = tmp_path / "a"
    whole = idx(IMAGES)
    file.write_bytes(whole[:-1])
    with pytest.raises(InputError, match="cut short: 135 bytes where its header promises 136"):
        data.load("idx", file)
    for start in (b"", whole[:9], b"PK\3\4" + whole):
        file.write_bytes(start)
        with pytest.raises(InputError, match="not an IDX file"):
            data.load("idx", file)
    file.write_bytes(gzip.compress(whole)[:-9])
    with pytest.raises(InputError, match="cannot be unpacked"):
        data.load("idx", file)
    file.write_bytes(idx(IMAGES[:0]))
    with pytest.raises(InputError, match="has no rows"):
        data.load("idx", file)
    with pytest.raises(InputError, match="does not exist"):
        data.load("idx", tmp_path / "none")
    with pytest.raises(InputError, match="name one images file"):
        data.load("idx", tmp_path)
