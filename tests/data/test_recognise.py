from __future__ import annotations

import struct
import subprocess
import sys
from importlib.metadata import EntryPoint

import numpy as np
import pytest

from testifai.data import LOADERS, DataPart, from_arrays, recognise, wrap
from testifai.errors import InputError


def test_every_kind_is_told(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros(1))
    assert recognise(tmp_path / "a.npz") == "npz"
    digits = tmp_path / "mnist"
    digits.mkdir()
    (digits / "t10k-images-idx3-ubyte.gz").write_bytes(b"\x1f\x8b")
    (digits / "plain").write_bytes(struct.pack(">HBB1I", 0, 8, 1, 2) + b"ab")
    assert recognise(digits / "t10k-images-idx3-ubyte.gz") == "idx"
    assert recognise(digits / "plain") == "idx"
    assert recognise(digits) == "idx"
    cifar = tmp_path / "cifar"
    cifar.mkdir()
    (cifar / "test_batch.bin").write_bytes(b"")
    (cifar / "readme.html").write_text("")
    assert recognise(cifar) == "cifar"
    assert recognise(str(cifar / "test_batch.bin")) == "cifar"
    (tmp_path / "pets" / "cat").mkdir(parents=True)
    (tmp_path / "pets" / "cat" / "1.JPG").write_bytes(b"")
    assert recognise(tmp_path / "pets") == "folder"
    assert recognise(tmp_path / "pets" / "cat") == "folder"


def test_what_cannot_be_told(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        recognise(tmp_path / "none")
    (tmp_path / "a.txt").write_text("hello")
    for path in (tmp_path, tmp_path / "a.txt"):
        with pytest.raises(InputError, match=r"cannot recognise .*; accepted: "):
            recognise(path)


class _HeatPart(DataPart):
    heat: str
    suffixes = (".heat",)

    def load(self, folder):
        return from_arrays(np.loadtxt(folder / self.heat))


def test_readers_of_other_packages_are_asked_last(tmp_path, monkeypatch):
    points = [EntryPoint(name, f"{__name__}:{value}", "testifai.data") for name, value in
              (("heat", "_HeatPart"), ("gone", "_Gone"))]  # fmt: skip
    monkeypatch.setattr(LOADERS, "_announced", points)
    monkeypatch.setattr(LOADERS, "_others", {point.name: point for point in points})
    (tmp_path / "a.HEAT").write_text("1 2\n3 4\n")
    assert recognise(tmp_path / "a.HEAT") == "heat"
    assert wrap(tmp_path / "a.HEAT").inputs.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(InputError, match=r"\.heat, MNIST IDX"):
        recognise(tmp_path)


def test_recognising_imports_no_large_library(tmp_path):
    (tmp_path / "a.unknown").write_text("hello")
    code = (
        "import sys\nfrom testifai import data\n"
        f"try: data.recognise({str(tmp_path / 'a.unknown')!r})\nexcept data.InputError: pass\n"
        "print({'cv2', 'pandas', 'pyarrow', 'torch', 'sklearn', 'onnxruntime'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"
