"""The contract of strategies."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from testifai.engine.plan import Work
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Outcomes
from testifai.space import Space
from testifai.strategies import STRATEGIES, resolve
from testifai.strategies.base import Progress, Strategy
from testifai.testing.assertions import maker_of, require, require_described, require_flags, require_name, same

INPUTS = 30
MOST_ROUNDS = 500
BUDGETS = (None, 200)
SEEDS = (0, 7)


def check_strategy(strategy: Any) -> None:
    """Raise AssertionError if a strategy breaks its contract.

    On a small space it must propose only existing configurations and inputs, something new in each round, within the
    budget, and end. The same progress must lead to the same proposal, also after an interruption. Outcomes must not
    change, and a description must identify the strategy.

    Args:
        strategy: a strategy, or a function that makes one

    >>> from testifai.strategies import Ordered
    >>> check_strategy(Ordered(extra=3))
    """
    make = maker_of(strategy, "propose")
    first = resolve(make())
    who = require_name(first.name, "strategy")
    require_flags(first, who, "uses_target", "splits")
    described = require_described(first.describe(), who)
    for budget in BUDGETS:
        for needs_clean in (False, True):
            game = _Game(budget, needs_clean, SEEDS[needs_clean])
            whole = _play(lambda: resolve(make()), game, who)
            _check_interrupted(lambda: resolve(make()), game, whole, who)
    if described["use"] in STRATEGIES:
        game = _Game(BUDGETS[-1], False, SEEDS[0])
        own, rebuilt = (one.propose(game.progress(Outcomes(INPUTS))) for one in (first, resolve(described)))
        require(same(own, rebuilt), who, "its description does not lead back to it")


@dataclass(frozen=True)
class _Game:
    """A run with synthetic outcomes: an input passes up to a sum of severities that depends on its place."""

    budget: int | None
    needs_clean: bool
    seed: int

    @property
    def space(self) -> Space:
        fade = Perturbation("fade", lambda batch, parameter, rng: batch, (0, 1, 2))
        return Space({"a": fade, "b": fade, "c": fade})

    def progress(self, outcomes: Outcomes) -> Progress:
        return Progress(self.space, outcomes, budget=self.budget, needs_clean=self.needs_clean, seed=self.seed)

    def record(self, work: Work, outcomes: Outcomes, keep: float = 1.0) -> None:
        """Measure what is missing of the work, or only the first part of it."""
        work = work.with_clean() if self.needs_clean else work
        union = work.union()
        for configuration, missing in zip(work.configurations.tolist(), work.missing(outcomes, union), strict=True):
            places = union[missing][: round(keep * missing.sum())]
            severity = int(self.space.matrix(np.array([configuration])).sum())
            if len(places):
                outcomes.record(configuration, places, (places * 7) % INPUTS > 5 * severity)


def _play(make: Callable[[], Strategy], game: _Game, who: str) -> Outcomes:
    outcomes, strategy = Outcomes(INPUTS), make()
    progress = game.progress(outcomes)
    most = strategy.expected(progress)
    for _ in range(MOST_ROUNDS):
        before = _facts(outcomes)
        work = strategy.propose(progress)
        require(before == _facts(outcomes), who, "changes the outcomes it looks at")
        if work is None:
            break
        other = make().propose(game.progress(copy.deepcopy(outcomes)))
        require(same(work, other), who, "the same progress does not lead to the same proposal: runs could not resume")
        _check_work(work, game, outcomes, who)
        game.record(work, outcomes)
        spent = outcomes.total()
        if game.budget is not None:
            require(spent <= game.budget, who, f"spends {spent} inferences of a budget of {game.budget}")
        require(spent <= most, who, f"spends {spent} inferences after expecting at most {most}")
    else:
        require(False, who, f"does not come to an end: {MOST_ROUNDS} rounds on {game.space.size} tests")
    require(len(outcomes) > 0, who, "proposes nothing at all")
    require(strategy.propose(progress) is None, who, "goes on after its end")
    return outcomes


def _check_work(work: Work, game: _Game, outcomes: Outcomes, who: str) -> None:
    tests, size = work.configurations, game.space.size
    require(((tests >= 0) & (tests < size)).all(), who, f"proposes configurations that are none of the {size}")
    require(len(np.unique(tests)) == len(tests), who, "proposes a configuration twice in one round")
    if isinstance(work.places, list):
        require(len(work.places) == len(tests), who, f"names inputs for {len(work.places)} of {len(tests)} tests")
    union = work.union()
    require(((union >= 0) & (union < INPUTS)).all(), who, f"proposes inputs that are none of the {INPUTS}")
    require(work.missing(outcomes, np.unique(union)).any(), who, "proposes nothing that was not measured already")


def _check_interrupted(make: Callable[[], Strategy], game: _Game, whole: Outcomes, who: str) -> None:
    """Interrupt every other round halfway, and compare the end of the run with that of an uninterrupted one."""
    outcomes = Outcomes(INPUTS)
    for number in range(2 * MOST_ROUNDS):
        work = make().propose(game.progress(outcomes))
        if work is None:
            break
        game.record(work, outcomes, keep=1.0 if number % 2 else 0.5)
    require(_facts(outcomes) == _facts(whole), who, "a run that was interrupted ends with other outcomes")


def _facts(outcomes: Outcomes) -> dict[int, tuple[bytes, bytes]]:
    bits = {test: outcomes.bits(test) for test in outcomes}
    return {test: (tried.tobytes(), passed.tobytes()) for test, (tried, passed) in bits.items()}
