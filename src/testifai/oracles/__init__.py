"""Oracles: from a model's outputs to an outcome per input; each is one file and one line in `ORACLES`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testifai.errors import InputError
from testifai.oracles.base import Oracle, Outcome, adapt
from testifai.oracles.classes import confidence, margin, predicted
from testifai.oracles.function import Function
from testifai.oracles.label import Consistency, Label
from testifai.oracles.tolerance import Tolerance
from testifai.support.registry import Registry
from testifai.support.types import Array

__all__ = [
    "ORACLES", "Array", "Consistency", "Function", "Label", "Oracle", "Outcome", "Tolerance", "confidence", "margin",
    "predicted",
    "resolve",
]  # fmt: skip

ORACLES = Registry(
    "oracle",
    "testifai.oracles",
    {
        "label": "testifai.oracles.label:Label",
        "consistency": "testifai.oracles.label:Consistency",
        "tolerance": "testifai.oracles.tolerance:Tolerance",
        "detection": "testifai.oracles.detection:Detection",
        "function": "testifai.oracles.function:Function",
        "segmentation": "testifai.oracles.segmentation:Segmentation",
    },
)


def resolve(oracle: Any) -> Oracle:
    """Return an oracle from its name, from a mapping with `use` and options, from a function, or itself.

    Args:
        oracle: the name, mapping, function or oracle

    >>> resolve({"use": "tolerance", "eps": 0.1}).describe()
    {'use': 'tolerance', 'eps': 0.1}
    """
    made = ORACLES.make(oracle) if isinstance(oracle, str | Mapping) else oracle
    if (found := adapt(made)) is not None:
        return found
    if callable(made) and not isinstance(made, type):
        return Function(made)
    raise InputError(f"oracle: {oracle!r} is not accepted; a name, a mapping with 'use', a function or an oracle is")
