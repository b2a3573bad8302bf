"""The space of configurations: axes, orders, ids, and enumeration that never lists the whole product."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from testifai.errors import InputError, suggest
from testifai.perturb import main_names, names
from testifai.space.axes import Axis, described, is_whole, parameters_of, read_axis
from testifai.space.numbering import Ints, Numbering, Whole, first_ranks, mixed_radix, rank_places, unrank_places
from testifai.space.query import Lazy, before
from testifai.support.serialization import plain
from testifai.support.types import Array, Bools, Record, RecordLike

ENUMERABLE = 50_000_000
LISTED = 200_000  # tests up to which a result has an estimate of each; beyond, it answers from samples
CHUNK = 1_000  # configurations that are generated together


class Space:
    """The product of the axes; a configuration is a tuple of severities in axis order.

    In an order-sensitive space it is followed by one place per axis: 0 where the axis is off, else 1..t, the
    position at which it is applied; severities alone then mean "applied in axis order".

    Args:
        axes: by name: a perturbation (its name or itself), (perturbation, severities) or a table with 'use'
        order_sensitive: whether every order of application is a separate test
        max_order: largest number of combined perturbations; None: the number of axes

    >>> from testifai.perturb import Perturbation
    >>> fade = Perturbation("fade", lambda batch, parameter, rng: batch * parameter, (1.0, 0.8, 0.6))
    >>> space = Space({"fade": fade, "dim": (fade, {"low": 1})})
    >>> space.shape, space.size, list(space.configurations(max_order=1))
    ((3, 2), 6, [(0, 0), (1, 0), (2, 0), (0, 1)])
    >>> space.id((2, 1)), space.configuration(5), space.order((2, 1))
    (5, (2, 1), 2)
    >>> space["dim"]
    <Axis dim: fade [0, 1]>
    """

    def __init__(self, axes: RecordLike, *, order_sensitive: bool = False, max_order: int | None = None) -> None:
        if not isinstance(axes, Mapping) or not axes:
            raise InputError(f"space: {axes!r} has no axes; accepted: at least one, axis name -> perturbation")
        self.axes = tuple(read_axis(name, given, axes) for name, given in axes.items())
        self.names = tuple(axis.name for axis in self.axes)
        self.order_sensitive = bool(order_sensitive)
        if max_order is not None and (not is_whole(max_order) or max_order < 1):
            accepted = f"a whole number from 1 to {len(self.axes)}, or none for all"
            raise InputError(f"space: max_order = {plain(max_order)!r}; accepted: {accepted}")
        capped = max_order is not None and max_order < len(self.axes)
        self._max_order = int(max_order) if capped and max_order is not None else None

    @classmethod
    def suite(
        cls, name: str, *, max_order: int | None = 1, extra: bool = False, order_sensitive: bool = False
    ) -> Space:
        """Return the space of all perturbations of a suite, an axis each, with up to `max_order` combined.

        Args:
            name: of a suite, such as "imagenet_c"
            max_order: largest number of combined perturbations; None: the number of axes
            extra: also those that the suite's paper reserves for tuning
            order_sensitive: whether every order of application is a separate test

        >>> space = Space.suite("imagenet_c")
        >>> len(space.axes), space.size, Space.suite("imagenet_c", extra=True).size
        (15, 76, 96)
        """
        chosen = names(name) if extra else main_names(name)
        axes = {one.partition(".")[2]: one for one in chosen}
        return cls(axes, order_sensitive=order_sensitive, max_order=max_order)

    @property
    def max_order(self) -> int:
        """Largest number of perturbations that are combined."""
        return len(self.axes) if self._max_order is None else self._max_order

    @property
    def ranked(self) -> bool:
        """Whether tests are numbered by order because they are not a full grid."""
        return self.order_sensitive or self._max_order is not None

    @property
    def levels(self) -> dict[str, dict[str, int]]:
        """Names of the levels of each axis, including `off`, for queries."""
        return {axis.name: {"off": 0, **axis.levels} for axis in self.axes}

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of arrays over the space: levels per axis, or flat if the tests are not a full grid."""
        return (self.size,) if self.ranked else tuple(len(axis.severities) for axis in self.axes)

    @property
    def width(self) -> int:
        return len(self.axes) * (2 if self.order_sensitive else 1)

    @functools.cached_property
    def size(self) -> int:
        """Number of tests, exact for any size."""
        return sum(self._counts)

    @property
    def listed(self) -> bool:
        """Whether there are few enough tests for an array over all of them; else use `Selection`."""
        return self.size <= LISTED

    def __len__(self) -> int:
        return self.size

    def __bool__(self) -> bool:
        return True  # len() of a very large space overflows

    def __getitem__(self, name: str) -> Axis:
        if name not in self.names:
            raise InputError(f"axis: {name!r} is not an axis of this space; {suggest(name, self.names)}")
        return self.axes[self.names.index(name)]

    __iter__ = None  # neither its tests, which may be very many, nor its axes

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.names)

    def __eq__(self, other: object) -> bool:
        return self.describe() == other.describe() if isinstance(other, Space) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.order_sensitive, self._max_order, *((axis.name, axis.severities) for axis in self.axes)))

    def __repr__(self) -> str:
        axes = ", ".join(f"{axis.name}: {axis.perturbation.name} {list(axis.severities)}" for axis in self.axes)
        cap = f"; at most {self.max_order} at once" if self._max_order is not None else ""
        return f"Space({axes}{'; order-sensitive' if self.order_sensitive else ''}{cap})"

    def canonical(self, sigma: Sequence[int]) -> tuple[int, ...]:
        """Return the configuration in full, as Python integers; InputError if it is not one of this space.

        Args:
            sigma: a configuration: severities in axis order, then places where the order of application counts
        """
        values = [plain(value) for value in sigma] if isinstance(sigma, Iterable) else [sigma]
        k = len(self.axes)
        if len(values) not in {k, self.width}:
            accepted = f"{k} severities" + (f", or {k} severities and {k} places" * self.order_sensitive)
            raise InputError(f"sigma: {tuple(values)} has {len(values)} entries; accepted: {accepted}")
        for axis, value in zip(self.axes, values, strict=False):
            if not is_whole(value) or value not in axis.severities:
                accepted = ", ".join(map(str, axis.severities))
                raise InputError(f"sigma: {axis.name} = {value!r} is not a severity; accepted: {accepted}")
        severities = tuple(map(int, values[:k]))
        if (order := k - severities.count(0)) > self.max_order:
            raise InputError(f"sigma: {severities} has {order} axes on; accepted in this space: up to {self.max_order}")
        if not self.order_sensitive:
            return severities
        counter = itertools.count(1)
        places = values[k:] or [next(counter) if severity else 0 for severity in severities]
        unused = set(range(1, 1 + k - severities.count(0)))
        for axis, severity, place in zip(self.axes, severities, places, strict=True):
            if not is_whole(place) or place not in (unused if severity else {0}):
                left = ", ".join(map(str, sorted(unused))) if severity else "0, as the axis is off"
                raise InputError(f"sigma: place of {axis.name} = {place!r}; accepted: {left}")
            unused.discard(place)
        return (*severities, *map(int, places))

    def order(self, sigma: Sequence[int]) -> int:
        """Return the number of axes that are not off.

        Args:
            sigma: a configuration: severities in axis order, then places where the order of application counts
        """
        return len(self.steps(sigma))

    def steps(self, sigma: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """Return what to apply, in order of application: (axis position, severity), without axes that are off.

        Args:
            sigma: a configuration: severities in axis order, then places where the order of application counts
        """
        return self._steps(self.canonical(sigma))

    def _steps(self, full: Sequence[int]) -> tuple[tuple[int, int], ...]:
        k = len(self.axes)
        active = [j for j in range(k) if full[j]]
        if self.order_sensitive:
            active.sort(key=lambda j: full[k + j])
        return tuple((j, full[j]) for j in active)

    def index(self, sigma: Sequence[int]) -> tuple[int, ...]:
        """Return the configuration's position in an array of `shape`.

        Args:
            sigma: a configuration: severities in axis order, then places where the order of application counts
        """
        if self.ranked:
            return (self.id(sigma),)
        full = self.canonical(sigma)
        return tuple(axis.severities.index(s) for axis, s in zip(self.axes, full, strict=True))

    def id(self, sigma: Sequence[int]) -> int:
        """Return the configuration's number: its flat position in an array of `shape`; 0 is the clean one.

        Args:
            sigma: a configuration: severities in axis order, then places where the order of application counts
        """
        return int(self._flat(np.array([self.canonical(sigma)], dtype=np.int64))[0])

    def configuration(self, id: int) -> tuple[int, ...]:  # noqa: A002 - the word for it
        """Return the configuration with this number.

        Args:
            id: a number of `id`
        """
        if not is_whole(id) or not 0 <= id < self.size:
            raise InputError(f"id: {plain(id)!r} is not a test of this space; accepted: 0 to {self.size - 1}")
        return tuple(self._unflat(np.array([int(id)], dtype=self._whole))[0].tolist())

    def matrix(self, ids: ArrayLike) -> Ints:
        """Return the configurations with these numbers, a row each: severities, then places where the order counts.

        Args:
            ids: numbers of configurations, flat positions in an array of `shape`
        """
        # Of Python integers, NumPy makes floats if one fits 64 bits only unsigned and another only signed.
        numbers = np.asarray(ids, None if isinstance(ids, np.ndarray) else object).reshape(-1)
        if numbers.size == 0:
            return np.empty((0, self.width), dtype=np.int64)
        whole = numbers.dtype.kind in "iu" or (numbers.dtype == object and all(map(is_whole, numbers)))
        suspects = (numbers.min(), numbers.max()) if whole else [one for one in numbers if not is_whole(one)][:1]
        for suspect in suspects:
            self.configuration(suspect)  # which says what is wrong
        return self._unflat(numbers.astype(self._whole))

    def paths(self, ids: ArrayLike) -> list[tuple[tuple[int, int], ...]]:
        """Return the steps of each of the configurations with these numbers.

        Args:
            ids: numbers of configurations, flat positions in an array of `shape`
        """
        return [self._steps(row) for row in self.matrix(ids).tolist()]

    def ids(self, matrix: ArrayLike) -> Ints:
        """Return the numbers of the configurations in the rows of a matrix such as `matrix` makes.

        Args:
            matrix: a configuration in each row, as `matrix` makes it
        """
        try:
            rows = np.asarray(matrix)
        except ValueError:
            raise InputError("sigma: rows of different lengths; accepted: a matrix of severities") from None
        if rows.size == 0:
            return np.empty(0, dtype=np.int64)
        k = len(self.axes)
        if rows.ndim != 2 or rows.dtype.kind not in "iu" or rows.shape[1] not in {k, self.width}:
            accepted = f"whole numbers, {self.width} to a row"
            raise InputError(f"sigma: {rows.dtype} numbers of shape {rows.shape}; accepted: {accepted}")
        rows = rows.astype(np.int64)
        if rows.shape[1] < self.width:
            rows = np.hstack([rows, np.cumsum(rows != 0, axis=1) * (rows != 0)])
        wrong = self._wrong(rows)
        if wrong.any():
            self.canonical(rows[int(np.argmax(wrong))].tolist())
        return self._as_int64(self._flat(rows))

    def configurations(self, max_order: int | None = None) -> Iterator[tuple[int, ...]]:
        """Return all configurations by order, then by axes, severities and application order, one at a time.

        Args:
            max_order: largest number of combined perturbations; None: the number of axes
        """
        total = sum(self._counts[t] for t in self._orders(max_order))

        def chunk(start: int) -> Ints:
            ranks: Whole = np.arange(start, min(start + CHUNK, total), dtype=self._whole)
            return self._unflat(ranks) if self.ranked else self._severities(self._sequence.unrank(ranks)).T

        return (tuple(row) for start in range(0, total, CHUNK) for row in chunk(start).tolist())

    def ids_up_to(self, max_order: int | None = None) -> Ints:
        """Return the ids of `configurations(max_order)`, in the same sequence.

        Args:
            max_order: most perturbations at once; None: as many as there are axes
        """
        orders = self._orders(max_order)
        total = sum(self._counts[t] for t in orders)
        _require_enumerable(total)
        self._require_small(orders[-1])
        ranks = np.arange(total, dtype=np.int64)
        if self.ranked:
            return ranks
        positions = self._sequence.unrank(ranks.astype(self._whole))
        return self._as_int64(mixed_radix(positions, self.shape, self._whole))

    def count(self, order: int | None = None) -> int:
        """Return the number of tests of this order; None: of all orders.

        Args:
            order: how many perturbations at once; None: any number
        """
        if order is None:
            return self.size
        return self._counts[order] if order == self._orders(order)[-1] else 0

    def columns(self) -> Mapping[str, Array]:
        """Return what a query may name, as arrays that broadcast to `shape`; sums are computed when first needed."""
        _require_enumerable(self.size)
        largest = max(sum(axis.severities[-1] for axis in self.axes), len(self.axes))
        dtype = np.min_scalar_type(-largest)  # the smallest signed type that holds the severity sum
        every = functools.cache(lambda: self.matrix(np.arange(self.size)))
        if self.ranked:
            axes = list(every().T[: len(self.axes)].astype(dtype))
        else:
            axes = list(np.ix_(*(np.array(axis.severities, dtype=dtype) for axis in self.axes)))
        return self._by_name(axes, dtype, every)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the numbers that a query over this space may use."""
        return (*self.names, "order", "severity")

    @property
    def sequenced(self) -> tuple[str, ...]:
        """Axes that a query may name in `before`; none if the order of application does not count."""
        return self.names if self.order_sensitive else ()

    def columns_of(self, matrix: ArrayLike) -> Mapping[str, Array]:
        """Return what a query may name, of the configurations in the rows of a matrix: an array for each column.

        Args:
            matrix: a configuration in each row, as `matrix` makes it
        """
        full = np.asarray(matrix).reshape(-1, np.shape(matrix)[-1])
        return self._by_name(list(full[:, : len(self.axes)].T), np.dtype(np.int64), lambda: full)

    def _by_name(self, axes: list[Array], dtype: np.dtype[np.generic], rows: Callable[[], Array]) -> Lazy:
        """The columns of a query from those of the axes; `rows` returns the configurations with their places."""

        def is_before(a: int, b: int) -> Bools:
            places = rows()[:, len(axes) :]
            return np.asarray((places[:, a] > 0) & (places[:, a] < places[:, b]))

        makers: dict[str, Callable[[], Array]] = {
            name: functools.partial(np.asarray, column) for name, column in zip(self.names, axes, strict=True)
        }
        makers["order"] = lambda: functools.reduce(np.add, [(column != 0).astype(dtype) for column in axes])
        makers["severity"] = lambda: functools.reduce(np.add, axes)
        for (a, first), (b, second) in itertools.permutations(enumerate(self.sequenced), 2):
            makers[before(first, second)] = functools.partial(is_before, a, b)
        return Lazy(makers)

    def words(self, sigma: tuple[int, ...]) -> str:
        """Return a configuration in words, in application order.

        Args:
            sigma: a configuration: severities in axis order, then places where the order of application counts
        """
        steps = [f"{self.axes[axis].name} {severity}" for axis, severity in self.steps(sigma)]
        joint = ", then " if self.order_sensitive else ", "
        return joint.join(steps) or "clean"

    def severities(self, name: str) -> Ints:
        """Return the severity of an axis, or another column, in every test, flat by configuration id.

        Args:
            name: of the axis
        """
        return np.broadcast_to(self.columns()[name], self.shape).reshape(-1).astype(np.int64)

    def describe(self) -> Record:
        """The space as JSON values."""
        return {
            "axes": [
                {
                    "name": axis.name,
                    "perturbation": axis.perturbation.name,
                    "severities": list(axis.severities),
                    "parameters": parameters_of(axis.perturbation, axis.severities),
                    "levels": dict(axis.levels),
                    **({"columns": list(chosen)} if (chosen := axis.perturbation.columns) is not None else {}),
                }
                for axis in self.axes
            ],
            "order_sensitive": self.order_sensitive,
            **({} if self._max_order is None else {"max_order": self._max_order}),
        }

    @classmethod
    def from_description(cls, description: RecordLike) -> Space:
        """Return the described space; a perturbation whose code is not loaded (or has changed) cannot be applied.

        Args:
            description: what `describe` made
        """
        try:
            axes = {}
            for axis in description["axes"]:
                perturbation = described(axis["perturbation"], axis["severities"], axis["parameters"])
                if "columns" in axis:
                    perturbation = replace(perturbation, table=tuple(axis["columns"]))
                axes[axis["name"]] = (perturbation, axis["levels"] or axis["severities"])
            flag, cap = description["order_sensitive"], description.get("max_order")
            return cls(axes, order_sensitive=flag, max_order=cap)
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"space description: {error!r}; accepted: what describe() makes") from None

    @functools.cached_property
    def _sequence(self) -> Numbering:
        return Numbering([len(axis.severities) - 1 for axis in self.axes], self._max_order)

    @functools.cached_property
    def _counts(self) -> list[int]:
        counts = self._sequence.counts
        return [n * math.factorial(t) for t, n in enumerate(counts)] if self.order_sensitive else counts

    @property
    def _whole(self) -> type:
        """The type that holds every id, and every product computed on the way to one."""
        return np.int64 if self.size <= np.iinfo(np.int64).max else object

    @property
    def _factorials(self) -> Whole:
        return np.array([math.factorial(t) for t in range(self.max_order + 1)], dtype=self._whole)

    def _flat(self, rows: Ints) -> Whole:
        k = len(self.axes)
        columns = zip(self.axes, rows.T, strict=False)
        positions = np.stack([np.searchsorted(axis.severities, column) for axis, column in columns])
        if not self.ranked:
            return mixed_radix(positions, self.shape, self._whole)
        ranks: Whole = self._sequence.rank(positions, self._whole)
        if not self.order_sensitive:
            return ranks
        orders, factorials = np.count_nonzero(positions, axis=0), self._factorials
        within = ranks - first_ranks(self._sequence.counts, self._whole)[orders]
        starts = first_ranks(self._counts, self._whole)
        return np.asarray(starts[orders] + within * factorials[orders] + rank_places(rows.T[k:], factorials))

    def _unflat(self, ids: Whole) -> Ints:
        if not self.ranked:
            positions = np.empty((len(self.axes), len(ids)), dtype=np.int64)
            for j, levels in reversed(list(enumerate(self.shape))):
                positions[j], ids = ids % levels, ids // levels
            return self._severities(positions).T
        if not self.order_sensitive:
            return self._severities(self._sequence.unrank(ids)).T
        starts = first_ranks(self._counts, self._whole)
        orders = np.searchsorted(starts, ids, side="right") - 1
        within, permutations = ids - starts[orders], self._factorials[orders]
        unordered = first_ranks(self._sequence.counts, self._whole)
        positions = self._sequence.unrank(unordered[orders] + within // permutations)
        places = unrank_places(within % permutations, positions > 0, self._factorials)
        return np.vstack([self._severities(positions), places]).T

    def _severities(self, positions: Ints) -> Ints:
        rows = zip(self.axes, positions, strict=True)
        return np.stack([np.array(axis.severities)[row] for axis, row in rows])

    def _wrong(self, rows: Ints) -> Bools:
        k = len(self.axes)
        wrong = np.zeros(len(rows), dtype=bool)
        for axis, column in zip(self.axes, rows.T, strict=False):
            wrong |= ~np.isin(column, axis.severities)
        wrong |= np.count_nonzero(rows[:, :k], axis=1) > self.max_order
        if self.order_sensitive:
            active, places = rows[:, :k] != 0, rows[:, k:]
            # Sorted, the places read 0 for every axis that is off, then 1, 2, … t.
            expected = np.maximum(np.arange(1, k + 1) - np.count_nonzero(~active, axis=1)[:, None], 0)
            wrong |= ((places != 0) != active).any(axis=1) | (np.sort(places, axis=1) != expected).any(axis=1)
        return wrong

    def require_numbers(self) -> None:
        """Raise InputError if some ids need more than 64 bits."""
        self._require_int64(self.size)

    def _require_small(self, order: int) -> None:
        """Raise InputError for ids beyond 64 bits before any is computed: of hundreds of axes, that takes minutes."""
        if self.ranked or self._whole is np.int64:
            return
        shape = self.shape
        self._require_int64(sum((shape[j] - 1) * math.prod(shape[j + 1 :]) for j in range(order)))

    def _require_int64(self, largest: int) -> None:
        if largest > np.iinfo(np.int64).max:
            tests = _written(self.size)
            raise InputError(f"space: {tests} tests are too many for 64-bit ids; accepted: up to 2^63")

    def _as_int64(self, ids: Whole) -> Ints:
        if ids.dtype == object:
            self._require_int64(max(ids, default=0))
        return ids.astype(np.int64)

    def _orders(self, max_order: int | None) -> range:
        most = self.max_order
        if max_order is not None and (not is_whole(max_order) or max_order < 0):
            raise InputError(f"order: {max_order!r}; accepted: a whole number from 0 to {most}, or None for all")
        return range(1 + (most if max_order is None else min(int(max_order), most)))


def _written(number: int) -> str:
    return str(number) if number < 10**40 else f"some 10^{int((number.bit_length() - 1) * math.log10(2))}"


def _require_enumerable(tests: int) -> None:
    if tests > ENUMERABLE:
        raise InputError(
            f"space: {_written(tests)} tests are too many to enumerate (at most {ENUMERABLE}); use predict"
        )
