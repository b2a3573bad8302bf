"""Partial tomography as published: all tests of low order, the rest predicted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testifai.errors import InputError
from testifai.runs.outcomes import Ids
from testifai.strategies.base import FixedTests, Progress
from testifai.strategies.draws import distinct, drawn, equal_shares
from testifai.support.validation import whole

MOST_TESTS = 5_000_000  # that are run, or shuffled; of more, repeats are rare and cheap to replace
STREAM = 1 << 32  # the random numbers of order t are stream STREAM + t of the run's seed


@dataclass(frozen=True)
class Full(FixedTests):
    """Run every configuration."""

    name = "full"

    def tests(self, progress: Progress) -> Ids:
        if progress.space.size > MOST_TESTS:
            raise InputError(
                f"strategy: full would run {progress.space.size:,} tests (at most {MOST_TESTS:,}); "
                "choose fewer severities, or strategy = 'ordered' or 'random'"
            )
        return progress.space.ids_up_to(None)


@dataclass(frozen=True)
class Ordered(FixedTests):
    """Run all configurations with at most `max_order` perturbations (TestifAI, section 4.2).

    `extra` random tests of higher order are run too, equally many of each order: they show whether low orders predict
    high ones. A larger number includes the tests of a smaller one, so a run can be continued with more.
    """

    max_order: int = 2
    extra: int = 0
    name = "ordered"

    def __post_init__(self) -> None:
        whole("strategy: max_order", self.max_order, least=1)
        whole("strategy: extra", self.extra, least=0)

    def tests(self, progress: Progress) -> Ids:
        space, orders = progress.space, range(self.max_order + 1, len(progress.space.axes) + 1)
        shares = equal_shares(self.extra, [space.count(order) for order in orders])
        extra = [
            drawn(space, order, share, np.random.Generator(np.random.Philox(key=[progress.seed, STREAM + order])))
            for order, share in zip(orders, shares, strict=True)
        ]
        return np.concatenate([space.ids_up_to(self.max_order), *extra])


@dataclass(frozen=True)
class Random(FixedTests):
    """Run the clean configuration and uniformly sampled others, `tests_run` in all (None: as many as of order <= 2)."""

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
        if space.size <= MOST_TESTS:
            return np.concatenate([[0], np.sort(1 + generator.permutation(space.size - 1)[: wanted - 1])])
        others = distinct(lambda n: generator.integers(1, space.size, n), wanted - 1)
        return np.array([0, *sorted(others)], np.int64)
