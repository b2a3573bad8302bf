"""Files by their SHA-256, as anyone's sha256sum tells them, when they are run and when a report is made."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

import testifai as ta
from testifai.data import from_arrays
from testifai.data.sample import demo_model_path
from testifai.session.stored_runs import changed, hashes, open_run, sources
from testifai.spec.parsing import parse, read

DATA = from_arrays(np.zeros((4, 2)), np.zeros(4, int))


def spec_of(model, data):
    return parse({"model": model, "data": data, "space": {"noise": "classic.gaussian_noise"}})


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_every_file_of_a_models_folder_and_the_file_of_the_data(tmp_path):
    files = {"net/config.json": b"{}", "net/part/w.bin": b"weights", "net/.cache/x": b"not of the model", "d.npz": b"d"}
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    found = hashes(spec_of({"transformers": "net"}, {"npz": "d.npz"}), tmp_path, DATA)
    assert found["model"] == [
        {"name": "net/config.json", "bytes": 2, "sha256": sha(b"{}")},
        {"name": "net/part/w.bin", "bytes": 7, "sha256": sha(b"weights")},
    ]
    assert found["data"] == [{"name": "d.npz", "bytes": 1, "sha256": sha(b"d")}]


def test_data_in_a_folder_and_code_are_told_by_fingerprints_alone(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.png").write_bytes(b"a")
    spec = spec_of({"python": "net:make"}, {"folder": "photos"})
    assert hashes(spec, tmp_path, DATA) == {"model": [], "data": []}


def test_weights_beside_an_onnx_file_count(tmp_path):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    onnx.save_model(
        onnx.load(demo_model_path()), tmp_path / "m.onnx", save_as_external_data=True, location="m.weights",
        size_threshold=0,
    )  # fmt: skip
    found = hashes(spec_of({"onnx": "m.onnx"}, {"python": "net:data"}), tmp_path, DATA)["model"]
    assert [one["name"] for one in found] == ["m.onnx", "m.weights"]
    assert found[1]["sha256"] == sha((tmp_path / "m.weights").read_bytes())


def test_another_file_than_was_run_is_a_line(run_copy):
    run, spec = open_run(run_copy / "spec.db"), run_copy / "spec.toml"
    assert changed(run, spec) == []
    (run_copy / "digits.npz").write_bytes(b"another")
    (line,) = changed(run, spec)
    assert line.startswith("digits.npz is not the file that was run: its SHA-256 was ")
    assert line.endswith(f"and is {sha(b'another')[:12]}… now")
    (run_copy / "digits.npz").unlink()
    assert changed(run, spec) == []


def test_nothing_is_looked_at_for_a_strangers_run(run_copy, monkeypatch, tmp_path):
    monkeypatch.setenv("TESTIFAI_STATE", str(tmp_path / "another account"))
    (run_copy / "digits.npz").write_bytes(b"another")
    assert changed(open_run(run_copy / "spec.db")) == []


def test_files_of_one_name_are_told_apart_by_what_is_in_them(run_copy, tmp_path):
    """As those of CIFAR may be, in folders of their own."""
    for number in "12":
        (tmp_path / number).mkdir()
        (tmp_path / number / "batch.bin").write_bytes(number.encode())
    spec = tmp_path / "two.toml"
    files = '["1/batch.bin", "2/batch.bin"]'
    spec.write_text(f'[model]\npython = "net:make"\n[data]\ncifar = {files}\n[space]\nx = "classic.gaussian_noise"\n')
    run = open_run(run_copy / "spec.db")
    run.provenance["hashes"] = hashes(read(spec), tmp_path, DATA)
    assert changed(run, spec) == []
    (tmp_path / "2" / "batch.bin").write_bytes(b"3")
    (line,) = changed(run, spec)
    assert line.startswith("batch.bin is not the file that was run")


ROWS = np.arange(6.0)[:, None]
IDENTITY = {"model": "ab" * 32, "data": "cd" * 16}


def test_files_and_code_of_the_spec():
    spec = {
        "model": {"torch": "net:make", "weights": "best.pt"},
        "data": {"cifar": ["a.bin", "b.bin", "c.bin", "d.bin", "e.bin"]},
        "space": {"noise": "classic.gaussian_noise"},
    }
    found = sources({"identity": IDENTITY, "spec": spec})
    assert {part: str(made) for part, made in found.items()} == {
        "model": "net:make, best.pt (abababababab)",
        "data": "a.bin, b.bin, c.bin and 2 more (cdcdcdcdcdcd)",
    }


def test_what_is_known_without_a_spec(tmp_path):
    shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 1.0])
    run = ta.scan(lambda x: (x[:, 0] > 2).astype(int), (ROWS, np.arange(6) > 2), ta.Space({"shift": shift}),
                  strategy="full", store=tmp_path / "run.db")  # fmt: skip
    identity = run.provenance["identity"]
    found = sources(ta.open(tmp_path / "run.db").provenance)
    for part in ("model", "data"):
        assert str(found[part]) == f"handed over in Python ({identity[part][:12]})"
    assert sources({}) == {}
    assert list(sources({"identity": {"model": "recorded grid"}})) == ["model"]


def test_a_spec_that_cannot_be_read_costs_only_the_names():
    for spec in ({"model": {"unheard": "of"}}, [1], "text"):
        found = sources({"identity": IDENTITY, "spec": spec})
        assert str(found["model"]) == "of a spec that cannot be read here (abababababab)"
