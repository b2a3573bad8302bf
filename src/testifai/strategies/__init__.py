"""Strategies by name: one file and one line here each."""

from __future__ import annotations

from typing import Any

from testifai.errors import InputError, suggest
from testifai.strategies.base import Progress, Strategy
from testifai.strategies.full import Full
from testifai.strategies.ordered import Ordered
from testifai.strategies.random import Random

STRATEGIES: dict[str, type[Full] | type[Ordered] | type[Random]] = {
    "full": Full,
    "ordered": Ordered,
    "random": Random,
}

__all__ = ["STRATEGIES", "Full", "Ordered", "Progress", "Random", "Strategy", "resolve"]


def resolve(strategy: str | dict[str, Any] | Strategy) -> Strategy:
    """A strategy by name, by {"use": name, option: value}, or as an object."""
    if isinstance(strategy, str):
        strategy = {"use": strategy}
    if not isinstance(strategy, dict):
        if not hasattr(strategy, "propose"):
            raise InputError(f"strategy: expected one of {', '.join(STRATEGIES)} or an object with propose()")
        return strategy
    name = strategy.get("use")
    if name not in STRATEGIES:
        raise InputError(f"strategy: no strategy {name!r}; {suggest(name, STRATEGIES)}")
    options = {key: value for key, value in strategy.items() if key != "use"}
    fields = STRATEGIES[name].__dataclass_fields__
    for key in options:
        if key not in fields:
            raise InputError(f"strategy: {name} has no option {key!r}; {suggest(key, fields)}")
    return STRATEGIES[name](**options)
