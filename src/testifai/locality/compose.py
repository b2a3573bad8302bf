"""`compose`: the global robustness of a composed system, predicted from local robustness alone.

Global robustness is the probability that the system's answer on perturbed inputs of given classes is the expected one
(Bayesian-network framework, Eq. 4). If the parts fail independently, given classes, properties and severity:

    GR = sum over answers that make the system right of the product over parts of P(answer | class, property, severity)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError, suggest
from testifai.locality.local import Arms, Local, Rates, class_arms, clipped, coull_arms, joined, together
from testifai.statistics.intervals import wilson
from testifai.support.formatting import estimate_text
from testifai.support.serialization import plain
from testifai.support.types import Array, Floats, Record
from testifai.support.validation import choice, whole
from testifai.tomogram.profile_parser import MOST_CELLS

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
    """Labels as `combine` gets them: whole numbers where all names are such, else the names."""
    numeric = all(name.removeprefix("-").isdecimal() and str(int(name)) == name for name in names)
    return tuple(int(name) for name in names) if numeric else tuple(names)


@dataclass(frozen=True, eq=False)
class System:
    classes: tuple[str, ...]
    codes: NDArray[np.int32]  # the system's answer to every combination of the parts' answers, one axis each
    right: NDArray[np.int32]  # the expected answer to every combination of true classes, -1 if it is never given

    @property
    def arity(self) -> int:
        return self.codes.ndim

    @cached_property
    def symmetric(self) -> bool:
        return all(
            np.array_equal(table, table.swapaxes(axis, axis + 1))
            for table in (self.codes, self.right)
            for axis in range(self.arity - 1)
        )

    def answers_right(self, classes: tuple[int, ...]) -> NDArray[np.intp]:
        """(combination, part): all combinations of answers for which the system is right on these true classes."""
        return np.argwhere(self.codes == self.right[classes])

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


@dataclass(frozen=True, eq=False)
class Global:
    """The global robustness of a composed system; arrays over (tuple of classes, condition, severity).

    A condition is the property that every part is under, or "a+b" where the first part is under a, the second under b.
    `mean` is over the severities, (tuple, condition); `by_condition` over the tuples as well; `overall` over all.
    """

    tuples: tuple[tuple[str, ...], ...]
    conditions: tuple[str, ...]
    severities: tuple[tuple[Any, ...], ...]  # per condition, without 0; a severity is each part's where they differ
    rate: Floats
    low: Floats
    high: Floats
    mean: Rates
    by_condition: Rates
    overall: Rates

    def __repr__(self) -> str:
        found = estimate_text(self.overall.rate, self.overall.low, self.overall.high)
        under = ", ".join(self.conditions)
        return f"<{type(self).__name__} of {len(self.tuples):,} combinations of classes under {under}: {found}>"

    def as_dict(self) -> Record:
        return {one.name: plain(getattr(self, one.name)) for one in fields(Global)}


@dataclass(frozen=True, eq=False, repr=False)
class Prediction(Global):
    """Predicted from local tables; the intervals allow for their finite trials (95 %, or as `at` was asked)."""

    setting: Setting = field(repr=False)

    def at(self, confidence: float) -> Prediction:
        """This prediction with intervals of another confidence."""
        return predict(self.setting, confidence)


@dataclass(frozen=True, eq=False)
class Setting:
    """A composed system: a local table, the system, and the indices of tuples and conditions."""

    local: Local
    system: System
    tuples: list[tuple[int, ...]]
    conditions: list[tuple[int, ...]]  # of each, the index of its property for every part
    share: str = SHARES[0]

    @classmethod
    def of(
        cls, local: Local, combine: Any, arity: int, expected: Any, conditions: Any, tuples: Any, share: str
    ) -> Setting:
        system = build(local.classes, local.outputs, combine, arity, expected)
        chosen = read_conditions(local.properties, local.severities, conditions, system.arity, share)
        same = all(len(set(one)) == 1 for one in chosen)
        return cls(local, system, system.tuples(tuples, interchangeable=same), chosen, share)

    @property
    def interchangeable(self) -> bool:
        return self.system.symmetric and all(len(set(one)) == 1 for one in self.conditions)

    def __post_init__(self) -> None:
        numbers = sum(map(len, self.levels)) * self.local.answers[0].size
        if self.share != "severities" and numbers > MOST_CELLS:
            raise InputError(
                f"share: {self.share!r} makes a table of {numbers:,} numbers of all combinations of severities; "
                f"accepted: up to {MOST_CELLS:,}, with fewer parts or properties, or share = 'severities'"
            )

    @cached_property
    def levels(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """Per condition every severity that the parts may meet together, written out for each part."""
        if self.share == "severities":
            common = (common_severities(self.local.severities, one) for one in self.conditions)
            return tuple(tuple((severity,) * self.system.arity for severity in one) for one in common)
        return tuple(
            tuple(itertools.product(*(self.local.severities[part] for part in one))) for one in self.conditions
        )

    @property
    def severities(self) -> tuple[tuple[Any, ...], ...]:
        """Per condition the severities of its cells: a number where all parts share it, else one for each part."""
        if self.share == "severities":
            return tuple(tuple(level[0] for level in one) for one in self.levels)
        return self.levels

    @cached_property
    def cells(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Condition (cell), index of the severity (cell), index of each part in flat local cells (cell, part)."""
        width, places = self.local.rate.shape[2], self.local.severities
        found = []
        for which, condition in enumerate(self.conditions):
            for place, level in enumerate(self.levels[which]):
                own = zip(condition, level, strict=True)
                found.append((which, place, [part * width + places[part].index(one) for part, one in own]))
        conditions, levels, parts = (np.array(column) for column in zip(*found, strict=True))
        return conditions, levels, parts

    @property
    def rows(self) -> Floats:
        return self.local.answers.reshape(len(self.local.classes), -1, len(self.local.outputs))

    @property
    def shares(self) -> Floats:
        """(condition, cell): the weights of the cells in the mean over the severities of each condition."""
        lengths = np.array([[len(one)] for one in self.severities])
        return np.asarray((self.cells[0] == np.arange(len(lengths))[:, None]) / lengths)

    @property
    def tuple_names(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(self.local.classes[one] for one in classes) for classes in self.tuples)

    @property
    def condition_names(self) -> tuple[str, ...]:
        names = [[self.local.properties[part] for part in one] for one in self.conditions]
        return tuple(one[0] if len(set(one)) == 1 else "+".join(one) for one in names)

    def grid(self, values: Array, padding: float = np.nan) -> Array:
        """Values of the cells as (tuple, condition, severity), or (condition, severity)."""
        shape = (*values.shape[:-1], len(self.conditions), max(map(len, self.severities)))
        array = np.full(shape, padding, np.result_type(values, type(padding)))
        array[(..., *self.cells[:2])] = values
        return array


