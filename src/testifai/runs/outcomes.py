"""Outcomes of a run: per configuration, which inputs were tried and which passed.

Inputs are identified by their place in the run's seeded order, so any prefix of the places is a random sample. Outcomes
do not depend on the order in which they are recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testifai.data.annotations import Boxes
from testifai.errors import InputError
from testifai.runs.rows import MANY, BoxRecords, DenseOutcomes, Row, SparseOutcomes, Stored, Values
from testifai.statistics.means import OF_MEANS, Limits, Moments
from testifai.support import bits as packed
from testifai.support.bits import Bits
from testifai.support.types import Array, Bools, Floats

Ids = NDArray[np.int64]
Places = NDArray[np.intp]
# names of kept values and boxes
VALUE = "value"  # what the oracle measured of a trial: its score, or its margin
DETECTIONS, EXPECTED = "detections", "expected"


def visiting_order(inputs: int, seed: int) -> NDArray[np.intp]:
    """Return the run's random order of inputs, by place: data files are often sorted by class."""
    return np.random.Generator(np.random.Philox(key=[seed, inputs])).permutation(inputs)


class Outcomes:
    """Attempted and passed inputs per configuration; memory grows with the outcomes, not with tests times inputs.

    >>> outcomes = Outcomes(10)
    >>> outcomes.record(3, np.array([0, 1, 4]), np.array([True, False, True]))
    >>> outcomes.counts([3, 7])
    (array([2, 0]), array([3, 0]))
    """

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self._rows: dict[int, Row] = {}
        self._names: set[str] = set()
        self._kept: dict[tuple[str, int], Values] = {}  # by name and configuration
        self._boxes: dict[tuple[str, int], BoxRecords] = {}  # by name and configuration
        self._codes = np.min_scalar_type(2 * inputs + 1)
        # May change bits and values in place; a snapshot shares them, so that both sides copy before a change.
        self._owner = object()

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __contains__(self, configuration: object) -> bool:
        return configuration in self._rows

    def record(
        self, configuration: int, places: Places, passed: Bools, kept: dict[str, NDArray[np.float32]] | None = None
    ) -> None:
        """Add outcomes of one configuration; `kept` has values or boxes of each trial by name."""
        # Values first, so that no interrupt leaves a trial without them.
        for name, values in (kept or {}).items():
            if values.ndim > 1:
                self._listed(name, configuration).add(places, values)
            else:
                self._names.add(name)
                self._values(name, configuration).put(places, values, self.inputs)
        row = self._rows.get(configuration)
        if isinstance(row, DenseOutcomes) or self._are_many(row, len(places)):
            self._many(configuration).add(places, passed)
        else:
            few = SparseOutcomes.of(places, passed, self._codes)
            self._rows[configuration] = few if row is None else row.joined(few)

    def snapshot(self) -> Outcomes:
        """Return a copy, which shares arrays until they change."""
        twin = Outcomes(self.inputs)
        twin._share(self)
        return twin

    def plain(self) -> Outcomes:
        """Return the same trials, which count by whether they passed."""
        return self

    def _share(self, other: Outcomes) -> None:
        self._rows, self._names, self._kept = dict(other._rows), set(other._names), dict(other._kept)
        self._boxes = {key: listed.copy() for key, listed in other._boxes.items()}
        other._owner = object()

    def attempted(self, configuration: int, places: Places) -> Bools:
        """Return which of these inputs were tried."""
        row = self._rows.get(configuration)
        return np.zeros(len(places), bool) if row is None else row.attempted(places)

    def passed(self, configuration: int, places: Places) -> Bools:
        """Return which of these inputs passed."""
        row = self._rows.get(configuration)
        return np.zeros(len(places), bool) if row is None else row.passed(places)

    def results(self, configuration: int, places: Places) -> Array:
        """Return the result of each of these inputs: whether it passed, or its score."""
        return self.passed(configuration, places)

    def bits(self, configuration: int) -> tuple[Bits, Bits]:
        """Return attempted and passed bits of a configuration; read only."""
        return self._rows[configuration].span(0, self.inputs)

    def span(self, configuration: int, start: int, stop: int) -> tuple[Bits, Bits]:
        """Return bits of the places from `start`, a multiple of eight, up to `stop`."""
        return self._rows[configuration].span(start, min(stop, self.inputs))

    def load(self, configuration: int, start: int, attempted: Bits, passed: Bits) -> None:
        """Merge packed bits that begin at place `start` (a multiple of eight); reject a contradiction."""
        row = self._rows.get(configuration)
        if isinstance(row, DenseOutcomes) or self._are_many(row, int(packed.count_set(attempted))):
            own = self._many(configuration).bits[:, start // 8 : start // 8 + len(attempted)]
            _refuse(configuration, int(packed.count_set(own[0] & attempted & (own[1] ^ passed))))
            own[0] |= attempted
            own[1] |= passed
        else:
            tried = packed.places_of(attempted, 8 * len(attempted))
            self._add(configuration, tried + start, packed.get(passed, tried))

    def load_kept(self, configuration: int, name: str, places: Places, values: NDArray[np.float32]) -> None:
        """Keep values of those of these places that were tried."""
        self._names.add(name)
        tried = self.attempted(configuration, places)
        self._values(name, configuration).put(places[tried], values[tried], self.inputs)

    def kept(self, configuration: int, name: str) -> NDArray[np.float32]:
        """Return a value per input, NaN if there is none; read only."""
        found = self._kept.get((name, configuration))
        if found is not None and found.places is None:
            return found.values
        return self.kept_at(configuration, name, np.arange(self.inputs))

    def kept_at(self, configuration: int, name: str, places: Places) -> NDArray[np.float32]:
        """Return the values of these inputs, NaN if there are none."""
        found = self._kept.get((name, configuration))
        return np.full(len(places), np.nan, np.float32) if found is None else found.at(places)

    def kept_span(self, configuration: int, name: str, start: int, stop: int) -> NDArray[np.float32]:
        """Return the values of the tried inputs among the places from `start`, a multiple of eight, up to `stop`."""
        places = self._rows[configuration].tried(start, min(stop, self.inputs))
        return self.kept_at(configuration, name, places)

    def kept_names(self) -> tuple[str, ...]:
        return tuple(sorted(self._names))

    def boxes(self, name: str, configuration: int, places: Places) -> list[Boxes]:
        """Return the boxes of each of these inputs, such as the detected ones."""
        listed = self._boxes.get((name, configuration))
        return BoxRecords().at(places) if listed is None else listed.at(places)

    def boxes_names(self) -> tuple[str, ...]:
        return tuple(sorted({name for name, _ in self._boxes}))

    def boxes_span(self, name: str, configuration: int, start: int, stop: int) -> Stored:
        """Return the boxes of tried inputs among the places from `start` up to `stop`, in the form of a run file."""
        stored = self._listed(name, configuration).span(start, stop)
        return stored[self.attempted(configuration, start + stored[:, 0].astype(np.intp))]

    def load_boxes(self, name: str, configuration: int, start: int, stored: Stored) -> None:
        """Add boxes from a run file, of the places from `start` on."""
        self._listed(name, configuration).load(start, stored)

    def counts(self, configurations: Ids | list[int], among: Bits | None = None) -> tuple[Array, Ids]:
        """Return passes and trials per configuration, of all inputs or of those whose bit is set in `among`."""
        ids = [int(i) for i in configurations]
        passes, trials = np.zeros(len(ids), np.int64), np.zeros(len(ids), np.int64)
        for place, configuration in enumerate(ids):
            row = self._rows.get(configuration)
            if row is not None:
                passes[place], trials[place] = row.counts(among)
        return passes, trials

    def trial_weight(self, configurations: Ids) -> float:
        """Return how many passes and failures a trial is worth: one, or more if scores vary less."""
        return 1.0

    def limits(
        self,
        method: Callable[..., tuple[Floats, Floats]],
        configurations: Ids,
        counts: tuple[Array, Ids],
        population: int | None,
        confidence: float,
        among: Bits | None = None,
    ) -> tuple[Floats, Floats]:
        """Return the interval of each configuration's rate from the counts of its own trials."""
        return method(*counts, population, confidence)

    def trials(self, configuration: int, among: Bits | None = None) -> tuple[Places, Array]:
        """Return the tried places of a configuration, ascending, and their results."""
        row = self._rows.get(configuration)
        return (np.zeros(0, np.intp), np.zeros(0, bool)) if row is None else row.trials(among)

    def single(self, configurations: Ids, among: Bits | None = None, name: str | None = None) -> Trials:
        """Return the single trials of these configurations, with the values kept under a name.

        Inputs are numbered among those selected.
        """
        places, passed, values = [], [], []
        for configuration in configurations.tolist():
            tried, outcomes = self.trials(configuration, among)
            places.append(tried)
            passed.append(outcomes)
            if name is not None:
                values.append(self.kept_at(configuration, name, tried))
        test = np.repeat(np.arange(len(places)), [len(tried) for tried in places])
        place, inputs = np.concatenate(places), self.inputs
        if among is not None:
            number = np.cumsum(packed.unpack(among, self.inputs), dtype=np.intp)
            place, inputs = number[place] - 1, int(number[-1])
        kept = np.concatenate(values) if values else None
        return Trials(test, place, np.concatenate(passed), inputs, kept)

    def total(self) -> int:
        """Return the number of outcomes; one inference each."""
        return sum(row.total() for row in self._rows.values())

    def merge(self, other: Outcomes) -> None:
        """Add the outcomes of another run."""
        if other.inputs != self.inputs:
            raise InputError(f"runs of {self.inputs} and {other.inputs} inputs cannot be merged")
        for (name, configuration), listed in other._boxes.items():
            new = ~self.attempted(configuration, np.arange(self.inputs))
            self._listed(name, configuration).join(listed.among(new))
        for configuration, row in other._rows.items():
            if isinstance(row, SparseOutcomes):
                self._add(configuration, *row.trials(None))
            else:
                self.load(configuration, 0, *row.span(0, self.inputs))
        for (name, configuration), values in other._kept.items():
            places = np.arange(self.inputs) if values.places is None else values.places.astype(np.intp)
            known = ~np.isnan(values.values)
            self.load_kept(configuration, name, places[known], values.values[known])

    def _listed(self, name: str, configuration: int) -> BoxRecords:
        return self._boxes.setdefault((name, configuration), BoxRecords())

    def _values(self, name: str, configuration: int) -> Values:
        """Return values that may be changed."""
        found = self._kept.get((name, configuration))
        if found is None or found.owner is not self._owner:
            found = Values(self._owner) if found is None else found.copy(self._owner)
            self._kept[name, configuration] = found
        return found

    def _add(self, configuration: int, places: Places, passed: Bools) -> None:
        """Record outcomes; reject a contradiction."""
        if configuration in self._rows:
            known = self.attempted(configuration, places)
            if known.any():
                _refuse(configuration, int(np.count_nonzero(known & (self.passed(configuration, places) != passed))))
        self.record(configuration, places, passed)

    def _are_many(self, row: SparseOutcomes | None, more: int) -> bool:
        """Return True if this many more outcomes are better stored as bits."""
        return (0 if row is None else len(row)) + more > self.inputs // MANY

    def _many(self, configuration: int) -> DenseOutcomes:
        """Return the bits of a configuration, which may be changed."""
        row = self._rows.get(configuration)
        if isinstance(row, DenseOutcomes) and row.owner is self._owner:
            return row
        if isinstance(row, DenseOutcomes):
            made = DenseOutcomes(row.bits.copy(), self._owner)
        else:
            made = DenseOutcomes(np.zeros((2, packed.size(self.inputs)), np.uint8), self._owner)
            if row is not None:
                made.add(*row.trials(None))
        self._rows[configuration] = made
        return made


def _refuse(configuration: int, clashes: int) -> None:
    if clashes:
        raise InputError(
            f"outcomes contradict each other: {clashes} inputs passed in one run and failed in the other "
            f"under configuration {configuration}; is the model deterministic?"
        )


@dataclass(frozen=True)
class Trials:
    """Single trials, for surrogates that model shared inputs: the test (a row of the features) and input of each."""

    test: NDArray[np.intp]
    place: NDArray[np.intp]
    passed: Array  # bool, or float for trials that count by a score in 0..1
    inputs: int  # number of inputs
    value: NDArray[np.float32] | None = None  # the oracle's value of each trial, such as a margin; NaN if unknown

    @property
    def graded(self) -> bool:
        """Return True if trials count by a score."""
        return self.passed.dtype.kind == "f"


LEAST = 0.01  # dispersion of scores that are almost equal


class ScoredOutcomes(Outcomes):
    """Outcomes that count by their scores instead of their passes.

    >>> outcomes = Outcomes(10)
    >>> outcomes.record(3, np.array([0, 4]), np.array([True, False]), {"value": np.array([0.75, 0.5], np.float32)})
    >>> ScoredOutcomes.of(outcomes).counts([3, 7])
    (array([1.25, 0.  ]), array([2, 0]))
    """

    @classmethod
    def of(cls, outcomes: Outcomes) -> ScoredOutcomes:
        """Return a snapshot that counts by scores; raise InputError if a trial has none."""
        if isinstance(outcomes, cls):
            return outcomes
        for configuration in outcomes:
            values = outcomes.kept_span(configuration, VALUE, 0, outcomes.inputs)
            wrong = values[~((values >= 0) & (values <= 1))]
            if len(wrong):
                nothing = np.isnan(wrong[0])
                what = "trials of which no score was kept" if nothing else f"a score of {wrong[0]:g}; accepted: 0 to 1"
                raise InputError(f"score: configuration {configuration} has {what}")
        twin = cls(outcomes.inputs)
        twin._share(outcomes)
        return twin

    def snapshot(self) -> ScoredOutcomes:
        twin = ScoredOutcomes(self.inputs)
        twin._share(self)
        return twin

    def plain(self) -> Outcomes:
        twin = Outcomes(self.inputs)
        twin._share(self)
        return twin

    def counts(self, configurations: Ids | list[int], among: Bits | None = None) -> tuple[Array, Ids]:
        found = self.moments(configurations, among)
        return found.total, found.trials.astype(np.int64)

    def moments(self, configurations: Ids | list[int], among: Bits | None = None) -> Moments:
        """Return the moments of each configuration's scores, for intervals."""
        return Moments.joined([Moments.of(self.trials(int(one), among)[1]) for one in configurations])

    def trial_weight(self, configurations: Ids) -> float:
        return 1 / max(self.moments(configurations).dispersion, LEAST)

    def limits(
        self,
        method: Callable[..., Limits],
        configurations: Ids,
        counts: tuple[Array, Ids],
        population: int | None,
        confidence: float,
        among: Bits | None = None,
    ) -> Limits:
        """Return intervals of mean scores, by the method for means that corresponds to one for pass rates."""
        return OF_MEANS[method](self.moments(configurations, among), population, confidence)

    def results(self, configuration: int, places: Places) -> Array:
        return self.kept_at(configuration, VALUE, places).astype(np.float64)

    def trials(self, configuration: int, among: Bits | None = None) -> tuple[Places, Array]:
        places, _ = super().trials(configuration, among)
        return places, self.results(configuration, places)

    def single(self, configurations: Ids, among: Bits | None = None, name: str | None = None) -> Trials:
        return super().single(configurations, among, None)
