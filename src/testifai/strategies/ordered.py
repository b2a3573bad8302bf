"""Partial tomography as published: all tests of low order, the rest predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from testifai.errors import InputError
from testifai.outcomes import Ids
from testifai.strategies.base import Listed, Progress


@dataclass(frozen=True)
class Ordered(Listed):
    """Run all configurations with at most `max_order` perturbations at once (TestifAI, section 4.2)."""

    max_order: int = 2
    name = "ordered"

    def __post_init__(self) -> None:
        if isinstance(self.max_order, bool) or not isinstance(self.max_order, int) or self.max_order < 1:
            raise InputError(f"strategy: max_order must be a whole number, at least 1, got {self.max_order!r}")

    def tests(self, progress: Progress) -> Ids:
        return progress.space.ids_up_to(self.max_order)

    def describe(self) -> dict[str, Any]:
        return {"use": self.name, "max_order": self.max_order}
