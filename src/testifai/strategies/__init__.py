"""Strategies by name: one file and one line here each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testifai import surrogates
from testifai.strategies.adaptive import Adaptive
from testifai.strategies.balanced import Balanced
from testifai.strategies.base import Progress, Strategy, adapt
from testifai.strategies.fixed import Full, Ordered, Random
from testifai.support.registry import Registry

STRATEGIES = Registry(
    "strategy",
    "testifai.strategies",
    {
        "adaptive": "testifai.strategies.adaptive:Adaptive",
        "balanced": "testifai.strategies.balanced:Balanced",
        "full": "testifai.strategies.fixed:Full",
        "ordered": "testifai.strategies.fixed:Ordered",
        "random": "testifai.strategies.fixed:Random",
    },
)

__all__ = [
    "STRATEGIES",
    "Adaptive",
    "Balanced",
    "Full",
    "Ordered",
    "Progress",
    "Random",
    "Strategy",
    "default",
    "resolve",
]


def default(*, surrogate: Any = None, stopping: Any = None, parts: bool = False) -> str:
    """Return adaptive, or ordered for options that it does not support."""
    chosen = surrogates.resolve(surrogate)
    pools = surrogate is None or (chosen is not None and chosen.pools)
    return "adaptive" if pools and stopping in (None, "none") and not parts else "ordered"


def resolve(strategy: Any) -> Strategy:
    """Return a strategy by name, by {"use": name, option: value}, or as an object."""
    made = STRATEGIES.make(strategy) if isinstance(strategy, str | Mapping) else strategy
    return adapt(made, STRATEGIES)
