"""What travels between driver and actors: a task, and what became of it, packed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.engine.base import BatchOutcome
from testifai.engine.plan import Work
from testifai.runs.outcomes import Ids, Places
from testifai.support.bits import Bits, pack, unpack


@dataclass(frozen=True, eq=False)
class Task:
    """Tests and the inputs that each is still to be tried on, all of one block of inputs.

    `wanted` is a table (tests × places) as bits, None where every test wants every place. `references` are what the
    oracle remembers of the clean outputs, a row for each place; None where it compares with nothing, or where the task
    is to find them.
    """

    configurations: Ids
    places: Places
    wanted: Bits | None
    references: NDArray[Any] | None = None

    @classmethod
    def of(cls, configurations: Ids, places: Places, table: NDArray[np.bool_]) -> Task:
        """The task of a table (tests × places), less the inputs that no test wants."""
        some = table.any(axis=0)
        if not some.all():
            places, table = places[some], table[:, some]
        return cls(configurations, places, None if table.all() else pack(table))

    def table(self) -> NDArray[np.bool_]:
        """(tests × places): which trials are wanted."""
        if self.wanted is None:
            return np.ones((len(self.configurations), len(self.places)), bool)
        return unpack(self.wanted, len(self.places))

    def trials(self) -> int:
        """How many there are."""
        return int(self.table().sum())

    def work(self) -> Work:
        """What an executor is to run."""
        if self.wanted is None:
            return Work(self.configurations, self.places)
        return Work(self.configurations, [self.places[row] for row in self.table()])


@dataclass(frozen=True, eq=False)
class Measured:
    """What became of a task: a bit and the values kept of each trial, test by test in the order of the task's table.

    `reference` has the rows to remember where the clean test was among them; `seconds` is what the actor took.
    """

    passed: Bits
    kept: dict[str, NDArray[np.float32]]
    reference: NDArray[Any] | None
    seconds: float

    @classmethod
    def of(cls, task: Task, outcomes: Iterable[BatchOutcome], seconds: float) -> Measured:
        """The outcomes of all trials of the task, in any order and any pieces."""
        rows = _Rows(task)
        passed = np.zeros(rows.trials, bool)
        found = np.zeros(rows.trials, bool)
        kept: dict[str, NDArray[np.float32]] = {}
        reference: NDArray[Any] | None = None
        for one in outcomes:
            at, within = rows.where(one)
            found[at], passed[at] = True, one.passed
            for name, values in one.kept.items():
                if name not in kept:
                    kept[name] = np.full((rows.trials, *values.shape[1:]), np.nan, np.float32)
                kept[name][at] = values
            if one.reference is not None:
                if reference is None:
                    clean = rows.counts[rows.number[one.configuration]]
                    reference = np.zeros((clean, *one.reference.shape[1:]), one.reference.dtype)
                reference[within] = one.reference
        assert found.all(), "an actor measures all of a task or nothing"
        return cls(pack(passed), kept, reference, seconds)

    def outcomes(self, task: Task) -> Iterator[BatchOutcome]:
        """Each test's, as they are handed over."""
        rows = _Rows(task)
        passed = unpack(self.passed, rows.trials)
        for number, configuration in enumerate(task.configurations.tolist()):
            own = slice(rows.starts[number], rows.starts[number] + rows.counts[number])
            kept = {name: values[own] for name, values in self.kept.items()}
            reference = self.reference if configuration == 0 else None
            yield BatchOutcome(configuration, rows.places(number), passed[own], kept, reference)


class _Rows:
    """Where the trials of each test of a task lie when they are written one after the other."""

    def __init__(self, task: Task) -> None:
        self._all, self._table = task.places, None if task.wanted is None else task.table()
        tests = len(task.configurations)
        self.counts = np.full(tests, len(task.places)) if self._table is None else self._table.sum(axis=1)
        self.starts = np.concatenate([[0], np.cumsum(self.counts)[:-1]])
        self.trials = int(self.counts.sum())
        self.number = {configuration: number for number, configuration in enumerate(task.configurations.tolist())}

    def places(self, number: int) -> Places:
        """Those that a test wants."""
        return self._all if self._table is None else self._all[self._table[number]]

    def where(self, one: BatchOutcome) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Where outcomes of one test belong among all trials, and among its own."""
        number = self.number[one.configuration]
        within = np.searchsorted(self.places(number), one.places)
        return self.starts[number] + within, within
