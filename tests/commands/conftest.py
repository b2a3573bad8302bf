"""Commands run through the entry point, in a copy of the folder that a file's `ready` makes."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from testifai import cli
from testifai.data.sample import demo_data, demo_model_path


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Makes a folder with a model, so many digits and a spec."""

    def make(spec: str, count: int):
        folder = tmp_path_factory.mktemp("digits")
        shutil.copy(demo_model_path(), folder / "lenet5.onnx")
        data = demo_data()
        np.savez(folder / "digits.npz", x=data.inputs[:count], y=data.labels[:count])
        (folder / "spec.toml").write_text(spec)
        return folder

    return make


@pytest.fixture
def folder(ready, tmp_path, monkeypatch):
    shutil.copytree(ready, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def command(capsys, folder):
    """Run a command: exit code, standard output, standard error."""

    def run(*arguments) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", ["testifai", *map(str, arguments)])
            with pytest.raises(SystemExit) as left:
                cli.main()
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return left.value.code, printed.out, printed.err

    return run
