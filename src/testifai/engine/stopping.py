"""When a test has seen enough inputs: rules that look at its outcomes every `batch` inputs.

The batch of a rule is part of its meaning and has nothing to do with the batch the model is fed.
"""

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
    """Decides, after every `batch` inputs, whether a test goes on."""

    name: str
    batch: int

    @abstractmethod
    def stops(self, passed: Array, inputs: int) -> Bools:
        """Which tests to stop: the last axis of `passed` is a test's outcomes so far in visiting order, of `inputs`.

        They are true or false or, in a run that is planned for a score, its values in 0..1.
        """

    @abstractmethod
    def describe(self) -> Record:
        """The rule as plain data, {"use": name, option: value}, to store and to compare."""


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
        return _settled(self._rates(passed), self.delta, self.window)

    def describe(self) -> Record:
        return {"use": self.name, **asdict(self)}

    def _rates(self, passed: Array) -> Floats:
        whole = passed.shape[-1] // self.batch
        batches = passed[..., : whole * self.batch].reshape(*passed.shape[:-1], whole, self.batch)
        rates: Floats = batches.mean(axis=-1)
        return rates


@dataclass(frozen=True)
class CumulativeWindow(Window):
    """The rule `window` on the pass rate of all inputs so far, which settles instead of jumping."""

    name = "window-cumulative"

    def _rates(self, passed: Array) -> Floats:
        rates = super()._rates(passed)
        return np.cumsum(rates, axis=-1) / np.arange(1, rates.shape[-1] + 1)


@dataclass(frozen=True)
class Interval(StoppingRule):
    """Stop once an interval that allows for being looked at is narrow: half-width at most `target`."""

    target: float = 0.02
    batch: int = 100
    confidence: float = 0.95
    name = "interval"

    def __post_init__(self) -> None:
        whole(f"stopping: batch of {self.name}", self.batch, least=1)
        number(f"stopping: target of {self.name}", self.target, above=0)
        number(f"stopping: confidence of {self.name}", self.confidence, above=0, below=1)

    def stops(self, passed: Array, inputs: int) -> Bools:
        if passed.dtype.kind != "f":
            low, high = fixed_width(passed.sum(axis=-1), passed.shape[-1], inputs, self.confidence)
        else:
            low, high = mean_of_width(Moments.of(passed), inputs, self.confidence)
        return np.asarray(high - low <= 2 * self.target)

    def describe(self) -> Record:
        return {"use": self.name, **asdict(self)}


class ForeignRule(StoppingRule):
    """An object with stops() and batch from elsewhere, as a rule."""

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
    """A rule by name, by {"use": name, option: value}, as an object, or none; `target` is for those that have one."""
    if rule is None or rule == "none":
        return None
    if isinstance(rule, str | Mapping):
        return _adapt(RULES.make(rule, **({} if target is None else {"target": target})))
    return _adapt(rule)


def _adapt(rule: Any) -> StoppingRule:
    """A rule as it is; another object with stops() and batch by way of an adapter."""
    if isinstance(rule, StoppingRule):
        return rule
    if isinstance(rule, type) or not (hasattr(rule, "stops") and hasattr(rule, "batch")):
        raise InputError(f"stopping: expected one of {', '.join(RULES)} or a rule with stops(), got {rule!r}")
    return ForeignRule(rule)


def describe(rule: StoppingRule | None) -> Record | None:
    """The rule as plain data, to store and to compare; an interval's target may change between resumes."""
    return None if rule is None else rule.describe()


def by_width_alone(described: RecordLike | None) -> bool:
    """Whether the rule of a run looks at nothing but widths; without one of its own, a target asks for one that does.

    >>> by_width_alone({"use": "interval", "batch": 50}), by_width_alone({"use": "window"}), by_width_alone(None)
    (True, False, True)
    """
    return described is None or described.get("use") == Interval.name


def _settled(rates: Floats, delta: float, window: int) -> Bools:
    if rates.shape[-1] < window:
        return np.zeros(rates.shape[:-1], bool)
    differences = np.abs(np.diff(rates, axis=-1, prepend=0.0))
    # Rates are multiples of 1/batch: a difference equal to delta must not slip below it by rounding.
    return np.asarray((differences[..., -window:] < delta - 1e-12).all(axis=-1))
