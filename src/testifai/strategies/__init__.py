"""Strategies by name: one file and one line here each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from testifai.choice import make
from testifai.errors import InputError
from testifai.strategies.adaptive import Adaptive
from testifai.strategies.balanced import Balanced
from testifai.strategies.base import Progress, Strategy
from testifai.strategies.full import Full
from testifai.strategies.ordered import Ordered
from testifai.strategies.random import Random

STRATEGIES: dict[str, Callable[..., Strategy]] = {
    "adaptive": Adaptive,
    "balanced": Balanced,
    "full": Full,
    "ordered": Ordered,
    "random": Random,
}

__all__ = ["STRATEGIES", "Adaptive", "Balanced", "Full", "Ordered", "Progress", "Random", "Strategy", "resolve"]


def resolve(strategy: str | dict[str, Any] | Strategy) -> Strategy:
    """A strategy by name, by {"use": name, option: value}, or as an object."""
    if isinstance(strategy, str | dict):
        return make("strategy", strategy, STRATEGIES)
    if not hasattr(strategy, "propose"):
        raise InputError(f"strategy: expected one of {', '.join(STRATEGIES)} or an object with propose()")
    return strategy
