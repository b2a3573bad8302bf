"""A few inputs for every test instead of all inputs for a few: a design for a model of the surface."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testifai.engine.plan import Work
from testifai.errors import InputError
from testifai.runs.outcomes import Ids, Outcomes, Places
from testifai.strategies.base import Progress, Strategy, clean_trials
from testifai.strategies.draws import blocks, distinct, low_first, shared_out
from testifai.strategies.fixed import MOST_TESTS
from testifai.support.types import Floats

SMALL_POOL = 1500  # different inputs, up to half of a budget
REUSE = 6  # tests that an input of a larger pool is used for


class Balanced(Strategy):
    """Equally many inputs for every test, each input under several tests, all inputs about equally often.

    The clean test comes first and gets more (`clean_trials`). The others in random order take consecutive blocks of
    permutations of a pool of inputs: outcomes of one input under neighbouring configurations are correlated, so using
    it again helps, but too few different inputs hurt. The inputs are fixed beforehand: stopping rules have no effect.
    """

    name = "balanced"
    surrogate = "process"
    splits = False

    def propose(self, progress: Progress) -> Work | None:
        tests, blocks = design(progress)
        spent, budget = progress.outcomes.total(), progress.budget
        left = progress.space.size * progress.inputs if budget is None else budget - spent
        configurations, places = [], []
        for test, block in zip(tests.tolist(), blocks, strict=True):
            # Oracles that compare with the clean output need the same input clean; otherwise any input counts.
            exactly = progress.needs_clean and test == 0
            missing = _missing(progress.outcomes, test, block, exactly=exactly)[: max(left, 0)]
            if len(missing):
                configurations.append(test)
                places.append(np.sort(missing))
                left -= len(missing)
        return Work(np.array(configurations, np.int64), places) if configurations else None

    def expected(self, progress: Progress) -> int:
        return _affordable(progress)


def pool_size(budget: int, inputs: int, tests: int) -> int:
    wanted = max(-(-budget // REUSE), min(budget // 2, SMALL_POOL), -(-budget // tests))
    return min(inputs, wanted)


def design(progress: Progress) -> tuple[Ids, list[Places]]:
    """Return the tests in their random order, the clean one first, and the places of each one's inputs.

    It depends only on the space, the number of inputs, the budget and the seed.
    """
    budget, space = _affordable(progress), progress.space
    generator = np.random.Generator(np.random.Philox(key=[progress.seed, 2]))
    share = shares(progress, budget)
    if not space.listed and budget < space.size:
        return low_first(space, budget, share.pool, generator, clean=share.clean)
    return spread(space.size, budget, share, generator)


@dataclass(frozen=True)
class Shares:
    clean: int
    pool: int


def shares(progress: Progress, budget: int) -> Shares:
    """Return the number of inputs of the clean test, and of different ones for the others.

    If outputs are compared with clean ones, the clean test runs on the whole pool, so that every input of another test
    is included. At least half of the budget is for the other tests.
    """
    inputs, tests = progress.inputs, progress.space.size
    pool = pool_size(budget, inputs, tests)
    if progress.needs_clean:
        pool = max(1, min(pool, budget // 2))
        return Shares(pool, pool)
    return Shares(clean_trials(budget, inputs, tests), pool)


def spread(
    tests: int, budget: int, share: Shares, generator: np.random.Generator, emphasis: Floats | None = None
) -> tuple[Ids, list[Places]]:
    others = min(budget - share.clean, share.pool * (tests - 1))
    if tests <= MOST_TESTS:
        order = np.concatenate([[0], 1 + generator.permutation(tests - 1)])
    else:
        wanted = min(others, tests - 1)
        order = np.array([0, *distinct(lambda n: generator.integers(1, tests, n), wanted)], np.int64)
    weights = np.ones(len(order)) if emphasis is None else emphasis[order]
    counts = shared_out(others, weights[1:], np.full(len(order) - 1, share.pool))
    used = np.concatenate([[True], counts > 0])  # tests without trials are not listed
    return order[used], blocks(np.concatenate([[share.clean], counts[counts > 0]]), share.pool, generator)


def _affordable(progress: Progress) -> int:
    tests = progress.space.size
    if tests > MOST_TESTS and (progress.budget is None or progress.budget > MOST_TESTS):
        raise InputError(
            f"strategy: balanced would run {min(tests, progress.budget or tests):,} tests (at most {MOST_TESTS:,}); "
            f"choose fewer severities, or a budget of at most {MOST_TESTS:,}"
        )
    return progress.affordable(tests * progress.inputs)


def _missing(outcomes: Outcomes, test: int, block: Places, *, exactly: bool) -> Places:
    """Return the untried places of a block; trials outside the block, from another budget or run, count as well."""
    if test not in outcomes:
        return block
    _, trials = outcomes.counts([test])
    rest = block[~outcomes.attempted(test, block)]
    return rest if exactly else rest[: max(0, len(block) - int(trials[0]))]
