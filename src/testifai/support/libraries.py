"""Libraries that testifai uses where they are installed."""

from __future__ import annotations

import importlib
from typing import Any

from testifai.errors import InputError


def load(module: str, *, extra: str) -> Any:
    """An optional library, or the line that says how to get it.

    >>> load("no_such_library", extra="none")
    Traceback (most recent call last):
    testifai.errors.InputError: no_such_library is not installed; install it with: pip install 'testifai[none]'
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        raise InputError(f"{name} is not installed; install it with: pip install 'testifai[{extra}]'") from None
