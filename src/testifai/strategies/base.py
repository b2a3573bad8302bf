"""The base class of strategies: from what has been measured to the work to do next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

from testifai.engine.plan import Work
from testifai.engine.stopping import Interval, StoppingRule
from testifai.errors import InputError
from testifai.runs.outcomes import Ids, Outcomes, ScoredOutcomes
from testifai.space import Space
from testifai.support.registry import borrow
from testifai.support.serialization import plain
from testifai.support.types import Bools, Record
from testifai.surrogates import Surrogate

# Every drop is relative to the clean test, so it is measured, not inferred from neighbours.
CLEAN_LEAST = 1_000  # inputs of the clean test, if available
CLEAN_SHARE = 10  # fraction of a budget that buys more


@dataclass(frozen=True)
class Progress:
    """The input of a strategy. The same progress always leads to the same next step, so runs resume anywhere."""

    space: Space
    outcomes: Outcomes
    budget: int | None = None
    target: float | None = None
    stopping: StoppingRule | None = None
    needs_clean: bool = False
    scored: bool = False  # the oracle's score counts, not whether inputs passed
    finite: bool = True  # rates are about the inputs at hand; else about new inputs like them
    seed: int = 0
    # Earlier decisions of the run: outcomes never change, so decisions remain valid.
    decided: dict[Any, Any] = field(default_factory=dict)

    @property
    def inputs(self) -> int:
        return self.outcomes.inputs

    def affordable(self, inferences: int) -> int:
        return inferences if self.budget is None else min(inferences, self.budget)

    def counted(self, outcomes: Outcomes) -> Outcomes:
        return ScoredOutcomes.of(outcomes) if self.scored else outcomes


@dataclass(frozen=True)
class ExpectedCost:
    """The expected number of inferences of a whole run, and of fits of a surrogate to plan it."""

    inferences: int
    fits: int = 0


class Strategy(ABC):
    """Decide which (configuration, inputs) to run next, and when to stop. A new strategy needs only `propose`."""

    name: str
    surrogate: str | None = "forest"  # predicts tests that were not measured, unless the spec names another
    uses_target = False  # checks the half-widths reached
    splits = True  # its work can be divided among machines by inputs

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if not hasattr(cls, "name"):
            cls.name = cls.__name__

    @abstractmethod
    def propose(self, progress: Progress) -> Work | None:
        """Return the next round of work (parts of it may have been measured already), or None: done."""

    def expected(self, progress: Progress) -> int:
        """Return the largest number of inferences of the whole run: by default all, or the budget."""
        return progress.affordable(progress.space.size * progress.inputs)

    def expected_cost(self, progress: Progress, known: Outcomes, surrogate: Surrogate) -> ExpectedCost:
        """Return the cost of the run if its first round came out as `known`, on which the surrogate was fitted."""
        return ExpectedCost(self.expected(progress))

    def describe(self) -> Record:
        """Return the strategy as plain data: its name and, of a dataclass, its options."""
        options: Record = (
            {one.name: plain(getattr(self, one.name)) for one in fields(self)} if is_dataclass(self) else {}
        )
        return {"use": self.name, **options}


class FixedTests(Strategy):
    """A strategy that runs fixed tests until the stopping rule, the data or the budget ends them.

    Inputs are visited in rounds of the rule's batch, all running tests together, so that a budget buys every test the
    same number of inputs.
    """

    @abstractmethod
    def tests(self, progress: Progress) -> Ids:
        """Return the configurations to run, the clean one first."""

    def expected(self, progress: Progress) -> int:
        return progress.affordable(len(self.tests(progress)) * progress.inputs)

    def propose(self, progress: Progress) -> Work | None:
        tests = self.tests(progress)
        rule, inputs = progress.stopping, progress.inputs
        round_size = inputs if rule is None else rule.batch
        _, trials = progress.outcomes.counts(tests)
        running = np.ones(len(tests), bool)
        for start in range(0, inputs, round_size):
            end = min(inputs, start + round_size)
            # Running tests have all inputs before `start`, stopped ones fewer.
            spent = int(np.minimum(trials, start).sum())
            share, chosen = _afford(progress.budget, spent, np.flatnonzero(running), end - start)
            if share == 0:
                return None
            work = Work(tests[chosen], np.arange(start, start + share))
            if (trials[chosen] < start + share).any():
                return work
            if share < end - start or len(chosen) < running.sum():
                return None
            if rule is not None:
                if end not in progress.decided:
                    progress.decided[end] = _going_on(progress, rule, tests, running, end)
                running = progress.decided[end]
                if not running.any():
                    return None
        return None


def _going_on(progress: Progress, rule: StoppingRule, tests: Ids, running: Bools, end: int) -> Bools:
    places, rows = np.arange(end), np.flatnonzero(running)
    outcomes = progress.counted(progress.outcomes)
    passed = np.stack([outcomes.results(int(tests[row]), places) for row in rows])
    further = running.copy()
    options = {"finite": False} if isinstance(rule, Interval) and not progress.finite else {}
    further[rows] = ~rule.stops(passed, progress.inputs, **options)
    if further.any() and progress.needs_clean:
        # Every other test is compared with the clean outputs, so the clean one continues with them.
        further[tests == 0] = True
    return further


def _afford(budget: int | None, spent: int, running: Ids, wanted: int) -> tuple[int, Ids]:
    if budget is None:
        return wanted, running
    left = budget - spent
    share = min(wanted, left // len(running))
    if share > 0 or spent > 0 or left <= 0:
        return share, running
    return 1, running[:left]


def adapt(strategy: Any, known: Iterable[str] = ()) -> Strategy:
    if isinstance(strategy, Strategy):
        return strategy
    if isinstance(strategy, type) or not hasattr(strategy, "propose"):
        raise InputError(f"strategy: expected one of {', '.join(known)} or an object with propose()")
    return ForeignStrategy(strategy)


class ForeignStrategy(Strategy):
    """An object with propose(), and any other attributes of a strategy."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.name = type(given).__name__
        borrow(given, self, keep=("propose",))

    def propose(self, progress: Progress) -> Work | None:
        work: Work | None = self.given.propose(progress)
        return work


def clean_trials(budget: int, inputs: int, tests: int) -> int:
    """Return the number of inputs of the clean test: all, or as many as a small budget can spare.

    It is a tenth of the budget, but 1,000 if that is less, as many as other tests get, and at most half of it.
    """
    others = budget if tests == 1 else budget // 2
    return min(inputs, max(CLEAN_LEAST, budget // CLEAN_SHARE, -(-budget // tests)), max(1, others))


def region_of(
    surrogate: Surrogate,
    space: Space,
    ids: Ids,
    clean: tuple[float, float] | None,
    confidence: float = 0.95,
    of: int | None = None,
) -> tuple[float, float]:
    """Return bounds of the mean rate over tests, given those of the clean test, or over the `of` they are a sample of.

    The clean test's bounds are from its own trials, those of the others from the surrogate; their half-widths add up,
    whatever the correlation of their errors. None: the surrogate predicts the clean test too, as it does in a sample.
    """
    others = ids[ids != 0]
    drawn = of is not None and of > len(ids)
    if clean is None or drawn or len(others) == len(ids):
        return surrogate.region(space.matrix(ids), confidence, of)[1:]
    if not len(others):
        return clean
    _, low, high = surrogate.region(space.matrix(others), confidence)
    share = 1 / len(ids)
    return (1 - share) * low + share * clean[0], (1 - share) * high + share * clean[1]
