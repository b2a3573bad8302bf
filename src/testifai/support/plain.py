"""Values as plain data that JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from os import PathLike
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """A value as dictionaries, lists, numbers and texts; None for a number that does not exist.

    Records become dictionaries, by their own `as_dict` where they have one; what JSON has no word for becomes the
    text that Python writes for it.

    >>> plain({"low": float("nan"), 2: (np.float32(0.5), np.arange(2))})
    {'low': None, '2': [0.5, [0, 1]]}
    """
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "as_dict"):
        return plain(value.as_dict())
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return str(value) if isinstance(value, PathLike) else repr(value)
