"""Optional libraries, and large ones that are imported on first use."""

from __future__ import annotations

import importlib
from typing import Any

from testifai.errors import InputError


def load(module: str, *, extra: str) -> Any:
    """Import an optional library, or raise an InputError that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        raise InputError(f"{name} is not installed; install it with: pip install 'testifai[{extra}]'") from None


class _WhenUsed:
    """A library that is imported when its first attribute is used."""

    def __init__(self, module: str, called: str, package: str) -> None:
        self._module, self._called, self._package = module, called, package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what Python looks for in any object
            raise AttributeError(name)
        try:
            module = importlib.import_module(self._module)
        except ImportError:
            needs = f"{self._called} is needed for this and not installed"
            raise InputError(f"{needs}; install it with: pip install {self._package}") from None
        found = getattr(module, name)
        setattr(self, name, found)
        return found


cv2: Any = _WhenUsed("cv2", "OpenCV", "opencv-python-headless")
