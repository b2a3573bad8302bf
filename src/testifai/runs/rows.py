"""Outcomes, values and boxes of one configuration's trials.

Outcomes are a list of the tried places while those are few, and bits of all inputs once they are many: a list takes a
few bytes per outcome, bits take a quarter of a byte per input. Values are stored likewise.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from testifai.data.annotations import CLASS, COLUMNS, NONE, Boxes
from testifai.support import bits as packed
from testifai.support.bits import Bits
from testifai.support.types import Array, Bools

Places = NDArray[np.intp]
Floats = NDArray[np.float32]
Codes = Array  # unsigned integers of the smallest type that is large enough
Stored: TypeAlias = NDArray[np.float32]  # a row for each box: its place after the first of a block, and the box

MANY = 32  # bits are smaller than a list from one in this many inputs on
MANY_VALUES = 8  # and a value for every input is smaller than a list of places and values


class SparseOutcomes:
    """Some places in ascending order, each with its outcome; immutable.

    A place and its outcome are one code: twice the place, plus one if it passed.
    """

    __slots__ = ("codes",)

    def __init__(self, codes: Codes) -> None:
        self.codes = codes

    @classmethod
    def of(cls, places: Places, passed: Bools, dtype: np.dtype[np.generic]) -> SparseOutcomes:
        """Make it from outcomes in any order; if a place occurs twice, a pass counts."""
        return cls(_distinct((places.astype(dtype) << 1) | passed))

    def __len__(self) -> int:
        return len(self.codes)

    total = __len__

    def joined(self, other: SparseOutcomes) -> SparseOutcomes:
        return SparseOutcomes(_distinct(np.concatenate([self.codes, other.codes])))

    def counts(self, among: Bits | None) -> tuple[int, int]:
        _, passed = self.trials(among)
        return int(np.count_nonzero(passed)), len(passed)

    def attempted(self, places: Places) -> Bools:
        return self._at(places)[0]

    def passed(self, places: Places) -> Bools:
        found, position = self._at(places)
        found[found] = self.codes[position[found]] & 1 == 1
        return found

    def trials(self, among: Bits | None) -> tuple[Places, Bools]:
        places, outcomes = (self.codes >> 1).astype(np.intp), (self.codes & 1).astype(bool)
        if among is None:
            return places, outcomes
        chosen = packed.get(among, places)
        return places[chosen], outcomes[chosen]

    def span(self, start: int, stop: int) -> tuple[Bits, Bits]:
        """Return attempted and passed bits of the places from `start`, a multiple of eight, up to `stop`."""
        codes = self._within(start, stop)
        places = (codes >> 1).astype(np.intp) - start
        attempted, passed = np.zeros((2, packed.size(stop - start)), np.uint8)
        packed.put(attempted, places)
        packed.put(passed, places, codes & 1 == 1)
        return attempted, passed

    def tried(self, start: int, stop: int) -> Places:
        """Return the tried places from `start` up to `stop`."""
        return (self._within(start, stop) >> 1).astype(np.intp)

    def _within(self, start: int, stop: int) -> Codes:
        # The limits must fit the type of the codes: `stop` may be the number of inputs.
        low, high = np.searchsorted(self.codes, np.array([2 * start, 2 * stop], self.codes.dtype))
        return self.codes[low:high]

    def _at(self, places: Places) -> tuple[Bools, Places]:
        """Return which of these places were tried, and their positions in the list."""
        wanted = places.astype(self.codes.dtype)
        position = np.searchsorted(self.codes, wanted << 1)
        if not len(self.codes):
            return np.zeros(len(places), bool), position
        return self.codes[np.minimum(position, len(self.codes) - 1)] >> 1 == wanted, position


class DenseOutcomes:
    """Attempted and passed bits of all inputs. Only its owner may change it."""

    __slots__ = ("bits", "owner")

    def __init__(self, bits: Bits, owner: object) -> None:
        self.bits = bits  # a row of attempted, a row of passed
        self.owner = owner

    def add(self, places: Places, passed: Bools) -> None:
        attempted, won = self.bits
        packed.put(won, places, passed)
        # Last, so that no interrupt leaves a trial without its outcome.
        packed.put(attempted, places)

    def total(self) -> int:
        return int(packed.count_set(self.bits[0]))

    def counts(self, among: Bits | None) -> tuple[int, int]:
        trials, passes = packed.count_set(self.bits if among is None else self.bits & among)
        return int(passes), int(trials)

    def attempted(self, places: Places) -> Bools:
        return packed.get(self.bits[0], places)

    def passed(self, places: Places) -> Bools:
        return packed.get(self.bits[1], places)

    def trials(self, among: Bits | None) -> tuple[Places, Bools]:
        attempted = self.bits[0] if among is None else self.bits[0] & among
        places = packed.places_of(attempted, 8 * len(attempted))
        return places, packed.get(self.bits[1], places)

    def span(self, start: int, stop: int) -> tuple[Bits, Bits]:
        """Return attempted and passed bits of the places from `start`, a multiple of eight, up to `stop`."""
        attempted, passed = self.bits[:, start // 8 : packed.size(stop)]
        return attempted, passed

    def tried(self, start: int, stop: int) -> Places:
        """Return the tried places from `start`, a multiple of eight, up to `stop`."""
        return start + packed.places_of(self.span(start, stop)[0], stop - start)


Row = SparseOutcomes | DenseOutcomes


def _distinct(codes: Codes) -> Codes:
    """Sort codes, one for each place; a pass outweighs a failure, as it does among bits."""
    places = codes >> 1
    if (places[1:] > places[:-1]).all():
        return codes
    codes = np.sort(codes)
    places = codes >> 1
    distinct: Codes = codes[np.append(places[1:] != places[:-1], True)]
    return distinct


class Values:
    """A number for each of some places. Only its owner may change it."""

    __slots__ = ("owner", "places", "values")

    def __init__(self, owner: object) -> None:
        self.owner = owner
        self.places: NDArray[np.int32] | None = np.zeros(0, np.int32)  # ascending; None: values of all inputs
        self.values: Floats = np.zeros(0, np.float32)

    def copy(self, owner: object) -> Values:
        made = Values(owner)
        made.places, made.values = self.places, self.values.copy()
        return made

    def put(self, places: Places, given: Floats, inputs: int) -> None:
        """Set the values of these places; of a place that occurs twice, the last one counts."""
        if self.places is not None and len(self.places) + len(places) <= inputs // MANY_VALUES:
            joined, values = np.append(self.places, places.astype(np.int32)), np.append(self.values, given)
            order = np.argsort(joined, kind="stable")
            joined = joined[order]
            last = np.append(joined[1:] != joined[:-1], True)[: len(joined)]
            self.places, self.values = joined[last], values[order][last].astype(np.float32)
            return
        if self.places is not None:
            values = np.full(inputs, np.nan, np.float32)
            values[self.places] = self.values
            self.places, self.values = None, values
        self.values[places] = given

    def at(self, places: Places) -> Floats:
        """Return the values of these places, NaN if they have none."""
        if self.places is None:
            return self.values[places]
        found = np.full(len(places), np.nan, np.float32)
        if len(self.places):
            position = np.minimum(np.searchsorted(self.places, places), len(self.places) - 1)
            known = self.places[position] == places
            found[known] = self.values[position[known]]
        return found


class BoxRecords:
    """The boxes of one configuration's trials, by place."""

    __slots__ = ("_parts", "_sorted")

    def __init__(self, parts: list[tuple[Places, Boxes]] | None = None) -> None:
        self._parts = parts or []  # the place of each box, and the boxes
        self._sorted = False  # whether there is one part, with its places in order

    def copy(self) -> BoxRecords:
        return BoxRecords(list(self._parts))

    def add(self, places: Places, packed: Boxes) -> None:
        """Add the boxes of these places, an array (places, rows, 6) as of `data.annotations.pack`."""
        row, column = np.nonzero(packed[..., CLASS] != NONE)
        self._parts.append((places[row], packed[row, column].astype(np.float32)))

    def among(self, wanted: Bools) -> BoxRecords:
        """Return the boxes of those places whose flag is set."""
        places, boxes = self._all()
        return BoxRecords([(places[wanted[places]], boxes[wanted[places]])])

    def join(self, other: BoxRecords) -> None:
        """Add boxes of other places."""
        self._parts += other._parts

    def at(self, places: Places) -> list[Boxes]:
        """Return the boxes of each of these places."""
        own, boxes = self._all()
        first, last = np.searchsorted(own, places, "left"), np.searchsorted(own, places, "right")
        return [boxes[start:stop] for start, stop in zip(first.tolist(), last.tolist(), strict=True)]

    def span(self, start: int, stop: int) -> Stored:
        """Return the boxes of the places from `start` up to `stop` in the form of a run file."""
        places, boxes = self._all()
        part = slice(*np.searchsorted(places, [start, stop]).tolist())
        return np.column_stack([places[part] - start, boxes[part]]).astype(np.float32)

    def load(self, start: int, stored: Stored) -> None:
        """Add what `span` returned for this start."""
        self._parts.append((stored[:, 0].astype(np.intp) + start, np.ascontiguousarray(stored[:, 1:])))

    def _all(self) -> tuple[Places, Boxes]:
        """Return the places of all boxes, ascending, and the boxes, stable within a place."""
        if len(self._parts) != 1 or not self._sorted:
            none = (np.zeros(0, np.intp), np.zeros((0, COLUMNS), np.float32))
            places, boxes = (np.concatenate(column) for column in zip(none, *self._parts, strict=True))
            order = np.argsort(places, kind="stable")
            self._parts, self._sorted = [(places[order], boxes[order])], True
        return self._parts[0]


def is_stored(array: Array, places: int) -> bool:
    """Return True if an array may come from `BoxRecords.span` of this many places."""
    if array.ndim != 2 or array.shape[1] != 1 + COLUMNS or array.dtype != np.float32 or not np.isfinite(array).all():
        return False
    return bool(((array[:, 0] >= 0) & (array[:, 0] < places) & (array[:, CLASS + 1] >= 0)).all())
