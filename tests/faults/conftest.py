"""A finished run with something under every key of its file, and commands run on it through the entry point."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from testifai import cli
from testifai.data.sample import demo_data, demo_model_path

SPEC = """
[model]
onnx = "lenet5.onnx"
[data]
npz = "digits.npz"
[space]
brightness = { use = "mnist_c.brightness", severities = [0, 3, 5] }
zoom = { use = "mnist_c.zoom", severities = [0, 2, 5] }
[scan]
strategy = "ordered"
budget = 200
keep = ["predicted", "value"]
quality = { use = "ssim", sample = 5 }
[[gate]]
name = "clean"
query = "order == 0"
at_least = 0.9
"""


def run_command(capsys, *arguments) -> tuple[int, str, str]:
    """Exit code, standard output, standard error of a command; a traceback is an error of the test."""
    capsys.readouterr()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["testifai", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.main()
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return left.value.code, printed.out, printed.err


@pytest.fixture
def command(capsys):
    return lambda *arguments: run_command(capsys, *arguments)


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A folder with a model, data, a spec, its run with a sweep, and a run of `testifai errors`."""
    folder = tmp_path_factory.mktemp("made")
    shutil.copy(demo_model_path(), folder / "lenet5.onnx")
    data = demo_data()
    np.savez(folder / "digits.npz", x=data.inputs[:40], y=data.labels[:40])
    (folder / "spec.toml").write_text(SPEC)
    for arguments in (
        ["run"],
        ["sweep", "-p", "classic.gaussian_noise", "--points", "8"],
        ["errors", "--per-class", "2"],
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", ["testifai", arguments[0], str(folder / "spec.toml"), *arguments[1:], "--json"])
            with pytest.raises(SystemExit) as left:
                cli.main()
        assert left.value.code in (0, 1)
    return folder
