"""The tools beside the examples, which are no package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def _load(name):
    spec = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # a dataclass looks its module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def notebooks():
    return _load("notebooks")


@pytest.fixture(scope="session")
def runner():
    return _load("run")
