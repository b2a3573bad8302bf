"""Strategies from elsewhere: any object with propose()."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from testifai.engine.plan import Work
from testifai.errors import InputError
from testifai.strategies.base import Progress, Strategy


def adapt(strategy: Any, known: Iterable[str] = ()) -> Strategy:
    """A strategy as it is; another object with propose() by way of an adapter."""
    if isinstance(strategy, Strategy):
        return strategy
    if isinstance(strategy, type) or not hasattr(strategy, "propose"):
        raise InputError(f"strategy: expected one of {', '.join(known)} or an object with propose()")
    return ForeignStrategy(strategy)


class ForeignStrategy(Strategy):
    """An object with propose(), and with whatever else of a strategy it has; the rest is as usual."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.name = str(getattr(given, "name", type(given).__name__))
        self.surrogate = getattr(given, "surrogate", Strategy.surrogate)
        self.uses_target = bool(getattr(given, "uses_target", Strategy.uses_target))
        self.splits = bool(getattr(given, "splits", Strategy.splits))

    def propose(self, progress: Progress) -> Work | None:
        work: Work | None = self.given.propose(progress)
        return work

    def expected(self, progress: Progress) -> int:
        if hasattr(self.given, "expected"):
            return int(self.given.expected(progress))
        everything = progress.space.size * progress.inputs
        return everything if progress.budget is None else min(everything, progress.budget)

    def describe(self) -> dict[str, Any]:
        described: dict[str, Any] = self.given.describe() if hasattr(self.given, "describe") else {"use": self.name}
        return described
