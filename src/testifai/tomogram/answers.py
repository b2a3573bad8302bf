"""Answers to queries, as plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from testifai.runs.outcomes import Ids
from testifai.support.formatting import aligned, estimate_text, interval, printable, rate
from testifai.support.serialization import plain
from testifai.support.types import Array, Bools, Floats, Record
from testifai.support.views import view

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass(frozen=True)
class RateTable:
    """Estimates of some tests, or of all by configuration id, for all inputs or a part of them."""

    estimate: Floats
    low: Floats
    high: Floats
    passes: Array  # of a score, the sum of its values
    trials: Ids
    alone: Bools  # whether the estimate rests on the test's own trials alone

    def at(self, places: Array | slice) -> RateTable:
        return RateTable(*(getattr(self, one.name)[places] for one in fields(self)))

    def lowest(self, count: int) -> NDArray[np.intp]:
        """Return the positions of the lowest estimates, lowest first; unknown ones come last."""
        candidates = np.arange(len(self.estimate))
        if len(candidates) > count:  # sorting all of a large space would take long
            limit = np.partition(self.estimate, count - 1)[count - 1]
            candidates = np.flatnonzero(~(self.estimate > limit))
        return candidates[np.argsort(self.estimate[candidates], kind="stable")[:count]]

    def and_(self, other: RateTable) -> RateTable:
        return RateTable(*(np.concatenate([getattr(one, part.name) for one in (self, other)]) for part in fields(self)))


@dataclass(frozen=True)
class CleanAccuracy:
    """The pass rate of the clean test with its 95 % bounds, and on how many of the inputs it was tried."""

    estimate: float
    low: float
    high: float
    trials: int
    inputs: int
    alone: bool  # rests on these trials alone, not on those of other tests too


Key = TypeVar("Key")

Sigma = tuple[int, ...]
Worst = tuple[Sigma, float, float, float]  # a test with its estimate and bounds


class PlainRecord:
    def as_dict(self) -> Record:
        """Return plain data for JSON, None for what does not exist."""
        return {name: plain(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class Excluded(PlainRecord):
    """The tests that a query's limit on quality excludes, and the robustness on them; NaN without any.

    `doubtful` counts the tests whose quality is too uncertain to decide on which side of the limit they are.
    """

    tests: int
    doubtful: int
    robustness: float
    low: float
    high: float


@dataclass(frozen=True)
class RunCounts:
    """How many tests were run on all inputs, on some, and not at all."""

    complete: int
    partial: int
    unrun: int

    def __str__(self) -> str:
        return f"{self.complete:,} run on all inputs, {self.partial:,} on some, {self.unrun:,} not run"


@dataclass(frozen=True)
class QueryInfo:
    query: str
    worst: tuple[str, ...]  # the names of the worst tests
    quantity: str = "robustness"
    inputs: str | None = None  # which part of the inputs; None: all
    confidence: float = 0.95
    runs: RunCounts | None = None  # of the tests; None: not counted
    only: int | None = None  # exactly so many inputs are meant; None: new inputs like them


def only_for(inputs: int | None) -> str:
    return "" if inputs is None else f", for these {inputs:,} inputs only"


@dataclass(frozen=True)
class Answer:
    """Answer to a query. An interval bound is NaN if a selected test's estimate has none.

    Attributes:
        robustness: the mean over the selected tests
        low: lower end of its interval
        high: upper end of its interval
        drop: robustness minus clean robustness
        tests: number of selected tests
        measured: number of tests whose estimate is based on their own trials alone
        inferred: number of tests whose estimate is based on other tests too
        worst: the lowest five: (configuration, estimate, low, high)
        model_free: (estimate, low, high) from the tests' own trials alone; None if the answer has no other basis
        disagrees: whether these and the surrogate contradict each other; the answer is then that of the trials
        excluded: the tests that a limit on quality excludes; None without a limit
        modelled: (estimate, low, high) of the surrogate, if it is not the answer
        info: the query that it answers, for figures and tables
    """

    robustness: float
    low: float
    high: float
    drop: float
    tests: int
    measured: int
    inferred: int
    worst: tuple[Worst, ...]
    model_free: tuple[float, float, float] | None = None
    disagrees: bool = False
    excluded: Excluded | None = None
    modelled: tuple[float, float, float] | None = None
    info: QueryInfo | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        found = f"{estimate_text(self.robustness, self.low, self.high)}, drop {self.drop:+.3f}"
        basis = f"{self.measured:,} measured, {self.inferred:,} predicted"
        return f"<Answer {found}, over {self.tests:,} tests: {basis}{self.scope}>"

    def _repr_html_(self) -> str:
        return str(view("answer in a notebook")(self))

    @property
    def worst_names(self) -> tuple[str, ...]:
        """The worst tests in words; only their severities if the answer is not from a tomogram."""
        return tuple(str(sigma) for sigma, *_ in self.worst) if self.info is None else self.info.worst

    @property
    def quantity(self) -> str:
        """Name of the estimated quantity."""
        return "robustness" if self.info is None else self.info.quantity

    @property
    def population(self) -> str | None:
        """What the answer is about: "future", new inputs like these, or "data", exactly these; None: not known."""
        return None if self.info is None else "future" if self.info.only is None else "data"

    @property
    def scope(self) -> str:
        """What follows the numbers if they are about exactly these inputs."""
        return only_for(None if self.info is None else self.info.only)

    def plot(self, *, dark: bool = False) -> Figure:
        """Return the answer, its parts and its worst tests, each with an interval, as a plotly figure.

        Args:
            dark: whether for a dark page

        >>> Answer(0.5, 0.4, 0.6, -0.1, 1, 1, 0, (((2,), 0.5, 0.4, 0.6),)).plot().layout.title.text
        'robustness 0.500 (0.400 … 0.600)'
        """
        figure: Figure = view("answer as a figure")(self, dark=dark)
        return figure

    def as_dict(self) -> Record:
        """Plain data for JSON, None for what does not exist."""
        bounds = ("robustness", "low", "high")
        found = {name: getattr(self, name) for name in (*bounds, "drop", "tests", "measured", "inferred")}
        found["worst"] = [dict(zip(("configuration", "estimate", *bounds[1:]), one, strict=True)) for one in self.worst]
        if self.model_free is not None:
            found |= {"model_free": dict(zip(bounds, self.model_free, strict=True)), "disagrees": self.disagrees}
        if self.modelled is not None:
            found["modelled"] = dict(zip(bounds, self.modelled, strict=True))
        if self.excluded is not None:
            found["excluded"] = self.excluded
        if self.info is not None and self.info.runs is not None:
            found |= vars(self.info.runs)
        if self.population is not None:
            found["population"] = self.population
        return {name: plain(value) for name, value in found.items()}


class Answers(dict[Key, Answer], Generic[Key]):
    """Answers by the value of a column, such as the order: a dictionary that prints as a table."""

    def __init__(self, answers: Mapping[Key, Answer], by: str = "", quantity: str = "robustness") -> None:
        super().__init__(answers)
        self.by, self.quantity = by, quantity

    def __repr__(self) -> str:
        rows = [
            (printable(value), rate(one.robustness), interval(one.low, one.high), f"{one.tests:,}", f"{one.measured:,}")
            for value, one in self.items()
        ]
        return aligned([(self.by, self.quantity, "95 % interval", "tests", "measured"), *rows])

    def _repr_html_(self) -> str:
        return str(view("answers in a notebook")(self))


class AnswersByAxis(dict[str, Answers[int]]):
    def __repr__(self) -> str:
        levels = sorted({level for answers in self.values() for level in answers})
        rows = [
            (name, *(_between(answers[level]) if level in answers else "" for level in levels))
            for name, answers in self.items()
        ]
        return aligned([("severity", *map(str, levels)), *rows])

    def _repr_html_(self) -> str:
        return str(view("answers by axis in a notebook")(self))


def _between(answer: Answer) -> str:
    if math.isnan(answer.low):
        return rate(answer.robustness)
    return f"{answer.robustness:.3f} ± {max(answer.robustness - answer.low, answer.high - answer.robustness):.3f}"
