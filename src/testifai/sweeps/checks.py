"""What a sweep accepts: one line for every mistake."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from testifai.errors import InputError, suggest

METHODS = ("asap", "uniform", "quad", "random")
_NUMBER = int | float | np.integer | np.floating


def number(field: str, value: Any) -> float:
    """A finite number as a float."""
    if isinstance(value, bool) or not isinstance(value, _NUMBER) or not math.isfinite(value):
        raise InputError(f"{field}: must be a finite number, got {value!r}")
    return float(value)


def whole(field: str, value: Any, least: int) -> int:
    """A whole number of at least that much."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{field}: must be a whole number, at least {least}, got {value!r}")
    return int(value)


def thresholds(given: Any) -> tuple[float, ...]:
    """One threshold or several, each in 0..1."""
    listed = list(given) if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) else [given]
    if not listed:
        raise InputError("threshold: the list is empty; give an accuracy between 0 and 1, or several")
    for one in listed:
        known = isinstance(one, _NUMBER) and not isinstance(one, bool)
        if not known or not 0 <= one <= 1:
            raise InputError(f"threshold: must be an accuracy between 0 and 1, got {one!r}")
    return tuple(float(one) for one in listed)


def span(low: Any, high: Any, *, integer: bool = False) -> tuple[float, float]:
    """Both ends of the levels, the first below the second."""
    ends = number("low", low), number("high", high)
    if ends[0] >= ends[1]:
        raise InputError(f"low, high: low must be below high, got {low!r} and {high!r}")
    if integer and not all(end.is_integer() for end in ends):
        raise InputError(f"low, high: must be whole numbers when integer is set, got {low!r} and {high!r}")
    return ends


def curvature(given: Any) -> float | str:
    """A positive number or "auto"."""
    if isinstance(given, str) and given == "auto":
        return "auto"
    known = isinstance(given, _NUMBER) and not isinstance(given, bool)
    if not known or not (math.isfinite(given) and given > 0):
        raise InputError(f'curvature: must be a positive number or "auto", got {given!r}')
    return float(given)


def method(given: Any) -> str:
    """The name of a method."""
    if given not in METHODS:
        raise InputError(f"method: {given!r} is not known; {suggest(given, METHODS)}")
    return str(given)


def confidence(given: Any) -> float | None:
    """A confidence between 0 and 1, or None: every level on all inputs."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, _NUMBER) or not 0 < given < 1:
        raise InputError(f"confidence: must be between 0 and 1, such as 0.95, or None, got {given!r}")
    return float(given)


def target(given: Any) -> float:
    """A wanted bound; 0 asks for the finest steps."""
    if isinstance(given, bool) or not isinstance(given, _NUMBER) or not 0 <= given < 1:
        raise InputError(f"target: must be a wanted bound between 0 and 1, such as 0.01, got {given!r}")
    return float(given)


def accuracy(value: Any, level: float) -> float:
    """What the curve returned at a level, as a finite number."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise InputError(f"accuracy: at level {level:g} it is {value!r}; a number is accepted") from None
    if not math.isfinite(found):
        raise InputError(f"accuracy: at level {level:g} it is {found}; a finite number is accepted")
    return found
