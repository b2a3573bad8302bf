"""Tests drawn uniformly at random: the baseline that ordered selection is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from testifai.runs.outcomes import Ids
from testifai.strategies.base import Listed, Progress
from testifai.support.checks import whole

# Up to here the space is shuffled as a whole; beyond, repeats are so rare that drawing again costs nothing.
MOST_LISTED = 5_000_000


@dataclass(frozen=True)
class Random(Listed):
    """Run the clean configuration and uniformly drawn others, `tests_run` in all (None: as many as order <= 2 has)."""

    tests_run: int | None = None
    name = "random"

    def __post_init__(self) -> None:
        if self.tests_run is not None:
            whole("strategy: tests_run", self.tests_run, least=1)

    def tests(self, progress: Progress) -> Ids:
        space = progress.space
        low_order = sum(space.count(order) for order in range(min(2, len(space.axes)) + 1))
        wanted = min(self.tests_run or low_order, space.size)
        generator = np.random.Generator(np.random.Philox(key=[progress.seed, 1]))
        if space.size <= MOST_LISTED:
            return np.concatenate([[0], np.sort(1 + generator.permutation(space.size - 1)[: wanted - 1])])
        drawn: set[int] = set()
        while len(drawn) < wanted - 1:
            drawn.update(int(i) for i in generator.integers(1, space.size, wanted - 1 - len(drawn)))
        return np.array([0, *sorted(drawn)], np.int64)

    def describe(self) -> dict[str, Any]:
        return {"use": self.name, "tests_run": self.tests_run}