def compose(
    local: Local,
    combine: Combine | None = None,
    arity: int = 2,
    expected: Expected | None = None,
    *,
    conditions: Sequence[str | Sequence[str]] | None = None,
    tuples: Sequence[Sequence[Any]] | None = None,
    share: str = SHARES[0],
) -> Prediction:
    """The global robustness of a system of `arity` parts that `combine` makes one answer of (None: the sum of digits).

    Args:
        local: the table of the parts
        combine: a function of the parts' labels (integers if all class names are, else names); None: their sum
        arity: how many parts the system has
        expected: what is right: a function of the true labels or a mapping from tuples of them; None: as `combine`
        conditions: a property for all parts, or one for each, such as ('noise', 'rotation'); None: every property
        tuples: the combinations of classes; None: all, in one order only if the order changes nothing
        share: what parts have in common: 'severities' (and the property), 'context' (the property) or 'nothing'

    >>> table = Local.from_counts(["0", "1"], ["noise"], [[1]], [[[[90, 10], [20, 80]]]])
    >>> found = compose(table)
    >>> found.tuples, found.mean.rate[:, 0].round(3).tolist()  # 1 and 0 for 0 and 1 adds up to the same
    ((('0', '0'), ('0', '1'), ('1', '1')), [0.81, 0.74, 0.64])
    """
    return predict(Setting.of(local, combine, arity, expected, conditions, tuples, share))


def read_conditions(
    properties: tuple[str, ...], severities: tuple[tuple[int, ...], ...], given: Any, arity: int, share: str
) -> list[tuple[int, ...]]:
    choice("share", share, SHARES)
    places = {name: place for place, name in enumerate(properties)}
    conditions = []
    if given is None:
        given = itertools.product(properties, repeat=arity) if share == "nothing" else properties
    for one in [given] if isinstance(given, str) else given:
        names = (one,) * arity if isinstance(one, str) else tuple(one)
        if len(names) != arity:
            raise InputError(
                f"conditions: {one!r} names {len(names)} properties; {arity} are needed, one for each part"
            )
        for name in names:
            if name not in places:
                raise InputError(f"conditions: {name!r} is not a property of the table; {suggest(name, places)}")
        condition = tuple(places[name] for name in names)
        if share == "severities" and not common_severities(severities, condition):
            raise InputError(f"conditions: {one!r} have no severity in common; accepted: properties that share some")
        conditions.append(condition)
    if not conditions:
        raise InputError("conditions: is empty; accepted: at least one property, or None for all")
    return conditions


