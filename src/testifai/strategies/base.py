"""What a strategy is: it looks at what has been measured and names the work to do next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

from testifai.engine.plan import Work
from testifai.engine.stopping import StoppingRule
from testifai.errors import InputError
from testifai.runs.outcomes import Ids, Outcomes, ScoredOutcomes
from testifai.space import Space
from testifai.support.registry import borrow
from testifai.support.serialization import plain
from testifai.support.types import Bools, Record
from testifai.support.validation import whole
from testifai.surrogates import Surrogate


@dataclass(frozen=True)
class Progress:
    """All a strategy may look at. The same progress always leads to the same next step, so runs resume anywhere."""

    space: Space
    outcomes: Outcomes
    budget: int | None = None
    target: float | None = None
    stopping: StoppingRule | None = None
    needs_clean: bool = False
    scored: bool = False  # what counts is the oracle's score, not whether inputs passed
    seed: int = 0
    # What was decided at earlier points of the run: outcomes never change, so what was decided once stays decided.
    decided: dict[Any, Any] = field(default_factory=dict)

    @property
    def inputs(self) -> int:
        """How many inputs there are."""
        return self.outcomes.inputs

    def counted(self, outcomes: Outcomes) -> Outcomes:
        """Outcomes as what the run is planned for counts them."""
        return ScoredOutcomes.of(outcomes) if self.scored else outcomes


@dataclass(frozen=True)
class ExpectedCost:
    """About how many inferences a whole run will take, and how many fits of a surrogate to plan it."""

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
        everything = progress.space.size * progress.inputs
        return everything if progress.budget is None else min(everything, progress.budget)

    def expected_cost(self, progress: Progress, known: Outcomes, surrogate: Surrogate) -> ExpectedCost:
        """Return the cost of the run if its first round came out as `known`, on which the surrogate was fitted."""
        return ExpectedCost(self.expected(progress))

    def describe(self) -> Record:
        """Return the strategy as plain data: its name and, of a dataclass, its options."""
        options: Record = (
            {field.name: plain(getattr(self, field.name)) for field in fields(self)} if is_dataclass(self) else {}
        )
        return {"use": self.name, **options}


class FixedTests(Strategy):
    """Strategies that fix their tests beforehand and run each until its stopping rule, the data or the budget ends it.

    Inputs are visited in rounds of the rule's batch, all running tests together, so that a budget buys every test
    the same number of inputs instead of the first tests all of them.
    """

    @abstractmethod
    def tests(self, progress: Progress) -> Ids:
        """The configurations to run, the clean one first."""

    def expected(self, progress: Progress) -> int:
        everything = len(self.tests(progress)) * progress.inputs
        return everything if progress.budget is None else min(everything, progress.budget)

    def propose(self, progress: Progress) -> Work | None:
        tests = self.tests(progress)
        rule, inputs = progress.stopping, progress.inputs
        round_size = inputs if rule is None else rule.batch
        _, trials = progress.outcomes.counts(tests)
        running = np.ones(len(tests), bool)
        for start in range(0, inputs, round_size):
            end = min(inputs, start + round_size)
            # Tests stopped in earlier rounds keep what they have; everyone else has all inputs before `start`.
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
    """Which of the running tests the rule lets go on after their first `end` inputs."""
    places, rows = np.arange(end), np.flatnonzero(running)
    outcomes = progress.counted(progress.outcomes)
    passed = np.stack([outcomes.results(int(tests[row]), places) for row in rows])
    further = running.copy()
    further[rows] = ~rule.stops(passed, progress.inputs)
    if further.any() and progress.needs_clean:
        # Every other test is judged against the clean outputs, so the clean one goes on with them.
        further[tests == 0] = True
    return further


def _afford(budget: int | None, spent: int, running: Ids, wanted: int) -> tuple[int, Ids]:
    """How many inputs each running test can have, and which tests, when not even one input for all is left."""
    if budget is None:
        return wanted, running
    left = budget - spent
    share = min(wanted, left // len(running))
    if share > 0 or spent > 0 or left <= 0:
        return share, running
    return 1, running[:left]


def check_budget(budget: int | None) -> None:
    """A budget is a whole number, enough for a clean and a perturbed input."""
    if budget is not None:
        whole("budget", budget, least=2)


def adapt(strategy: Any, known: Iterable[str] = ()) -> Strategy:
    """A strategy as it is; another object with propose() by way of an adapter."""
    if isinstance(strategy, Strategy):
        return strategy
    if isinstance(strategy, type) or not hasattr(strategy, "propose"):
        raise InputError(f"strategy: expected one of {', '.join(known)} or an object with propose()")
    return ForeignStrategy(strategy)


class ForeignStrategy(Strategy):
    """An object with propose(); other attributes of a strategy are used if it has them."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.name = type(given).__name__
        borrow(given, self, keep=("propose",))

    def propose(self, progress: Progress) -> Work | None:
        work: Work | None = self.given.propose(progress)
        return work
