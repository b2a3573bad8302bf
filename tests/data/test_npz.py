from __future__ import annotations

import numpy as np
import pytest

from testifai import data
from testifai.data.lazy import MappedInputs
from testifai.errors import InputError

X = np.arange(5 * 12, dtype=np.uint8).reshape(5, 4, 3)
Y = np.array([0, 1, 2, 1, 0])


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("x", [X, np.asfortranarray(X.astype(np.float32)), X[:, ::2]], ids=["C", "Fortran", "strided"])
def test_what_was_saved_is_read(tmp_path, save, x):
    save(tmp_path / "d.npz", other=np.zeros(3), x=x, y=Y)
    read = data.load("npz", "d.npz", folder=tmp_path)
    assert np.array_equal(read.inputs, x)
    assert read.labels.tolist() == Y.tolist()
    assert read.name == "d.npz"
    assert isinstance(read.inputs, MappedInputs) == (save is np.savez)
    assert read.fingerprint == data.from_arrays(x, Y).fingerprint


def test_batches_of_a_mapped_file_are_plain_arrays(tmp_path):
    np.savez(tmp_path / "d.npz", x=X, y=Y)
    inputs = data.load("npz", tmp_path / "d.npz").inputs
    batch = inputs[np.array([4, 0])]
    assert type(batch) is np.ndarray
    assert np.array_equal(batch, X[[4, 0]])
    with pytest.raises(TypeError):
        inputs[0] = 0
    inputs[:3][:] = 0
    assert np.array_equal(np.asarray(inputs), X)


def test_texts_and_words(tmp_path):
    np.savez(tmp_path / "d.npz", x=np.array(["a b", "c"]), y=np.array(["no", "yes"]))
    read = data.load("npz", tmp_path / "d.npz")
    assert read.inputs == ["a b", "c"]
    assert read.classes == ("no", "yes")


def test_keys_by_option_and_the_only_pair(tmp_path):
    file = tmp_path / "d.npz"
    np.savez(file, images=X, labels=Y, extra=np.zeros((2, 2)))
    assert data.load("npz", file).labels.tolist() == Y.tolist()
    assert data.load("npz", file, x="images").labels.tolist() == Y.tolist()
    assert data.load("npz", file, x="extra").labels is None
    np.savez(file, images=X)
    assert data.load("npz", file).labels is None


def test_unclear_keys_are_listed(tmp_path):
    file = tmp_path / "d.npz"
    np.savez(file, x_train=X, y_train=Y, x_test=X, y_test=Y)
    with pytest.raises(InputError, match=r"set x and y \(found: x_test \(5, 4, 3\), x_train .*y_train \(5,\)\)"):
        data.load("npz", file)
    assert data.load("npz", file, x="x_test", y="y_test").labels.tolist() == Y.tolist()
    with pytest.raises(InputError, match="no array 'x_tset' for x; did you mean 'x_test'"):
        data.load("npz", file, x="x_tset")


def test_objects_are_never_read(tmp_path):
    np.savez(tmp_path / "d.npz", x=np.array([{"a": 1}, 2], dtype=object), y=np.array([0, 1]))
    with pytest.raises(InputError, match="Python objects, which are never read"):
        data.load("npz", tmp_path / "d.npz")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_damaged_files_are_refused(tmp_path, save):
    file = tmp_path / "d.npz"
    save(file, x=np.random.default_rng(0).integers(0, 255, (50, 40), dtype=np.uint8), y=np.zeros(50, int))
    whole = file.read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 3):
        file.write_bytes(whole[:length])
        with pytest.raises(InputError, match="not a readable npz file") as caught:
            data.load("npz", file)
        assert "\n" not in str(caught.value)


def test_zero_rows_nan_and_lengths(tmp_path):
    file = tmp_path / "d.npz"
    np.savez(file, x=np.empty((0, 2)), y=np.empty(0, int))
    with pytest.raises(InputError, match=r"d\.npz: has no rows"):
        data.load("npz", file)
    np.savez(file, x=np.array([[np.nan]]), y=np.array([0]))
    with pytest.raises(InputError, match="NaN"):
        data.load("npz", file)
    np.savez(file, x=X, y=Y[:3])
    with pytest.raises(InputError, match="3 labels for 5 inputs"):
        data.load("npz", file)


def test_missing_file_and_unknown_names(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        data.load("npz", tmp_path / "none.npz")
    with pytest.raises(InputError, match="is not a file"):
        data.load("npz", tmp_path)
    with pytest.raises(InputError, match="'npx' is not known; did you mean 'npz'"):
        data.load("npx", tmp_path)
    with pytest.raises(InputError, match=r"unknown key 'data\.z' for npz"):
        data.load("npz", tmp_path / "none.npz", z=1)
