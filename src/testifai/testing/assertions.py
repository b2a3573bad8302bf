"""What the contract suites have in common: complaints of one line, fresh objects, and what was there before."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from testifai.support.serialization import plain
from testifai.support.types import Record


def require(holds: Any, who: str, complaint: str) -> None:
    """Raise AssertionError with one line where something does not hold."""
    if not holds:
        raise AssertionError(f"{who}: {complaint}")


def maker_of(given: Any, *methods: str) -> Callable[[], Any]:
    """What makes a fresh object each time: a class or function is called, an object is copied as it is now."""
    if isinstance(given, type) or (callable(given) and not any(hasattr(given, method) for method in methods)):
        made: Callable[[], Any] = given
        return made
    untouched = copy.deepcopy(given)
    return lambda: copy.deepcopy(untouched)


def require_flags(part: Any, who: str, *names: str) -> None:
    """What a part can do is declared as true or false."""
    for name in names:
        value = getattr(part, name)
        require(isinstance(value, bool | np.bool_), who, f"{name} is {value!r}; true or false is accepted")


def require_name(name: Any, kind: str) -> str:
    """A part has a name to be called by."""
    require(isinstance(name, str) and bool(name), kind, f"its name is {name!r}; a text is accepted")
    return str(name)


def require_described(described: Any, who: str) -> Record:
    """A description is plain data that JSON gives back as it was, and says by what name to find the part."""
    require(isinstance(described, Mapping), who, f"describes itself as {type(described).__name__}; a mapping is needed")
    try:
        back = json.loads(json.dumps(described, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise AssertionError(f"{who}: its description is not plain data: {error}") from error
    require(back == plain(described), who, "its description changes on its way through JSON")
    require(isinstance(back.get("use"), str), who, 'its description has no "use"')
    return dict(back)


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal through and through: arrays, lists, mappings and records of them."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        left, right = np.asarray(one), np.asarray(other)
        return left.dtype == right.dtype and np.array_equal(left, right, equal_nan=left.dtype.kind in "fc")
    if is_dataclass(one) and type(one) is type(other) and not isinstance(one, type):
        return all(same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


class Untouched:
    """Remembers arguments, to tell afterwards whether they were changed."""

    def __init__(self, *arguments: Any) -> None:
        self._arguments, self._before = arguments, copy.deepcopy(arguments)

    def check(self, who: str, where: str) -> None:
        require(same(self._arguments, self._before), who, f"changes its arguments ({where})")
