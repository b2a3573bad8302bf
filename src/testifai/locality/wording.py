"""The numbers of an error summary as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from testifai.locality.local import Rates
from testifai.space import Axis


def listing(words: Sequence[str]) -> str:
    """Words with commas and an "and".

    >>> listing(["4", "7", "9"])
    '4, 7 and 9'
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def severity_range(severities: Sequence[int], all_severities: Sequence[int]) -> str:
    """Where on its severities a trend is.

    >>> severity_range((2, 3), (1, 2, 3)), severity_range((2,), (1, 2, 3)), severity_range((1, 2), (1, 2, 3))
    ('from severity 2', 'at severity 2', 'at severities 1 to 2')
    """
    if severities[-1] == all_severities[-1] and len(severities) > 1:
        return f"from severity {severities[0]}"
    if len(severities) == 1:
        return f"at severity {severities[0]}"
    return f"at severities {severities[0]} to {severities[-1]}"


def perturbation(axis: Axis, severities: Sequence[int]) -> str:
    """A property's perturbation and its parameters at these severities."""
    table = axis.perturbation.severities
    first, last = (_parameter(table[severity]) for severity in (severities[0], severities[-1]))
    return f"{axis.perturbation.name}, parameter {first}" + (f" to {last}" if len(severities) > 1 else "")


def gain_text(gain: Rates) -> str:
    """A gain with its interval.

    >>> gain_text(Rates(0.012, 0.01, 0.015))
    '+0.012 (0.010 … 0.015)'
    """
    return f"{gain.rate:+.3f} ({gain.low:.3f} … {gain.high:.3f})"


def span(severities: Sequence[int]) -> str:
    """Severities in short.

    >>> span((2, 3, 4)), span((2,))
    ('2–4', '2')
    """
    return str(severities[0]) if len(severities) == 1 else f"{severities[0]}–{severities[-1]}"


def p_text(p_value: float) -> str:
    """A p-value as people read it.

    >>> p_text(0.0123), p_text(1e-9)
    ('0.012', '< 0.0001')
    """
    return "< 0.0001" if p_value < 0.0001 else f"{p_value:.2g}"


def count(number: float) -> str:
    """A number of inputs; expected ones may be fractions."""
    return f"{number:,}" if isinstance(number, int) else f"{number:,.1f}"


def _parameter(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)