def common_severities(severities: tuple[tuple[int, ...], ...], condition: tuple[int, ...]) -> tuple[int, ...]:
    first, *others = (severities[place] for place in condition)
    return tuple(severity for severity in first if all(severity in other for other in others))


def predict(setting: Setting, confidence: float = 0.95) -> Prediction:
    """Rates from the shares of answers, intervals from how much each class's answers weigh in them."""
    local, share, rows, parts = setting.local, setting.shares, setting.rows, setting.cells[2]
    cells = len(parts)
    sides = [_halfway(local, side, confidence).reshape(rows.shape) for side in (0, 1)]
    rates, arms = [], []
    totals: list[dict[int, Floats]] = [{}, {}]
    for classes in setting.tuples:
        right = setting.system.answers_right(classes)
        rates.append(np.prod(chances(rows, classes, parts, right), axis=0).sum(axis=1))
        gradients = [_gradients(nearby, classes, parts, right) for nearby in sides]
        arms.append(_arms(local, gradients, np.vstack([np.eye(cells), share]), confidence))
        for total, gradient in zip(totals, gradients, strict=True):
            for one, part in gradient.items():
                total[one] = total.get(one, 0) + part / len(setting.tuples)
    rate = np.array(rates)
    down, up = (np.array(side) for side in zip(*arms, strict=True))
    single = clipped(rate, (down[:, :cells], up[:, :cells]))
    mean = clipped(rate @ share.T, (down[:, cells:], up[:, cells:]))
    weights = np.vstack([share, share.mean(axis=0)])  # every condition, then all of them
    summed = clipped(weights @ rate.mean(axis=0), _arms(local, totals, weights, confidence))
    by_condition, overall = summed.at(slice(-1)), summed.at(-1).numbers()
    return Prediction(
        setting.tuple_names, setting.condition_names, setting.severities, setting.grid(single.rate),
        setting.grid(single.low), setting.grid(single.high), mean, by_condition, overall, setting,
    )  # fmt: skip


def chances(rows: Floats, classes: tuple[int, ...], parts: NDArray[np.intp], right: NDArray[np.intp]) -> list[Floats]:
    """Per part (cell, combination): the chance of its answer in every combination that makes the system right."""
    return [rows[one][parts[:, [part]], right[:, part]] for part, one in enumerate(classes)]


def others_right(
    rows: Floats, classes: tuple[int, ...], parts: NDArray[np.intp], right: NDArray[np.intp]
) -> list[Floats]:
    """Per part (cell, combination): the chance of the other parts' answers in every combination that is right."""
    own = chances(rows, classes, parts, right)
    products = [np.prod([one for other, one in enumerate(own) if other != part], axis=0) for part in range(len(own))]
    return [np.broadcast_to(others, (len(parts), len(right))) for others in products]


def _gradients(
    rows: Floats, classes: tuple[int, ...], parts: NDArray[np.intp], right: NDArray[np.intp]
) -> dict[int, Floats]:
    """Per class (cell, flat cell of the table, output): how the rate changes with the share of an answer."""
    found = {one: np.zeros((len(parts), *rows.shape[1:])) for one in set(classes)}
    for part, (one, others) in enumerate(zip(classes, others_right(rows, classes, parts, right), strict=True)):
        np.add.at(found[one], (np.arange(len(parts))[:, None], parts[:, [part]], right[:, part][None]), others)
    return found


def _arms(local: Local, gradients: list[dict[int, Floats]], weights: Floats, confidence: float) -> Arms:
    """Arms of weighted sums of cells, down with the first gradients and up with the second; classes are independent."""
    shape = (len(weights), *local.rate.shape[1:], len(local.outputs))
    sides = []
    for gradient in gradients:
        slopes = {one: np.tensordot(weights, part, 1).reshape(shape) for one, part in gradient.items()}
        arms = [class_arms(local, one, slope, confidence, coull_arms) for one, slope in slopes.items()]
        sides.append(together(arms))
    return sides[0][0], sides[1][1]


def _halfway(local: Local, side: int, confidence: float) -> Floats:
    """Shares of answers (class, property, severity, output) halfway to an end of the right one's interval."""
    # The slope of a product differs towards the two ends, and is 0 at the estimate if no answer is right.
    rate = (local.rate + wilson(local.passes, local.trials, None, confidence)[side]) / 2
    return joined(rate, np.nan_to_num(local.answers))
