"""Which inputs to run next to find failures fastest: untried trials, the likeliest to fail first.

Tests fail at the rates that the tomogram estimates; how hard an input is follows from its trials so far. What is found
this way is no random sample: it must never become part of an estimate, and is handed in beside the run's outcomes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.runs.outcomes import Ids, Outcomes, Places
from testifai.space import LISTED
from testifai.statistics.difficulty import Difficulties, Tried, difficulties, spread_of
from testifai.support.types import Floats
from testifai.support.validation import whole
from testifai.tomogram.tomogram import Tomogram

CELLS = 4_000_000  # trials whose probabilities are worked out at once


@dataclass(frozen=True)
class Priorities:
    """Trials that were not run, the likeliest to fail first."""

    tests: Ids
    places: Places
    inputs: NDArray[np.intp]  # their numbers in the data set
    probability: Floats  # of failing

    def __len__(self) -> int:
        return len(self.tests)

    def __repr__(self) -> str:
        ends = f", probability of failing {self.probability[0]:.2f} to {self.probability[-1]:.2f}" if len(self) else ""
        return f"<Priorities: {len(self):,} trials of {len(np.unique(self.tests)):,} tests{ends}>"


@dataclass(frozen=True)
class Prioritiser:
    """Ranks what is left to try of some tests of a run; the spread of difficulties is that of the run's own trials."""

    ids: Ids
    rates: Floats  # of failures
    known: Outcomes
    order: NDArray[np.intp]
    spread: float

    @classmethod
    def of(cls, tomogram: Tomogram, query: str | None = None) -> Prioritiser:
        """For the tests that a query selects; all of them without one."""
        plain = tomogram.outcomes.plain()
        if not plain.total():
            raise InputError("prioritised: the run has no outcome yet; run it first")
        if not tomogram.space.listed:
            raise InputError(f"prioritised: the space has {tomogram.space.size:,} tests; accepted are up to {LISTED:,}")
        estimates = np.asarray(tomogram.estimate, np.float64).reshape(-1)
        rates = 1 - np.where(np.isnan(estimates), np.nanmean(estimates), estimates)
        everything = np.arange(tomogram.space.size)
        ids = everything if query is None else np.flatnonzero(tomogram.query_engine.select(query))
        spread = spread_of(rates, _tried(plain), plain.inputs)
        return cls(ids, rates, plain, tomogram.order, spread)

    def next(self, n: int, found: Outcomes | None = None, *, once: bool = False) -> Priorities:
        """The `n` trials likeliest to fail, given the run's own trials and what was `found` since.

        With `once`, one trial for each input that has not failed any of the tests yet.
        """
        tried = _tried(self.known, found)
        model = difficulties(self.rates, self.spread, tried, self.known.inputs)
        failed = tried.input[tried.failed & np.isin(tried.test, self.ids)] if once else np.empty(0, np.intp)
        best = _Best(whole("prioritised: n", n, least=1), once)
        for tests, chances in self._chances(model):
            for row, test in enumerate(tests.tolist()):
                for outcomes in (self.known, found):
                    if outcomes is not None:
                        chances[row, outcomes.trials(test)[0]] = -1
            chances[:, failed] = -1
            best.take(tests, chances)
        tests, places, probability = best.ranked()
        return Priorities(tests, places, self.order[places], probability)

    def _chances(self, model: Difficulties) -> Iterator[tuple[Ids, Floats]]:
        step = max(1, CELLS // self.known.inputs)
        for start in range(0, len(self.ids), step):
            tests = self.ids[start : start + step]
            yield tests, model.failing(tests)


class _Best:
    """The largest of many probabilities that come in parts; of each input one at most, if `once`."""

    def __init__(self, n: int, once: bool) -> None:
        self._n, self._once = n, once
        self._parts: list[tuple[Ids, Places, Floats]] = []

    def take(self, tests: Ids, chances: Floats) -> None:
        if self._once:
            rows, places = chances.argmax(axis=0), np.arange(chances.shape[1])
        else:
            many = min(self._n, chances.size)
            rows, places = np.divmod(np.argpartition(-chances, many - 1, axis=None)[:many], chances.shape[1])
        worth = chances[rows, places]
        left = worth >= 0
        self._parts.append((tests[rows[left]], places[left], worth[left]))

    def ranked(self) -> tuple[Ids, Places, Floats]:
        tests, places, worth = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        order = np.lexsort((places, tests, -worth))
        if self._once:
            order = order[np.sort(np.unique(places[order], return_index=True)[1])]
        order = order[: self._n]
        return tests[order], places[order], worth[order]


def prioritised(tomogram: Tomogram, n: int, query: str | None = None, *, once: bool = False) -> Priorities:
    """The `n` trials not run yet that are likeliest to fail, among the tests that a query selects.

    Args:
        tomogram: a finished run
        n: how many trials
        query: the tests to choose from; None: all
        once: one trial for each input that has not failed any of these tests yet
    """
    return Prioritiser.of(tomogram, query).next(n, once=once)


def _tried(*several: Outcomes | None) -> Tried:
    parts: list[tuple[Any, Any, Any]] = []
    for outcomes in several:
        if outcomes is not None and len(outcomes):
            ids = np.array(sorted(outcomes), np.int64)
            trials = outcomes.single(ids)
            parts.append((ids[trials.test], trials.place, ~trials.passed))
    test, place, failed = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Tried(test, place, failed)
