"""Oracles: from a model's outputs to an outcome per input, passed or not and, where there is one, a value.

An oracle is one file and one line in `ORACLES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from testifai.errors import InputError
from testifai.oracles.base import Array, Oracle, Outcome
from testifai.oracles.classes import confidence, margin, predicted
from testifai.oracles.consistency import Consistency
from testifai.oracles.function import Function
from testifai.oracles.label import Label
from testifai.oracles.tolerance import Tolerance
from testifai.support.named import make

__all__ = [
    "ORACLES", "Array", "Consistency", "Function", "Label", "Oracle", "Outcome", "Tolerance", "confidence", "margin",
    "predicted",
    "resolve",
]  # fmt: skip

ORACLES: dict[str, Callable[..., Oracle]] = {
    "label": Label,
    "consistency": Consistency,
    "tolerance": Tolerance,
    "function": Function,
}


def resolve(oracle: Any) -> Oracle:
    """An oracle from its name, from a mapping with `use` and options, from a function, or itself.

    >>> resolve({"use": "tolerance", "eps": 0.1}).describe()
    {'use': 'tolerance', 'eps': 0.1}
    """
    if isinstance(oracle, str | Mapping):
        return make("oracle", oracle, ORACLES)
    if hasattr(oracle, "judge") and not isinstance(oracle, type):
        found: Oracle = oracle
        return found
    if callable(oracle) and not isinstance(oracle, type):
        return Function(oracle)
    raise InputError(f"oracle: {oracle!r} is not accepted; a name, a mapping with 'use', a function or an oracle is")
