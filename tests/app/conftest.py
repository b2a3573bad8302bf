"""Two finished runs of different models on the same data, explored."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from testifai import cli
from testifai.data.sample import demo_data, demo_model_path

SPEC = """
[model]
onnx = "lenet5.onnx"
MODEL
[data]
npz = "digits.npz"
[space]
brightness = { use = "mnist_c.brightness", severities = [0, 3, 5] }
zoom = { use = "mnist_c.zoom", severities = [0, 2, 5] }
blur = { use = "mnist_c.motion_blur", severities = [0, 2, 4] }
noise = { use = "mnist_c.shot_noise", severities = [0, 5] }
[scan]
population = "data"
strategy = "full"
keep = ["predicted"]
"""


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder with a model, data, and the finished runs a.db and b.db."""
    pytest.importorskip("dash")
    made = tmp_path_factory.mktemp("explore")
    shutil.copy(demo_model_path(), made / "lenet5.onnx")
    data = demo_data()
    np.savez(made / "digits.npz", x=data.inputs[:60], y=data.labels[:60])
    for name, model in (("a", ""), ("b", "mean = 0.4")):  # b is fed darker pictures than it was trained on
        (made / f"{name}.toml").write_text(SPEC.replace("MODEL", model))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", ["testifai", "run", str(made / f"{name}.toml"), "--json"])
            with pytest.raises(SystemExit) as ended:
                cli.main()
            assert not ended.value.code
    return made


@pytest.fixture(scope="session")
def runs(folder):
    """Both runs, opened."""
    from testifai.app.state import Runs

    return Runs([folder / "a.db", folder / "b.db"])
