from __future__ import annotations

import struct

import numpy as np
import pytest

from testifai.data import detect
from testifai.errors import InputError


def test_every_kind_is_told(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros(1))
    assert detect(tmp_path / "a.npz") == "npz"
    digits = tmp_path / "mnist"
    digits.mkdir()
    (digits / "t10k-images-idx3-ubyte.gz").write_bytes(b"\x1f\x8b")
    (digits / "plain").write_bytes(struct.pack(">HBB1I", 0, 8, 1, 2) + b"ab")
    assert detect(digits / "t10k-images-idx3-ubyte.gz") == "idx"
    assert detect(digits / "plain") == "idx"
    assert detect(digits) == "idx"
    cifar = tmp_path / "cifar"
    cifar.mkdir()
    (cifar / "test_batch.bin").write_bytes(b"")
    (cifar / "readme.html").write_text("")
    assert detect(cifar) == "cifar"
    assert detect(str(cifar / "test_batch.bin")) == "cifar"
    (tmp_path / "pets" / "cat").mkdir(parents=True)
    (tmp_path / "pets" / "cat" / "1.JPG").write_bytes(b"")
    assert detect(tmp_path / "pets") == "folder"
    assert detect(tmp_path / "pets" / "cat") == "folder"


def test_what_cannot_be_told(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        detect(tmp_path / "none")
    (tmp_path / "a.txt").write_text("hello")
    for path in (tmp_path, tmp_path / "a.txt"):
        with pytest.raises(InputError, match=r"cannot tell what .* is; accepted: "):
            detect(path)
