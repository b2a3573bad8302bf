"""What became of one configuration: a list of the places tried while they are few, bits over all inputs once many.

Both say the same things in the same words; only the memory differs. A list takes a few bytes an outcome, bits a quarter
of a byte an input.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from testifai.support import bits as packed
from testifai.support.bits import Bits
from testifai.support.types import Array, Bools

Places = NDArray[np.intp]
Flags = Bools
Floats = NDArray[np.float32]
Codes = Array  # the smallest whole numbers that hold them

MANY = 32  # from one in so many inputs on, bits take less room than a list
MANY_VALUES = 8  # and a kept value for every input less than a list of them with their places


class SparseOutcomes:
    """Some places in ascending order, each with its outcome, and what was kept of them. It never changes.

    A place and its outcome are one number, twice the place and one more where it passed.
    """

    __slots__ = ("codes", "values")

    def __init__(self, codes: Codes, values: dict[str, Floats] | None = None) -> None:
        self.codes = codes
        self.values = values or None  # by name, in the order of the places

    @classmethod
    def of(
        cls, places: Places, passed: Flags, kept: Mapping[str, Floats] | None, dtype: np.dtype[np.generic]
    ) -> SparseOutcomes:
        """Outcomes in any order; of a place named twice, a pass counts and the last value."""
        codes = (places.astype(dtype) << 1) | passed
        ordered = _distinct(codes)
        if not kept:
            return cls(ordered)
        if ordered is codes:
            return cls(codes, {name: given.astype(np.float32) for name, given in kept.items()})
        where = _find(ordered, codes)
        return cls(ordered, {name: _spread(len(ordered), [(where, given)]) for name, given in kept.items()})

    def __len__(self) -> int:
        return len(self.codes)

    def total(self) -> int:
        return len(self.codes)

    @property
    def places(self) -> Places:
        return (self.codes >> 1).astype(np.intp)

    @property
    def outcomes(self) -> Flags:
        return (self.codes & 1).astype(bool)

    def joined(self, other: SparseOutcomes) -> SparseOutcomes:
        """These outcomes and the other's."""
        if not len(self) or not len(other):
            return other if len(other) else self
        both = np.concatenate([self.codes, other.codes])
        names = {**(self.values or {}), **(other.values or {})}
        # Outcomes mostly come in order: nothing to sort then.
        if self.codes[-1] >> 1 < other.codes[0] >> 1:
            return SparseOutcomes(both, {name: np.concatenate([self._all(name), other._all(name)]) for name in names})
        order = np.argsort(both, kind="stable")
        codes = _distinct(both[order])
        if len(codes) == len(both):
            return SparseOutcomes(
                codes, {name: np.concatenate([self._all(name), other._all(name)])[order] for name in names}
            )
        values = {}
        for name in names:
            given = [(_find(codes, one.codes), (one.values or {}).get(name)) for one in (self, other)]
            values[name] = _spread(len(codes), given)
        return SparseOutcomes(codes, values)

    def clashes(self, other: SparseOutcomes) -> int:
        """How many inputs passed here and failed there, or the other way round."""
        both = np.sort(np.concatenate([self.codes, other.codes]))
        return int(np.count_nonzero((both[1:] >> 1 == both[:-1] >> 1) & (both[1:] != both[:-1])))

    def counts(self, among: Bits | None) -> tuple[int, int]:
        codes = self.codes if among is None else self.codes[packed.get(among, self.places)]
        return int(np.count_nonzero(codes & 1)), len(codes)

    def attempted(self, places: Places) -> Flags:
        return self._at(places)[0]

    def passed(self, places: Places) -> Flags:
        found, position = self._at(places)
        found[found] = self.codes[position[found]] & 1 == 1
        return found

    def trials(self, among: Bits | None) -> tuple[Places, Flags]:
        places, outcomes = self.places, self.outcomes
        if among is None:
            return places, outcomes
        chosen = packed.get(among, places)
        return places[chosen], outcomes[chosen]

    def span(self, start: int, stop: int) -> tuple[Bits, Bits]:
        """Attempted and passed bits of the places from `start`, a multiple of eight, up to `stop`."""
        codes = self.codes[self._within(start, stop)]
        places = (codes >> 1).astype(np.intp) - start
        attempted, passed = np.zeros((2, packed.size(stop - start)), np.uint8)
        packed.put(attempted, places)
        packed.put(passed, places, codes & 1 == 1)
        return attempted, passed

    def kept(self, name: str, start: int, stop: int) -> Floats:
        """What was kept of those tried among the places from `start` up to `stop`."""
        return self._all(name)[self._within(start, stop)]

    def _all(self, name: str) -> Floats:
        """What was kept of each place."""
        own = (self.values or {}).get(name)
        return np.full(len(self), np.nan, np.float32) if own is None else own

    def kept_at(self, name: str, places: Places) -> Floats:
        """What was kept of these places, NaN where nothing was."""
        values = np.full(len(places), np.nan, np.float32)
        own = (self.values or {}).get(name)
        if own is not None:
            tried, position = self._at(places)
            values[tried] = own[position[tried]]
        return values

    def _within(self, start: int, stop: int) -> slice:
        # Not beyond what the codes can say: `stop` may be the number of inputs.
        low, high = np.searchsorted(self.codes, np.array([2 * start, 2 * stop], self.codes.dtype))
        return slice(int(low), int(high))

    def _at(self, places: Places) -> tuple[Flags, Places]:
        """Which of these places were tried, and where each of those stands in the list."""
        wanted = places.astype(self.codes.dtype)
        position = np.searchsorted(self.codes, wanted << 1)
        if not len(self.codes):
            return np.zeros(len(places), bool), position
        return self.codes[np.minimum(position, len(self.codes) - 1)] >> 1 == wanted, position


