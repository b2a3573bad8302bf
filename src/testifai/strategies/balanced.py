"""A few inputs for every test instead of all inputs for a few: the design that a model of the surface ties together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testifai.engine.plan import Work
from testifai.errors import InputError
from testifai.runs.outcomes import Ids, Outcomes, Places
from testifai.strategies.base import Progress, Strategy
from testifai.strategies.clean import clean_trials
from testifai.strategies.draws import blocks, low_first
from testifai.strategies.fixed import MOST_TESTS

SMALL_POOL = 1500  # up to here half of a budget may go to different inputs
REUSE = 6  # beyond, an input serves this many tests

Counts = NDArray[np.int64]


class Balanced(Strategy):
    """As many inputs for one test as for another, each input under several tests, all inputs about equally often.

    The clean test comes first and gets more (`clean_trials`). The others in random order take consecutive blocks of
    successive permutations of a pool of inputs. Outcomes of one input under neighbouring configurations are
    correlated, so using it again helps, but too few different inputs at a small budget hurt. What is left of a budget,
    if less than the number of tests, buys one input each for a random part of them. The inputs are fixed beforehand: a
    stopping rule changes nothing.
    """

    name = "balanced"
    surrogate = "process"
    splits = False

    def propose(self, progress: Progress) -> Work | None:
        tests, blocks = design(progress)
        spent, budget = progress.outcomes.total(), progress.budget
        left = _everything(progress) if budget is None else budget - spent
        configurations, places = [], []
        for test, block in zip(tests.tolist(), blocks, strict=True):
            # Oracles that compare with the clean output need that very input clean; elsewhere any input counts.
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
    """How many different inputs a budget is spent on; at least as many as one test needs.

    >>> pool_size(12_960, 10_000, 1296), pool_size(2160, 10_000, 216), pool_size(648_000, 10_000, 1296)
    (2160, 1080, 10000)
    """
    wanted = max(-(-budget // REUSE), min(budget // 2, SMALL_POOL), -(-budget // tests))
    return min(inputs, wanted)


def design(progress: Progress) -> tuple[Ids, list[Places]]:
    """The tests in their random order, the clean one first, and the places of the inputs each of them gets.

    It depends on the space, the number of inputs, the budget and the seed alone. Of a space too large to list only some
    tests are run, low orders first, each on a few inputs.
    """
    budget, space = _affordable(progress), progress.space
    generator = np.random.Generator(np.random.Philox(key=[progress.seed, 2]))
    share = shares(progress, budget)
    if not space.listed and budget < space.size:
        return low_first(space, budget, share.pool, generator, clean=share.clean)
    return spread(space.size, budget, share, generator)


@dataclass(frozen=True)
class Shares:
    """What a budget buys: inputs for the clean test, and a pool of different ones for the others."""

    clean: int
    pool: int


def shares(progress: Progress, budget: int) -> Shares:
    """What a budget buys in this space, of these inputs.

    Where outputs are compared with clean ones, the clean test runs on the whole pool: whatever input another test asks
    for is then paid for. At least half of the budget is for the other tests.
    """
    inputs, tests = progress.inputs, progress.space.size
    pool = pool_size(budget, inputs, tests)
    if progress.needs_clean:
        pool = max(1, min(pool, budget // 2))
        return Shares(pool, pool)
    return Shares(clean_trials(budget, inputs, tests), pool)


def spread(tests: int, budget: int, share: Shares, generator: np.random.Generator) -> tuple[Ids, list[Places]]:
    """A budget spread evenly over a pool of inputs and, but for the clean test's share, over all tests.

    The tests stand in random order, the clean one first, with places for each.
    """
    others = min(budget - share.clean, share.pool * (tests - 1))
    counts = np.concatenate([[share.clean], _even(others, tests - 1)])
    return _random_order(tests, len(counts), generator), blocks(counts, share.pool, generator)


def _everything(progress: Progress) -> int:
    return progress.space.size * progress.inputs


def _affordable(progress: Progress) -> int:
    """All inputs on all tests, or as much of it as the budget buys."""
    tests = progress.space.size
    if tests > MOST_TESTS and (progress.budget is None or progress.budget > MOST_TESTS):
        raise InputError(
            f"strategy: balanced would run {min(tests, progress.budget or tests):,} tests (at most {MOST_TESTS:,}); "
            f"choose fewer severities, or a budget of at most {MOST_TESTS:,}"
        )
    return _everything(progress) if progress.budget is None else min(_everything(progress), progress.budget)


def _even(budget: int, tests: int) -> Counts:
    """Trials per test, as equal as can be, what is left over to the first; tests that get none are not listed."""
    each, extra = divmod(budget, max(tests, 1))
    counts = np.full(tests if each else extra, each, np.int64)
    counts[:extra] += 1
    return counts


def _random_order(tests: int, wanted: int, generator: np.random.Generator) -> Ids:
    """The clean test, then so many others drawn without replacement; the first ones do not depend on how many."""
    if tests <= MOST_TESTS:
        return np.concatenate([[0], 1 + generator.permutation(tests - 1)])[:wanted]
    drawn: dict[int, None] = {0: None}  # in a space this large repeats are rare
    while len(drawn) < wanted:
        drawn |= dict.fromkeys(generator.integers(1, tests, wanted - len(drawn)).tolist())
    return np.array(list(drawn), np.int64)


def _missing(outcomes: Outcomes, test: int, block: Places, *, exactly: bool) -> Places:
    """What is left of a block; trials that another budget or another run left outside the block count towards it."""
    if test not in outcomes:
        return block
    _, trials = outcomes.counts([test])
    rest = block[~outcomes.attempted(test, block)]
    return rest if exactly else rest[: max(0, len(block) - int(trials[0]))]
