"""Commands run through the entry point, in a copy of the folder that a file's `ready` makes."""

from __future__ import annotations

import shutil

import pytest


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
def command(call, folder):
    """Run a command there: exit code, standard output, standard error."""
    return call
