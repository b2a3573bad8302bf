"""Commands run through the entry point, in a copy of the folder that a file's `ready` makes."""

from __future__ import annotations

import shutil

import pytest

from testifai import cli


@pytest.fixture
def folder(ready, tmp_path, monkeypatch):
    shutil.copytree(ready, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def spec_text(folder):
    """The spec in that folder, to make others of."""
    return (folder / "spec.toml").read_text()


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
