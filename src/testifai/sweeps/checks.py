"""What a sweep accepts: one line for every mistake."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from testifai.errors import InputError, suggest
from testifai.support.checks import number
from testifai.sweeps.curvature import NARROWEST

METHODS = ("asap", "uniform", "quad", "random")


def thresholds(given: Any) -> tuple[float, ...]:
    """One threshold or several, each in 0..1."""
    listed = list(given) if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) else [given]
    if not listed:
        raise InputError("threshold: the list is empty; give an accuracy between 0 and 1, or several")
    return tuple(number("threshold", one, least=0, most=1) for one in listed)


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
    return number('curvature, unless "auto"', given, above=0)


def narrowest(given: Any, curvature: float | str) -> float:
    """The narrowest dip to be found, as a share of the span; None: the usual one."""
    if given is None:
        return NARROWEST
    if not isinstance(curvature, str):
        raise InputError(
            f"narrowest: {given!r} with curvature {curvature:g}, which alone decides where to look; "
            'leave it out, or set curvature="auto"'
        )
    return number("narrowest", given, above=0, most=1)


def method(given: Any) -> str:
    """The name of a method."""
    if given not in METHODS:
        raise InputError(f"method: {given!r} is not known; {suggest(given, METHODS)}")
    return str(given)


def confidence(given: Any) -> float | None:
    """A confidence between 0 and 1, or None: every level on all inputs."""
    return None if given is None else number("confidence", given, above=0, below=1)


def target(given: Any) -> float:
    """A wanted bound; 0 asks for the finest steps."""
    return number("target", given, least=0, below=1)


def accuracy(value: Any, level: float) -> float:
    """What the curve returned at a level, as a finite number."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise InputError(f"accuracy: at level {level:g} it is {value!r}; a number is accepted") from None
    if not math.isfinite(found):
        raise InputError(f"accuracy: at level {level:g} it is {found}; a finite number is accepted")
    return found
