"""A run's model and data are loaded again only if they are still what it was made with, and no code is run unasked."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from testifai import cli
from testifai.data.sample import demo_data, demo_model_path
from testifai.errors import InputError
from testifai.runs.store import Store
from testifai.session.stored_runs import reopen

SPEC = """
[model]
onnx = "lenet5.onnx"
[data]
npz = "digits.npz"
[space]
zoom = { use = "mnist_c.zoom", severities = [0, 2, 5] }
"""


@pytest.fixture
def run_copy(tmp_path, monkeypatch):
    """A folder with a finished run and all it was made from."""
    shutil.copy(demo_model_path(), tmp_path / "lenet5.onnx")
    data = demo_data()
    np.savez(tmp_path / "digits.npz", x=data.inputs[:60], y=data.labels[:60])
    (tmp_path / "spec.toml").write_text(SPEC)
    monkeypatch.setattr("sys.argv", ["testifai", "run", str(tmp_path / "spec.toml"), "--json"])
    with pytest.raises(SystemExit, match="0"):
        cli.main()
    return tmp_path


def test_same_subject(run_copy):
    assert len(reopen(run_copy / "spec.db").data) == 60


def test_data_that_changed(run_copy):
    data = dict(np.load(run_copy / "digits.npz"))
    data["x"][0] ^= 1
    np.savez(run_copy / "digits.npz", **data)
    with pytest.raises(InputError, match=r"not what spec\.db was measured on: data"):
        reopen(run_copy / "spec.db", run_copy / "spec.toml")


def test_code_is_run_only_if_its_spec_is_named(run_copy):
    with Store.create_or_open(run_copy / "spec.db") as store:
        spec = store.get("spec")
        store.put(spec={**spec, "model": {"python": "evil:model"}}, folder=str(run_copy))
    (run_copy / "evil.py").write_text("raise SystemExit('was run')")
    with pytest.raises(InputError, match=r"was not made on this machine under this account.*--spec"):
        reopen(run_copy / "spec.db")


def test_run_without_a_spec(run_copy):
    with Store.create_or_open(run_copy / "spec.db") as store:
        store.put(spec=None)
    with pytest.raises(InputError, match="name one with --spec"):
        reopen(run_copy / "spec.db")
