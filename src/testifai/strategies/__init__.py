"""Strategies by name: one file and one line here each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from testifai import surrogates
from testifai.errors import InputError
from testifai.space import Space
from testifai.strategies.adaptive import Adaptive
from testifai.strategies.balanced import Balanced
from testifai.strategies.base import Progress, Strategy
from testifai.strategies.full import MOST_TESTS, Full
from testifai.strategies.ordered import Ordered
from testifai.strategies.random import Random
from testifai.support.named import make

STRATEGIES: dict[str, Callable[..., Strategy]] = {
    "adaptive": Adaptive,
    "balanced": Balanced,
    "full": Full,
    "ordered": Ordered,
    "random": Random,
}

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


def default(space: Space, *, surrogate: Any = None, stopping: Any = None, parts: bool = False) -> str:
    """The strategy where none is named: adaptive, or ordered for what adaptive does not do.

    That is a rule that ends tests one by one, a surrogate that leaves measured tests alone, work split among
    machines, a space in which the order of application counts, and one too large to keep an eye on every test.
    """
    pools = surrogate is None or getattr(surrogates.resolve(surrogate), "pools", False)
    by_test = stopping is not None and stopping != "none"
    can = pools and not by_test and not parts and not space.order_sensitive
    return "adaptive" if can and space.size <= MOST_TESTS else "ordered"


def resolve(strategy: str | dict[str, Any] | Strategy) -> Strategy:
    """A strategy by name, by {"use": name, option: value}, or as an object."""
    if isinstance(strategy, str | dict):
        return make("strategy", strategy, STRATEGIES)
    if not hasattr(strategy, "propose"):
        raise InputError(f"strategy: expected one of {', '.join(STRATEGIES)} or an object with propose()")
    return strategy
