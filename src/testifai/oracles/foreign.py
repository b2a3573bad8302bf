"""Oracles from elsewhere: any object with judge()."""

from __future__ import annotations

from typing import Any

from testifai.oracles.base import Array, Oracle, Outcome


class ForeignOracle(Oracle):
    """An object with judge(), and with whatever else of an oracle it has; the rest is as usual."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.name = str(getattr(given, "name", type(given).__name__))
        self.needs_labels = bool(getattr(given, "needs_labels", False))
        self.needs_clean = bool(getattr(given, "needs_clean", False))
        self.decides_classes = bool(getattr(given, "decides_classes", False))
        self.moves = getattr(given, "moves", None)
        self.score = score_of(given)

    def judge(self, outputs: Array, expected: Array | None, clean: Array | None) -> Outcome:
        outcome: Outcome = self.given.judge(outputs, expected, clean)
        return outcome

    def reference(self, outputs: Array) -> Array:
        kept: Array = getattr(self.given, "reference", super().reference)(outputs)
        return kept

    def check(self, labels: Array | None, classes: int | None) -> None:
        getattr(self.given, "check", super().check)(labels, classes)

    @property
    def source(self) -> Any:
        return self.given

    def describe(self) -> dict[str, Any]:
        described: dict[str, Any] = getattr(self.given, "describe", super().describe)()
        return described


def score_of(given: Any) -> str | None:
    """The score that an object of someone else's names; many have a method of that name, which is another matter."""
    named = getattr(given, "score", None)
    return named if isinstance(named, str) and named else None


def adapt(oracle: Any) -> Oracle | None:
    """An oracle as it is, another object with judge() by way of an adapter; None for what has no such method."""
    if isinstance(oracle, Oracle):
        return oracle
    return ForeignOracle(oracle) if hasattr(oracle, "judge") and not isinstance(oracle, type) else None
