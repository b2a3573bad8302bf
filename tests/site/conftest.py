"""The modules that make the site lie beside its pages."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "site"))


@pytest.fixture
def root():
    return ROOT
