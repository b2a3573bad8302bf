"""What has been measured: per configuration, which inputs were tried and which passed.

Inputs are numbered by their place in the run's one seeded order, so any prefix of the places is a random sample.
Outcomes merge associatively; nothing here depends on which strategy made them, in what order, or on whose machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testifai.data.annotations import Boxes
from testifai.errors import InputError
from testifai.runs.encoding import BoxRecords, Stored
from testifai.runs.rows import MANY, MANY_VALUES, DenseOutcomes, Row, SparseOutcomes
from testifai.statistics.means import OF_MEANS, Limits, Moments
from testifai.support import bits as packed
from testifai.support.bits import Bits
from testifai.support.types import Array, Bools, Floats

Ids = NDArray[np.int64]
Places = NDArray[np.intp]


def visiting_order(inputs: int, seed: int) -> NDArray[np.intp]:
    """The run's one random order: place -> input. Data often come sorted by class, so order is never the file's."""
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
        self._boxes: dict[tuple[str, int], BoxRecords] = {}  # by what they are and configuration
        self._codes = np.min_scalar_type(2 * inputs + 1)
        # Who may change a row of bits in place: those of a snapshot's other half are copied first.
        self._owner = object()

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
        passed: Bools,
        kept: dict[str, NDArray[np.float32]] | None = None,
    ) -> None:
        """Add the outcomes of one configuration on some inputs; what is kept is a number of each, or its boxes."""
        if kept:
            for name in [name for name, values in kept.items() if values.ndim > 1]:
                self._listed(name, configuration).add(places, kept[name])
            kept = {name: values for name, values in kept.items() if values.ndim == 1}
            self._names.update(kept)
        row = self._rows.get(configuration)
        if isinstance(row, DenseOutcomes):
            own = row if row.owner is self._owner else self._many(configuration)
            own.add(places, passed, kept, self.inputs)
        elif self._are_many(row, len(places), bool(kept)):
            self._many(configuration).add(places, passed, kept, self.inputs)
        else:
            few = SparseOutcomes.of(places, passed, kept, self._codes)
            self._rows[configuration] = few if row is None else row.joined(few)

    def snapshot(self) -> Outcomes:
        """What is known now, whatever is recorded here later; arrays are shared until they change.

        >>> outcomes = Outcomes(3)
        >>> before = outcomes.snapshot()
        >>> outcomes.record(0, np.array([1]), np.array([True]))
        >>> before.total(), outcomes.total()
        (0, 1)
        """
        twin = Outcomes(self.inputs)
        twin._share(self)
        return twin

    def plain(self) -> Outcomes:
        """Whether trials passed, whatever else they count for."""
        return self

    def _share(self, other: Outcomes) -> None:
        """Take what another knows now."""
        self._rows, self._names = dict(other._rows), set(other._names)
        self._boxes = {key: listed.copy() for key, listed in other._boxes.items()}
        other._owner = object()

    def attempted(self, configuration: int, places: Places) -> Bools:
        """Which of these inputs were tried under the configuration."""
        row = self._rows.get(configuration)
        return np.zeros(len(places), bool) if row is None else row.attempted(places)

    def passed(self, configuration: int, places: Places) -> Bools:
        """Which of these inputs passed under the configuration."""
        row = self._rows.get(configuration)
        return np.zeros(len(places), bool) if row is None else row.passed(places)

    def results(self, configuration: int, places: Places) -> Array:
        """What each of these inputs counts for under the configuration: whether it passed."""
        return self.passed(configuration, places)

    def bits(self, configuration: int) -> tuple[Bits, Bits]:
        """Attempted and passed bits of a configuration, eight inputs a byte, first input highest; only to look at."""
        return self._rows[configuration].span(0, self.inputs)

    def span(self, configuration: int, start: int, stop: int) -> tuple[Bits, Bits]:
        """Its bits of the places from `start`, a multiple of eight, up to `stop`."""
        return self._rows[configuration].span(start, min(stop, self.inputs))

    def load(self, configuration: int, start: int, attempted: Bits, passed: Bits) -> None:
        """Merge packed bits that begin at place `start` (a multiple of eight); refuse a contradiction."""
        row = self._rows.get(configuration)
        if isinstance(row, DenseOutcomes) or self._are_many(row, int(packed.count_set(attempted)), False):
            own = self._many(configuration).bits[:, start // 8 : start // 8 + len(attempted)]
            clashes = int(packed.count_set(own[0] & attempted & (own[1] ^ passed)))
            _refuse(configuration, clashes)
            own[0] |= attempted
            own[1] |= passed
            return
        tried = packed.places_of(attempted, 8 * len(attempted))
        self._join(configuration, row, SparseOutcomes.of(tried + start, packed.get(passed, tried), None, self._codes))

    def load_kept(self, configuration: int, name: str, places: Places, values: NDArray[np.float32]) -> None:
        """Keep a value of each of these places; of those that were tried it says something."""
        self._names.add(name)
        tried = self.attempted(configuration, places)
        places, values = places[tried], values[tried]
        row = self._rows.get(configuration)
        if isinstance(row, DenseOutcomes):
            self._many(configuration).keep(name, places, values, self.inputs)
        elif row is not None:
            few = SparseOutcomes.of(places, row.passed(places), {name: values}, self._codes)
            self._rows[configuration] = row.joined(few)

    def kept(self, configuration: int, name: str) -> NDArray[np.float32]:
        """One value per input that was asked to be kept, NaN where there is none; only to look at."""
        row = self._rows.get(configuration)
        if isinstance(row, DenseOutcomes) and row.values and name in row.values:
            return row.values[name]
        values = np.full(self.inputs, np.nan, np.float32)
        if isinstance(row, SparseOutcomes):
            values[row.places] = row.kept(name, 0, self.inputs)
        return values

    def kept_at(self, configuration: int, name: str, places: Places) -> NDArray[np.float32]:
        """The values kept of these inputs, NaN where there is none."""
        row = self._rows.get(configuration)
        if isinstance(row, SparseOutcomes):
            return row.kept_at(name, places)
        return self.kept(configuration, name)[places]

    def kept_span(self, configuration: int, name: str, start: int, stop: int) -> NDArray[np.float32]:
        """The values kept of those inputs tried among the places from `start`, a multiple of eight, up to `stop`."""
        return self._rows[configuration].kept(name, start, min(stop, self.inputs))

    def kept_names(self) -> tuple[str, ...]:
        """The kinds of value this run keeps."""
        return tuple(sorted(self._names))

    def boxes(self, name: str, configuration: int, places: Places) -> list[Boxes]:
        """The boxes kept of each of these inputs under the configuration: those found, or those expected."""
        listed = self._boxes.get((name, configuration))
        return BoxRecords().at(places) if listed is None else listed.at(places)

    def boxes_names(self) -> tuple[str, ...]:
        """The kinds of boxes this run keeps."""
        return tuple(sorted({name for name, _ in self._boxes}))

    def boxes_span(self, name: str, configuration: int, start: int, stop: int) -> Stored:
        """Boxes of those inputs tried among the places from `start` up to `stop`, to be stored."""
        stored = self._listed(name, configuration).span(start, stop)
        return stored[self.attempted(configuration, start + stored[:, 0].astype(np.intp))]

    def load_boxes(self, name: str, configuration: int, start: int, stored: Stored) -> None:
        """Take in boxes that were stored of the places from `start` on."""
        self._listed(name, configuration).load(start, stored)

    def counts(self, configurations: Ids | list[int], among: Bits | None = None) -> tuple[Array, Ids]:
        """Passes and trials per configuration, of all inputs or of those whose bit is set in `among`."""
        ids = [int(i) for i in configurations]
        passes, trials = np.zeros(len(ids), np.int64), np.zeros(len(ids), np.int64)
        for place, configuration in enumerate(ids):
            row = self._rows.get(configuration)
            if row is not None:
                passes[place], trials[place] = row.counts(among)
        return passes, trials

    def trial_weight(self, configurations: Ids) -> float:
        """How many passes and failures a trial of these is worth: it is one."""
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
        """Limits of each configuration's rate from its own trials, whose counts these are, by a method of intervals."""
        return method(*counts, population, confidence)

    def trials(self, configuration: int, among: Bits | None = None) -> tuple[Places, Array]:
        """The places tried under a configuration, ascending, and which of them passed."""
        row = self._rows.get(configuration)
        return (np.zeros(0, np.intp), np.zeros(0, bool)) if row is None else row.trials(among)

    def single(self, configurations: Ids, among: Bits | None = None, name: str | None = None) -> Trials:
        """Every outcome of these configurations by itself, with the value kept under a name where there is one.

        Inputs are numbered among those looked at.
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
        """Outcomes recorded so far; one inference each."""
        return sum(row.total() for row in self._rows.values())

    def merge(self, other: Outcomes) -> None:
        """Take in the other's outcomes."""
        if other.inputs != self.inputs:
            raise InputError(f"runs of {self.inputs} and {other.inputs} inputs cannot be merged")
        for (name, configuration), listed in other._boxes.items():
            new = ~self.attempted(configuration, np.arange(self.inputs))
            self._listed(name, configuration).join(listed.among(new))
        for configuration, row in other._rows.items():
            own = self._rows.get(configuration)
            if (
                isinstance(row, SparseOutcomes)
                and not isinstance(own, DenseOutcomes)
                and not self._are_many(own, len(row), False)
            ):
                self._join(configuration, own, SparseOutcomes(row.codes))
            else:
                self.load(configuration, 0, *row.span(0, self.inputs))
            tried, _ = row.trials(None)
            for name in other.kept_names():
                theirs = row.kept(name, 0, self.inputs)
                known = ~np.isnan(theirs)
                self.load_kept(configuration, name, tried[known], theirs[known])

    def _listed(self, name: str, configuration: int) -> BoxRecords:
        return self._boxes.setdefault((name, configuration), BoxRecords())

    def _join(self, configuration: int, row: SparseOutcomes | None, few: SparseOutcomes) -> None:
        """Add a few outcomes to few; refuse a contradiction."""
        if row is not None:
            _refuse(configuration, row.clashes(few))
        self._rows[configuration] = few if row is None else row.joined(few)

    def _are_many(self, row: SparseOutcomes | None, more: int, kept: bool) -> bool:
        """Whether a row is better off as bits once it holds so many more."""
        has_values = kept or (row is not None and row.values is not None)
        return (0 if row is None else len(row)) + more > self.inputs // (MANY_VALUES if has_values else MANY)

    def _many(self, configuration: int) -> DenseOutcomes:
        """The bits of a configuration, to be changed."""
        row = self._rows.get(configuration)
        if isinstance(row, DenseOutcomes):
            if row.owner is not self._owner:
                row = self._rows[configuration] = row.copy(self._owner)
            return row
        made = self._rows[configuration] = DenseOutcomes.of(row, self.inputs, self._owner)
        return made


