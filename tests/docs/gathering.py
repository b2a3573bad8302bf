"""Finds the functions that make what pages need: those of every material*.py beside this file."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

Material = Callable[[Path], dict[str, Any] | None]


def materials() -> dict[str, Material]:
    """Every function by name; it fills a folder, and may return names for the page's Python blocks."""
    found: dict[str, Material] = {}
    for path in sorted(Path(__file__).parent.glob("material*.py")):
        module = import_module(f"tests.docs.{path.stem}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and not name.startswith("_"):
                assert name not in found, f"two materials are called {name!r}"
                found[name] = function
    return found
