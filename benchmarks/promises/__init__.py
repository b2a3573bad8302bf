"""Promises about probabilities, a module to a subject, each with a list PROMISES."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Promise:
    """What is stated somewhere, and a simulation that counts how often it comes true.

    `simulate(seed)` gives how many statements came true (or, with `at_most`, went wrong) and of how many.
    """

    name: str
    promised: str
    assumes: str
    simulate: Callable[[int], tuple[int, int]]
    at_least: float | None = None
    at_most: float | None = None
    seeds: int = 200

    @property
    def bound(self) -> str:
        """The promise as a number."""
        return f"≥ {self.at_least:g}" if self.at_least is not None else f"≤ {self.at_most:g}"

    def holds(self, share: float, error: float) -> bool:
        """Whether a figure is within two standard errors of what is promised, or on its right side."""
        low, high = self.at_least or 0.0, 1.0 if self.at_most is None else self.at_most
        return low - 2 * error <= share <= high + 2 * error
