"""Checks of arguments; errors name the field, the accepted values and the value."""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Collection
from typing import Any, TypeVar

import numpy as np

from testifai.errors import InputError

Value = TypeVar("Value")


def whole(field: str, value: Any, *, least: int | None = None, most: int | None = None) -> int:
    """Return an integer within limits."""
    known = isinstance(value, int | np.integer) and not _is_bool(value)
    if not known or (least is not None and value < least) or (most is not None and value > most):
        limits = [f"at least {least}"] if least is not None else []
        limits += [f"at most {most}"] if most is not None else []
        raise InputError(f"{field}: must be a whole number{_listed(limits)}, got {value!r}")
    return int(value)


def number(
    field: str,
    value: Any,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> float:
    """Return a finite number within limits.

    >>> number("target", 1.5, above=0, below=1)
    Traceback (most recent call last):
    testifai.errors.InputError: target: must be a number, above 0 and below 1, got 1.5
    """
    checks = (
        ("at least", least, operator.ge), ("above", above, operator.gt),
        ("at most", most, operator.le), ("below", below, operator.lt),
    )  # fmt: skip
    known = isinstance(value, numbers.Real) and not _is_bool(value) and math.isfinite(value)
    if not known or not all(holds(value, limit) for _, limit, holds in checks if limit is not None):
        limits = [f"{word} {limit:g}" for word, limit, _ in checks if limit is not None]
        raise InputError(f"{field}: must be a number{_listed(limits)}, got {value!r}")
    return float(value)


def choice(field: str, value: Value, accepted: Collection[Value]) -> Value:
    """Return one of the accepted values."""
    if value not in accepted:
        raise InputError(f"{field}: must be one of {', '.join(map(str, accepted))}, got {value!r}")
    return value


def flag(field: str, value: Any) -> bool:
    """Return a truth value; numbers are not accepted."""
    if not _is_bool(value):
        raise InputError(f"{field}: must be true or false, got {value!r}")
    return bool(value)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _listed(limits: list[str]) -> str:
    return f", {' and '.join(limits)}" if limits else ""
