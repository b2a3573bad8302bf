"""Helpers of the contract tests: one-line complaints, fresh objects, and comparison with earlier values."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from testifai.support.serialization import plain
from testifai.support.types import Record


def require(holds: Any, who: str, complaint: str) -> None:
    """Raise AssertionError with one line if something does not hold."""
    if not holds:
        raise AssertionError(f"{who}: {complaint}")


def maker_of(given: Any, *methods: str) -> Callable[[], Any]:
    """Return a function that makes a fresh object: a class or function itself, or one that copies an object."""
    if isinstance(given, type) or (callable(given) and not any(hasattr(given, method) for method in methods)):
        made: Callable[[], Any] = given
        return made
    untouched = copy.deepcopy(given)
    return lambda: copy.deepcopy(untouched)


def require_flags(part: Any, who: str, *names: str) -> None:
    for name in names:
        value = getattr(part, name)
        require(isinstance(value, bool | np.bool_), who, f"{name} is {value!r}; true or false is accepted")


def require_name(name: Any, kind: str) -> str:
    require(isinstance(name, str) and bool(name), kind, f"its name is {name!r}; a text is accepted")
    return str(name)


def require_described(described: Any, who: str) -> Record:
    """Return a description, which must be plain data with a name under `use`."""
    require(isinstance(described, Mapping), who, f"describes itself as {type(described).__name__}; a mapping is needed")
    try:
        back = json.loads(json.dumps(described, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise AssertionError(f"{who}: its description is not plain data: {error}") from error
    require(back == plain(described), who, "its description changes on its way through JSON")
    require(isinstance(back.get("use"), str), who, 'its description has no "use"')
    return dict(back)


def same(one: Any, other: Any) -> bool:
    """Return True if arrays, lists, mappings or records are equal in all their items."""
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


@contextmanager
def unchanged(who: str, where: str, *arguments: Any) -> Iterator[None]:
    """Raise AssertionError if the block changes the arguments."""
    before = copy.deepcopy(arguments)
    yield
    require(same(arguments, before), who, f"changes its arguments ({where})")
