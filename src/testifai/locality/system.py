"""A system built of parts: what it answers for every combination of its parts' answers, and what it should."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.support.validation import whole

MOST_COMBINATIONS = 2_000_000
# What the parts of a system have in common, from most to least; the first is the default everywhere.
SHARES = ("severities", "context", "nothing")
Combine = Callable[..., Any]
Expected = Callable[..., Any] | Mapping[tuple[Any, ...], Any]


def adder(*labels: Any) -> int:
    """The sum of the digits: the system of the Bayesian-network framework (Eq. 4).

    Args:
        labels: what the parts answered

    >>> adder(5, 0)
    5
    """
    return sum(int(label) for label in labels)


def values(names: Sequence[str]) -> tuple[int | str, ...]:
    """Labels as `combine` gets them: whole numbers where all names are such, else the names.

    >>> values(["0", "5"]), values(["cat", "5"])
    ((0, 5), ('cat', '5'))
    """
    numeric = all(name.removeprefix("-").isdecimal() and str(int(name)) == name for name in names)
    return tuple(int(name) for name in names) if numeric else tuple(names)


@dataclass(frozen=True, eq=False)
class System:
    """`codes` holds a number for the system's answer to every combination of the parts' answers (one axis each);
    `right` the number of the expected answer for every combination of true classes, -1 if it is never given."""

    classes: tuple[str, ...]
    codes: NDArray[np.int32]
    right: NDArray[np.int32]

    @property
    def arity(self) -> int:
        return self.codes.ndim

    @cached_property
    def symmetric(self) -> bool:
        """Whether the parts may change places."""
        return all(
            np.array_equal(table, table.swapaxes(axis, axis + 1))
            for table in (self.codes, self.right)
            for axis in range(self.arity - 1)
        )

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
        order = np.argsort(self.codes, axis=None, kind="stable")
        return order, self.codes.reshape(-1)[order]

    def answers_right(self, classes: tuple[int, ...]) -> NDArray[np.intp]:
        """(combination, part): all combinations of answers for which the system is right on these true classes."""
        order, codes = self._sorted
        first, last = np.searchsorted(codes, [self.right[classes], self.right[classes] + 1])
        return np.stack(np.unravel_index(order[first:last], self.codes.shape), axis=1)

    def tuples(self, given: Sequence[Sequence[Any]] | None, *, interchangeable: bool) -> list[tuple[int, ...]]:
        """The combinations of classes to look at, as places: those given, or all, each once if parts can be swapped."""
        places = {name: place for place, name in enumerate(self.classes)}
        if given is None:
            every = range(len(self.classes))
            if interchangeable and self.symmetric:
                return list(itertools.combinations_with_replacement(every, self.arity))
            return list(itertools.product(every, repeat=self.arity))
        found = []
        for one in given:
            names = (str(one),) if isinstance(one, str) or not isinstance(one, Iterable) else tuple(map(str, one))
            if len(names) != self.arity or not all(name in places for name in names):
                raise InputError(
                    f"tuples: {one!r} is not accepted; {self.arity} of the classes {', '.join(self.classes)} are"
                )
            found.append(tuple(places[name] for name in names))
        if not found:
            raise InputError("tuples: is empty; accepted: at least one combination of classes, or None for all")
        return found


def build(
    classes: Sequence[str], outputs: Sequence[str], combine: Combine | None, arity: int, expected: Expected | None
) -> System:
    """Ask the functions for every combination once, and refuse what cannot be compared."""
    arity = whole("arity", arity, least=1)
    if len(outputs) ** arity > MOST_COMBINATIONS:
        raise InputError(
            f"arity: {arity} parts with {len(outputs)} answers each have {len(outputs) ** arity:,} combinations "
            f"(at most {MOST_COMBINATIONS:,}); take fewer parts or classes"
        )
    labels = values(outputs)
    if combine is None:
        if isinstance(labels[0], str):
            raise InputError(
                f"combine: the adder needs classes that are whole numbers, got {labels[0]!r}; give a function of "
                f"{arity} labels"
            )
        combine = adder
    known: dict[Any, int] = {}
    codes = _table("combine", combine, labels, arity, lambda answer: known.setdefault(answer, len(known)))
    if expected is None:
        right = codes[tuple(slice(len(classes)) for _ in range(arity))]
    else:
        right = _table("expected", expected, labels[: len(classes)], arity, lambda answer: known.get(answer, -1))
    return System(tuple(classes), codes, right)


def _table(
    field: str, function: Any, labels: tuple[Any, ...], arity: int, number: Callable[[Any], int]
) -> NDArray[np.int32]:
    """The number of the function's answer for every combination of labels."""
    if not callable(function) and not isinstance(function, Mapping):
        accepted = "a function of the labels" + (", or a mapping from tuples of them," if field == "expected" else "")
        raise InputError(f"{field}: {type(function).__name__} cannot be called; {accepted} is accepted")
    codes = []
    for combination in itertools.product(labels, repeat=arity):
        try:
            answer = function[combination] if isinstance(function, Mapping) else function(*combination)
        except Exception as error:
            # A key error's text is only the key.
            line = (str(error).strip().splitlines() or ["no message"])[0][:200]
            reason = "no entry" if isinstance(function, Mapping) else f"raised {type(error).__name__}: {line}"
            raise InputError(f"{field}: {reason} for the labels {combination}; an answer for each is needed") from error
        try:
            codes.append(number(answer))
        except TypeError:
            raise InputError(
                f"{field}: returned {type(answer).__name__} for the labels {combination}, which cannot be compared; "
                "a number, text or tuple is accepted"
            ) from None
    return np.array(codes, np.int32).reshape((len(labels),) * arity)
