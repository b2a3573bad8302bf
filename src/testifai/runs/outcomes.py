"""What has been measured: per configuration, which inputs were tried and which passed, as bits.

Inputs are numbered by their place in the run's one seeded order, so any prefix of the bits is a random sample.
Outcomes merge associatively; nothing here depends on which strategy made them, in what order, or on whose machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.runs.trials import Trials
from testifai.support import bits as packed
from testifai.support.bits import Bits

Ids = NDArray[np.int64]
Places = NDArray[np.intp]


def visiting_order(inputs: int, seed: int) -> NDArray[np.intp]:
    """The run's one random order: place -> input. Data often come sorted by class, so order is never the file's."""
    return np.random.Generator(np.random.Philox(key=[seed, inputs])).permutation(inputs)


@dataclass
class _Row:
    attempted: Bits
    passed: Bits


class Outcomes:
    """Attempted and passed bits per configuration.

    >>> outcomes = Outcomes(10)
    >>> outcomes.record(3, np.array([0, 1, 4]), np.array([True, False, True]))
    >>> outcomes.counts([3, 7])
    (array([2, 0]), array([3, 0]))
    """

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self._rows: dict[int, _Row] = {}
        self._kept: dict[str, dict[int, NDArray[np.float32]]] = {}
        # Configurations whose arrays a snapshot looks at too: they are copied before they change.
        self._shared: set[int] = set()

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __contains__(self, configuration: object) -> bool:
        return configuration in self._rows

    def record(
        self,
        configuration: int,
        places: Places,
        passed: NDArray[np.bool_],
        kept: dict[str, NDArray[np.float32]] | None = None,
    ) -> None:
        """Add the outcomes of one configuration on some inputs."""
        row = self._row(configuration)
        for name, values in (kept or {}).items():
            self.kept(configuration, name)[places] = values
        packed.put(row.passed, places[passed])
        # Last: an interrupt in between must not leave a trial without its outcome.
        packed.put(row.attempted, places)

    def snapshot(self) -> Outcomes:
        """What is known now, whatever is recorded here later; arrays are shared until they change.

        >>> outcomes = Outcomes(3)
        >>> before = outcomes.snapshot()
        >>> outcomes.record(0, np.array([1]), np.array([True]))
        >>> before.total(), outcomes.total()
        (0, 1)
        """
        twin = Outcomes(self.inputs)
        twin._rows = dict(self._rows)
        twin._kept = {name: dict(values) for name, values in self._kept.items()}
        self._shared, twin._shared = set(self._rows), set(self._rows)
        return twin

    def attempted(self, configuration: int, places: Places) -> NDArray[np.bool_]:
        """Which of these inputs were tried under the configuration."""
        row = self._rows.get(configuration)
        return np.zeros(len(places), bool) if row is None else packed.get(row.attempted, places)

    def passed(self, configuration: int, places: Places) -> NDArray[np.bool_]:
        """Which of these inputs passed under the configuration."""
        row = self._rows.get(configuration)
        return np.zeros(len(places), bool) if row is None else packed.get(row.passed, places)

    def bits(self, configuration: int) -> tuple[Bits, Bits]:
        """Attempted and passed bits of a configuration, eight inputs a byte, first input highest."""
        row = self._rows[configuration]
        return row.attempted, row.passed

    def load(self, configuration: int, start: int, attempted: Bits, passed: Bits) -> None:
        """Merge packed bits that begin at place `start` (a multiple of eight); refuse a contradiction."""
        row = self._row(configuration)
        part = slice(start // 8, start // 8 + len(attempted))
        both = row.attempted[part] & attempted
        clash = both & (row.passed[part] ^ passed)
        if clash.any():
            count = int(packed.count_set(clash))
            raise InputError(
                f"outcomes contradict each other: {count} inputs passed in one run and failed in the other "
                f"under configuration {configuration}; is the model deterministic?"
            )
        row.attempted[part] |= attempted
        row.passed[part] |= passed

    def kept(self, configuration: int, name: str) -> NDArray[np.float32]:
        """One value per input that was asked to be kept, NaN where there is none."""
        values = self._kept.setdefault(name, {})
        if configuration not in values:
            values[configuration] = np.full(self.inputs, np.nan, np.float32)
        return values[configuration]

    def kept_names(self) -> tuple[str, ...]:
        """The kinds of value this run keeps."""
        return tuple(sorted(self._kept))

    def counts(self, configurations: Ids | list[int], among: Bits | None = None) -> tuple[Ids, Ids]:
        """Passes and trials per configuration, of all inputs or of those whose bit is set in `among`."""
        ids = [int(i) for i in configurations]
        passes, trials = np.zeros(len(ids), np.int64), np.zeros(len(ids), np.int64)
        for place, configuration in enumerate(ids):
            row = self._rows.get(configuration)
            if row is not None:
                attempted, passed = row.attempted, row.passed
                if among is not None:
                    attempted, passed = attempted & among, passed & among
                trials[place] = packed.count_set(attempted)
                passes[place] = packed.count_set(passed)
        return passes, trials

    def single(self, configurations: Ids, among: Bits | None = None, name: str | None = None) -> Trials:
        """Every outcome of these configurations by itself, with the value kept under a name where there is one.

        Inputs are numbered among those looked at.
        """
        places, passed, values = [], [], []
        for configuration in configurations.tolist():
            attempted, _ = self.bits(configuration)
            tried = packed.places_of(attempted if among is None else attempted & among, self.inputs)
            places.append(tried)
            passed.append(self.passed(configuration, tried))
            if name is not None:
                values.append(self.kept(configuration, name)[tried])
        test = np.repeat(np.arange(len(places)), [len(tried) for tried in places])
        place, inputs = np.concatenate(places), self.inputs
        if among is not None:
            number = np.cumsum(packed.unpack(among, self.inputs), dtype=np.intp)
            place, inputs = number[place] - 1, int(number[-1])
        kept = np.concatenate(values) if values else None
        return Trials(test, place, np.concatenate(passed), inputs, kept)

    def total(self) -> int:
        """Outcomes recorded so far; one inference each."""
        return sum(int(packed.count_set(row.attempted)) for row in self._rows.values())

    def merge(self, other: Outcomes) -> None:
        """Take in the other's outcomes."""
        if other.inputs != self.inputs:
            raise InputError(f"runs of {self.inputs} and {other.inputs} inputs cannot be merged")
        for configuration in other:
            self.load(configuration, 0, *other.bits(configuration))
        for name in other.kept_names():
            for configuration, theirs in other._kept[name].items():
                mine = self.kept(configuration, name)
                known = ~np.isnan(theirs)
                mine[known] = theirs[known]

    def _row(self, configuration: int) -> _Row:
        """The bits of a configuration, to be changed."""
        row = self._rows.get(configuration)
        if row is None:
            size = packed.size(self.inputs)
            row = self._rows[configuration] = _Row(np.zeros(size, np.uint8), np.zeros(size, np.uint8))
        elif configuration in self._shared:
            self._shared.remove(configuration)
            row = self._rows[configuration] = _Row(row.attempted.copy(), row.passed.copy())
            for values in self._kept.values():
                if configuration in values:
                    values[configuration] = values[configuration].copy()
        return row