def _refuse(configuration: int, clashes: int) -> None:
    if clashes:
        raise InputError(
            f"outcomes contradict each other: {clashes} inputs passed in one run and failed in the other "
            f"under configuration {configuration}; is the model deterministic?"
        )


@dataclass(frozen=True)
class Trials:
    """Single outcomes, for surrogates that know that tests share inputs.

    Trial m ran the test in row `test[m]` of the features on the input at `place[m]`, from 0 to `inputs` - 1.
    """

    test: NDArray[np.intp]
    place: NDArray[np.intp]
    passed: Array  # bool, or float for trials that count by a score in 0..1
    inputs: int  # how many inputs there are
    value: NDArray[np.float32] | None = None  # the oracle's value of each trial, such as a margin; NaN where unknown

    @property
    def graded(self) -> bool:
        """Whether trials count by a score and not by whether they passed."""
        return self.passed.dtype.kind == "f"


LEAST = 0.01  # dispersion of scores that are all but equal
VALUE = "value"  # the name under which a run keeps what the oracle measured of a trial: its score, or its margin


class ScoredOutcomes(Outcomes):
    """The same trials, whose scores add up where passes did.

    >>> outcomes = Outcomes(10)
    >>> outcomes.record(3, np.array([0, 4]), np.array([True, False]), {"value": np.array([0.75, 0.5], np.float32)})
    >>> ScoredOutcomes.of(outcomes).counts([3, 7])
    (array([1.25, 0.  ]), array([2, 0]))
    """

    @classmethod
    def of(cls, outcomes: Outcomes) -> ScoredOutcomes:
        """The scores of outcomes as they are now; refused where a trial has none."""
        if isinstance(outcomes, cls):
            return outcomes
        for configuration in outcomes:
            _reject(outcomes.kept_span(configuration, VALUE, 0, outcomes.inputs), configuration)
        twin = cls(outcomes.inputs)
        twin._share(outcomes)
        return twin

    def snapshot(self) -> ScoredOutcomes:
        twin = ScoredOutcomes(self.inputs)
        twin._share(self)
        return twin

    def plain(self) -> Outcomes:
        """Whether trials passed."""
        twin = Outcomes(self.inputs)
        twin._share(self)
        return twin

    def counts(self, configurations: Ids | list[int], among: Bits | None = None) -> tuple[Array, Ids]:
        """The sum of the scores and the trials of each configuration."""
        found = self.moments(configurations, among)
        return found.total, found.trials.astype(np.int64)

    def moments(self, configurations: Ids | list[int], among: Bits | None = None) -> Moments:
        """What intervals want to know of the scores of each configuration."""
        return Moments.joined([Moments.of(self.trials(int(one), among)[1]) for one in configurations])

    def trial_weight(self, configurations: Ids) -> float:
        """How many passes and failures a trial of these is worth."""
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
        """Those of the mean scores, by the method for means that does what this one does for pass rates."""
        return OF_MEANS[method](self.moments(configurations, among), population, confidence)

    def results(self, configuration: int, places: Places) -> Array:
        """The score of each of these inputs."""
        return self.kept_at(configuration, VALUE, places).astype(np.float64)

    def trials(self, configuration: int, among: Bits | None = None) -> tuple[Places, Array]:
        """The places tried under a configuration, ascending, and their scores."""
        places, _ = super().trials(configuration, among)
        return places, self.results(configuration, places)

    def single(self, configurations: Ids, among: Bits | None = None, name: str | None = None) -> Trials:
        """Every score of these configurations by itself; there are no values beside them."""
        return super().single(configurations, among, None)


def _reject(values: NDArray[np.float32], configuration: int) -> None:
    """Refuse what is no score."""
    fits = (values >= 0) & (values <= 1)
    if not fits.all():
        wrong = values[~fits][0]
        what = "trials of which no score was kept" if np.isnan(wrong) else f"a score of {wrong:g}; accepted: 0 to 1"
        raise InputError(f"score: configuration {configuration} has {what}")
