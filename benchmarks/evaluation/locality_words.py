"""How section `locality` writes rates and names."""

from __future__ import annotations

from typing import Any

from testifai.locality import Rates


def one_of(found: Rates, place: Any) -> Rates:
    """One of several rates."""
    return Rates(float(found.rate[place]), float(found.low[place]), float(found.high[place]))


def rates(found: Rates) -> str:
    """A rate with its interval.

    >>> rates(Rates(0.5, 0.25, 0.75))
    '.500 (.250–.750)'
    """
    if found.rate != found.rate:
        return "–"
    return f"{short_number(found.rate)} ({short_number(found.low)}–{short_number(found.high)})"


def short_number(value: float) -> str:
    """Three places, without the 0 before them.

    >>> short_number(0.9996), short_number(-0.01)
    ('1.000', '-.010')
    """
    return f"{value:.3f}".replace("0.", ".", 1) if abs(value) < 0.9995 else f"{value:.3f}"


def short(name: str) -> str:
    """A property as people say it."""
    return name.replace("_", " ")
