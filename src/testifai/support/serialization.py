"""Plain data written as TOML, the way specs are: a table each, tables within them on one line."""

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


BARE = re.compile("[A-Za-z0-9_-]+")


def to_toml(table: RecordLike) -> str:
    """A table of tables as TOML; what is None is left out.

    >>> print(to_toml({"scan": {"seed": 0, "budget": None}, "gate": [{"query": "zoom > 1", "at_least": 0.9}]}), end="")
    [scan]
    seed = 0
    <BLANKLINE>
    [[gate]]
    query = "zoom > 1"
    at_least = 0.9
    """
    parts = []
    plain = {name: value for name, value in table.items() if not (_is_table(value) or _are_tables(value))}
    if plain:
        parts.append(_lines(plain))
    for name, value in table.items():
        if _is_table(value):
            parts.append(f"[{_key(name)}]\n{_lines(value)}")
        elif _are_tables(value):
            parts += [f"[[{_key(name)}]]\n{_lines(one)}" for one in value]
    return "\n".join(parts)


def _lines(table: RecordLike) -> str:
    return "".join(f"{_key(name)} = {_value(value)}\n" for name, value in table.items() if value is not None)


def _value(value: Any) -> str:
    if _is_table(value):
        inner = ", ".join(f"{_key(name)} = {_value(one)}" for name, one in value.items() if one is not None)
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


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping)


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_table, value))
