"""Which modules count as libraries, whose code is not looked into."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from testifai.support.fingerprints import is_library


@pytest.mark.parametrize(
    ("file", "library"),
    [
        ("/opt/base/lib/python3.11/site-packages/nets/layers.py", True),  # of another environment
        ("/usr/lib/python3/dist-packages/nets/layers.py", True),
        ("/home/me/project/nets/layers.py", False),
        ("/home/me/my-site-packages/nets/layers.py", False),
    ],
)
def test_what_is_installed_is_a_library_in_whichever_environment(file, library, monkeypatch):
    module = ModuleType("nets.layers")
    module.__file__ = file
    monkeypatch.setitem(sys.modules, "nets.layers", module)
    assert is_library("nets.layers") is library
