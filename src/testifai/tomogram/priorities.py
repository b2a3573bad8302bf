"""Untried trials in the order in which they are most likely to find failures.

Tests fail at the rates that the tomogram estimates; the difficulty of an input is estimated from its trials. Failures
found this way are not a random sample: they must never become part of an estimate, so they are passed separately.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.runs.outcomes import Ids, Outcomes, Places
from testifai.space import LISTED
from testifai.statistics.difficulty import Tried, difficulties, spread_of
from testifai.support.types import Array, Floats
from testifai.support.validation import whole
from testifai.tomogram.tomogram import Tomogram

CELLS = 4_000_000  # trials whose probabilities are computed together


@dataclass(frozen=True)
class Priorities:
    """Trials that were not run, the most likely to fail first."""

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
    """Ranks the untried trials of some tests of a run; the spread of difficulties is estimated from all its trials."""

    ids: Ids
    rates: Floats  # of failures
    known: Outcomes
    order: NDArray[np.intp]
    spread: float

    @classmethod
    def of(cls, tomogram: Tomogram, query: str | None = None) -> Prioritiser:
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
        """Return the n trials most likely to fail; with `once`, one for each input that has not failed yet."""
        whole("prioritised: n", n, least=1)
        tried = _tried(self.known, found)
        model = difficulties(self.rates, self.spread, tried, self.known.inputs)
        failed = tried.input[tried.failed & np.isin(tried.test, self.ids)] if once else np.empty(0, np.intp)
        parts: list[tuple[Ids, Places, Floats]] = []
        step = max(1, CELLS // self.known.inputs)
        for start in range(0, len(self.ids), step):
            tests = self.ids[start : start + step]
            chances = model.failing(tests)
            for row, test in enumerate(tests.tolist()):
                for outcomes in (self.known, found):
                    if outcomes is not None:
                        chances[row, outcomes.trials(test)[0]] = -1
            chances[:, failed] = -1
            parts.append(_highest(tests, chances, n, once=once))
        tests, places, probability = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.lexsort((places, tests, -probability))
        if once:
            order = order[np.sort(np.unique(places[order], return_index=True)[1])]
        order = order[:n]
        return Priorities(tests[order], places[order], self.order[places[order]], probability[order])


def _highest(tests: Ids, chances: Floats, n: int, *, once: bool) -> tuple[Ids, Places, Floats]:
    if once:
        rows, places = chances.argmax(axis=0), np.arange(chances.shape[1])
    else:
        many = min(n, chances.size)
        rows, places = np.divmod(np.argpartition(-chances, many - 1, axis=None)[:many], chances.shape[1])
    found = chances[rows, places]
    left = found >= 0
    return tests[rows[left]], places[left], found[left]


def prioritised(tomogram: Tomogram, n: int, query: str | None = None, *, once: bool = False) -> Priorities:
    """Return the n untried trials that are most likely to fail, among the tests that a query selects.

    Args:
        tomogram: a finished run
        n: number of trials
        query: the tests to choose from; None: all
        once: one trial for each input that has not failed any of these tests yet
    """
    return Prioritiser.of(tomogram, query).next(n, once=once)


def _tried(*several: Outcomes | None) -> Tried:
    parts: list[tuple[Ids, Places, Array]] = []
    for outcomes in several:
        if outcomes is not None and len(outcomes):
            ids = np.array(sorted(outcomes), np.int64)
            trials = outcomes.single(ids)
            parts.append((ids[trials.test], trials.place, ~trials.passed))
    test, place, failed = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Tried(test, place, failed)
