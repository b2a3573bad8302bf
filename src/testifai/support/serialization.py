"""Plain data for JSON, and TOML in the layout of specs: inner tables on one line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from os import PathLike
from typing import Any

import numpy as np

from testifai.support.types import RecordLike


def plain(value: Any) -> Any:
    """Convert a value to dictionaries, lists, numbers and texts; NaN to None, records by `as_dict`, others by `repr`.

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


BARE = re.compile("[A-Za-z0-9_-]+")


def to_toml(table: RecordLike) -> str:
    """Return a table of tables as TOML, without values that are None.

    >>> print(to_toml({"scan": {"seed": 0, "budget": None}, "gate": [{"query": "zoom > 1", "at_least": 0.9}]}), end="")
    [scan]
    seed = 0
    <BLANKLINE>
    [[gate]]
    query = "zoom > 1"
    at_least = 0.9
    """
    simple, tables = {}, []
    for name, value in table.items():
        if isinstance(value, Mapping):
            tables.append([f"[{_key(name)}]", *_entries(value)])
        elif isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            tables += [[f"[[{_key(name)}]]", *_entries(one)] for one in value]
        else:
            simple[name] = value
    blocks = [_entries(simple), *tables] if simple else tables
    return "\n".join("".join(f"{line}\n" for line in block) for block in blocks)


def _entries(table: RecordLike) -> list[str]:
    return [f"{_key(name)} = {_value(value)}" for name, value in table.items() if value is not None]


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(_entries(value))
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(one) for one in value)}]"
    if isinstance(value, str):
        return _text(value)
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
