"""Rules that stop a test after enough inputs, evaluated every `batch` inputs (which is not the model's batch size)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

import numpy as np

from testifai.errors import InputError
from testifai.statistics.intervals import fixed_width
from testifai.statistics.means import Moments, mean_of_width
from testifai.support.registry import Registry
from testifai.support.types import Array, Bools, Floats, Record, RecordLike
from testifai.support.validation import number, whole


class StoppingRule(ABC):
    """Decides, after every `batch` inputs, whether a test continues."""

    name: str
    batch: int

    @abstractmethod
    def stops(self, passed: Array, inputs: int) -> Bools:
        """Return which tests to stop by their outcomes so far, or scores in 0..1, in visiting order (the last axis)."""

    def describe(self) -> Record:
        """Return the rule as plain data, {"use": name, option: value}, to store and to compare."""
        return {"use": self.name, **(asdict(self) if is_dataclass(self) else {})}


@dataclass(frozen=True)
class Window(StoppingRule):
    """Algorithm 1 of TestifAI: stop when the last `window` differences of batch pass rates are all below `delta`.

    The rate before the first batch counts as 0, as printed. It is an optional-stopping rule without a guarantee.

    >>> bool(Window(batch=2, delta=0.1, window=2).stops(np.array([1, 1, 1, 1, 1, 1], bool), 100))
    True
    """

    batch: int = 100
    delta: float = 0.005
    window: int = 3
    name = "window"

    def __post_init__(self) -> None:
        whole(f"stopping: batch of {self.name}", self.batch, least=1)
        whole(f"stopping: window of {self.name}", self.window, least=1)
        number(f"stopping: delta of {self.name}", self.delta, above=0)

    def stops(self, passed: Array, inputs: int) -> Bools:
        rates = self._rates(passed)
        if rates.shape[-1] < self.window:
            return np.zeros(rates.shape[:-1], bool)
        differences = np.abs(np.diff(rates, axis=-1, prepend=0.0))
        # Rates are multiples of 1/batch: a difference equal to delta must not slip below it by rounding.
        return np.asarray((differences[..., -self.window :] < self.delta - 1e-12).all(axis=-1))

    def _rates(self, passed: Array) -> Floats:
        whole = passed.shape[-1] // self.batch
        batches = passed[..., : whole * self.batch].reshape(*passed.shape[:-1], whole, self.batch)
        return np.asarray(batches.mean(axis=-1))


@dataclass(frozen=True)
class CumulativeWindow(Window):
    """The rule `window` on the pass rate of all inputs so far."""

    name = "window-cumulative"

    def _rates(self, passed: Array) -> Floats:
        rates = super()._rates(passed)
        return np.cumsum(rates, axis=-1) / np.arange(1, rates.shape[-1] + 1)


@dataclass(frozen=True)
class Interval(StoppingRule):
    """Stop once the half-width of an interval that allows for repeated inspection is at most `target`."""

    target: float = 0.02
    batch: int = 100
    confidence: float = 0.95
    name = "interval"

    def __post_init__(self) -> None:
        whole(f"stopping: batch of {self.name}", self.batch, least=1)
        number(f"stopping: target of {self.name}", self.target, above=0)
        number(f"stopping: confidence of {self.name}", self.confidence, above=0, below=1)

    def stops(self, passed: Array, inputs: int, *, finite: bool = True) -> Bools:
        population = inputs if finite else None  # None: new inputs like these
        if passed.dtype.kind != "f":
            low, high = fixed_width(passed.sum(axis=-1), passed.shape[-1], population, self.confidence)
        else:
            low, high = mean_of_width(Moments.of(passed), population, self.confidence)
        return np.asarray(high - low <= 2 * self.target)


class ForeignRule(StoppingRule):
    def __init__(self, given: Any) -> None:
        self.given, self.batch = given, given.batch
        self.name = str(getattr(given, "name", type(given).__name__))

    def stops(self, passed: Array, inputs: int) -> Bools:
        return np.asarray(self.given.stops(passed, inputs))

    def describe(self) -> Record:
        if hasattr(self.given, "describe"):
            return dict(self.given.describe())
        options = asdict(self.given) if is_dataclass(self.given) and not isinstance(self.given, type) else {}
        return {"use": self.name, **options}


RULES = Registry(
    "stopping",
    "testifai.stopping_rules",
    {
        "window": "testifai.engine.stopping:Window",
        "window-cumulative": "testifai.engine.stopping:CumulativeWindow",
        "interval": "testifai.engine.stopping:Interval",
    },
)


def resolve(rule: Any, target: float | None = None) -> StoppingRule | None:
    """Return a rule by name, by {"use": name, option: value}, as an object, or none; `target` is an option of some."""
    if rule is None or rule == "none":
        return None
    if isinstance(rule, str | Mapping):
        rule = RULES.make(rule, **({} if target is None else {"target": target}))
    if isinstance(rule, StoppingRule):
        return rule
    if isinstance(rule, type) or not (hasattr(rule, "stops") and hasattr(rule, "batch")):
        raise InputError(f"stopping: expected one of {', '.join(RULES)} or a rule with stops(), got {rule!r}")
    return ForeignRule(rule)


def describe(rule: StoppingRule | None) -> Record | None:
    return None if rule is None else rule.describe()


def by_width_alone(described: RecordLike | None) -> bool:
    """Return True if a run's rule depends on widths alone, as the default rule of a target does."""
    return described is None or described.get("use") == Interval.name
