"""Checks of arguments: each refuses with one line that names the field, what is accepted and the value."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection
from typing import Any, TypeVar

import numpy as np

from testifai.errors import InputError

Value = TypeVar("Value")


def whole(field: str, value: Any, *, least: int | None = None, most: int | None = None) -> int:
    """A whole number within its limits.

    >>> whole("sample", 0, least=2)
    Traceback (most recent call last):
    testifai.errors.InputError: sample: must be a whole number, at least 2, got 0
    """
    known = isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)
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
    """A finite number within its limits.

    >>> number("target", 1.5, above=0, below=1)
    Traceback (most recent call last):
    testifai.errors.InputError: target: must be a number, above 0 and below 1, got 1.5
    """
    known = _is_number(value) and math.isfinite(value)
    inside = known and (
        (least is None or value >= least)
        and (above is None or value > above)
        and (most is None or value <= most)
        and (below is None or value < below)
    )
    if not inside:
        words = (("at least", least), ("above", above), ("at most", most), ("below", below))
        limits = [f"{word} {limit:g}" for word, limit in words if limit is not None]
        raise InputError(f"{field}: must be a number{_listed(limits)}, got {value!r}")
    return float(value)


def choice(field: str, value: Value, accepted: Collection[Value]) -> Value:
    """One of the values accepted.

    >>> choice("population", "past", ("data", "future"))
    Traceback (most recent call last):
    testifai.errors.InputError: population: must be one of data, future, got 'past'
    """
    if value not in accepted:
        raise InputError(f"{field}: must be one of {', '.join(map(str, accepted))}, got {value!r}")
    return value


def flag(field: str, value: Any) -> bool:
    """True or false, and nothing that merely counts as such.

    >>> flag("control", 1)
    Traceback (most recent call last):
    testifai.errors.InputError: control: must be true or false, got 1
    """
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{field}: must be true or false, got {value!r}")
    return bool(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def _listed(limits: list[str]) -> str:
    return f", {' and '.join(limits)}" if limits else ""
