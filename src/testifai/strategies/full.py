"""Every test of the space: the ground truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from testifai.errors import InputError
from testifai.runs.outcomes import Ids
from testifai.strategies.base import Listed, Progress

MOST_TESTS = 5_000_000


@dataclass(frozen=True)
class Full(Listed):
    """Run every configuration."""

    name = "full"

    def tests(self, progress: Progress) -> Ids:
        if progress.space.size > MOST_TESTS:
            raise InputError(
                f"strategy: full would run {progress.space.size:,} tests (at most {MOST_TESTS:,}); "
                "choose fewer severities, or strategy = 'ordered' or 'random'"
            )
        return progress.space.ids_up_to(None)

    def describe(self) -> dict[str, Any]:
        return {"use": self.name}