class DenseOutcomes:
    """Attempted and passed bits of all inputs, and a value of each where any is kept. Only its owner may change it."""

    __slots__ = ("bits", "owner", "values")

    def __init__(self, bits: Bits, values: dict[str, Floats] | None, owner: object) -> None:
        self.bits = bits  # a row of attempted, a row of passed
        self.values = values
        self.owner = owner

    @classmethod
    def of(cls, few: SparseOutcomes | None, inputs: int, owner: object) -> DenseOutcomes:
        """The same outcomes as bits."""
        made = cls(np.zeros((2, packed.size(inputs)), np.uint8), None, owner)
        if few is not None:
            made.add(few.places, few.outcomes, few.values, inputs)
        return made

    def copy(self, owner: object) -> DenseOutcomes:
        values = {name: one.copy() for name, one in self.values.items()} if self.values else None
        return DenseOutcomes(self.bits.copy(), values, owner)

    def add(self, places: Places, passed: Flags, kept: Mapping[str, Floats] | None, inputs: int) -> None:
        """Take in outcomes."""
        if kept:
            for name, given in kept.items():
                self.keep(name, places, given, inputs)
        attempted, won = self.bits
        packed.put(won, places, passed)
        # Last: an interrupt in between must not leave a trial without its outcome.
        packed.put(attempted, places)

    def keep(self, name: str, places: Places, given: Floats, inputs: int) -> None:
        """Keep a value of each of these places."""
        self.values = self.values or {}
        if name not in self.values:
            self.values[name] = np.full(inputs, np.nan, np.float32)
        self.values[name][places] = given

    def total(self) -> int:
        return int(packed.count_set(self.bits[0]))

    def counts(self, among: Bits | None) -> tuple[int, int]:
        trials, passes = packed.count_set(self.bits if among is None else self.bits & among)
        return int(passes), int(trials)

    def attempted(self, places: Places) -> Flags:
        return packed.get(self.bits[0], places)

    def passed(self, places: Places) -> Flags:
        return packed.get(self.bits[1], places)

    def trials(self, among: Bits | None) -> tuple[Places, Flags]:
        attempted = self.bits[0] if among is None else self.bits[0] & among
        places = packed.places_of(attempted, 8 * len(attempted))
        return places, packed.get(self.bits[1], places)

    def span(self, start: int, stop: int) -> tuple[Bits, Bits]:
        """Attempted and passed bits of the places from `start`, a multiple of eight, up to `stop`."""
        attempted, passed = self.bits[:, start // 8 : packed.size(stop)]
        return attempted, passed

    def kept(self, name: str, start: int, stop: int) -> Floats:
        """What was kept of those tried among the places from `start` up to `stop`."""
        tried = packed.unpack(self.span(start, stop)[0], stop - start)
        own = (self.values or {}).get(name)
        return np.full(int(tried.sum()), np.nan, np.float32) if own is None else own[start:stop][tried]


Row = SparseOutcomes | DenseOutcomes


def _distinct(codes: Codes) -> Codes:
    """In ascending order, one for each place; a pass outweighs a failure, as it does among bits."""
    if len(codes) < 2:
        return codes
    places = codes >> 1
    if (places[1:] > places[:-1]).all():
        return codes
    codes = np.sort(codes)
    places = codes >> 1
    last = np.append(places[1:] != places[:-1], True)
    return codes if last.all() else codes[last]


def _find(codes: Codes, of: Codes) -> Places:
    """Where the places of some codes stand, all of which are among these."""
    return np.searchsorted(codes >> 1, of >> 1)


def _spread(size: int, given: list[tuple[Places, Floats | None]]) -> Floats:
    """Values put where they belong, the later over the earlier; NaN where there is none."""
    values = np.full(size, np.nan, np.float32)
    for where, some in given:
        if some is not None:
            values[where] = some
    return values
