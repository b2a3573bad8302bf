"""When a test has seen enough inputs: rules that look at its outcomes every `batch` inputs.

The batch of a rule is part of its meaning and has nothing to do with the batch the model is fed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.statistics.intervals import confidence_sequence
from testifai.support.named import make


class StoppingRule(Protocol):
    """Decides, after every `batch` inputs, whether a test goes on."""

    @property
    def name(self) -> str: ...

    @property
    def batch(self) -> int: ...

    def stops(self, passed: NDArray[np.bool_], inputs: int) -> NDArray[np.bool_]:
        """Which tests to stop: the last axis of `passed` is a test's outcomes so far in visiting order, of `inputs`."""
        ...


@dataclass(frozen=True)
class Window:
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
        _positive(self.name, batch=self.batch, window=self.window, delta=self.delta)

    def stops(self, passed: NDArray[np.bool_], inputs: int) -> NDArray[np.bool_]:
        return _settled(self._rates(passed), self.delta, self.window)

    def _rates(self, passed: NDArray[np.bool_]) -> NDArray[np.float64]:
        whole = passed.shape[-1] // self.batch
        batches = passed[..., : whole * self.batch].reshape(*passed.shape[:-1], whole, self.batch)
        rates: NDArray[np.float64] = batches.mean(axis=-1)
        return rates


@dataclass(frozen=True)
class CumulativeWindow(Window):
    """The same rule on the pass rate of all inputs so far, which settles instead of jumping."""

    name = "window-cumulative"

    def _rates(self, passed: NDArray[np.bool_]) -> NDArray[np.float64]:
        rates = super()._rates(passed)
        return np.cumsum(rates, axis=-1) / np.arange(1, rates.shape[-1] + 1)


@dataclass(frozen=True)
class Interval:
    """Stop once an interval that stays valid under repeated looking is narrow: half-width at most `target`."""

    target: float = 0.02
    batch: int = 100
    confidence: float = 0.95
    name = "interval"

    def __post_init__(self) -> None:
        _positive(self.name, batch=self.batch, target=self.target)
        if not isinstance(self.confidence, float) or not 0 < self.confidence < 1:
            raise InputError(f"stopping: confidence must be between 0 and 1, got {self.confidence!r}")

    def stops(self, passed: NDArray[np.bool_], inputs: int) -> NDArray[np.bool_]:
        low, high = confidence_sequence(passed.sum(axis=-1), passed.shape[-1], inputs, self.confidence)
        return np.asarray(high - low <= 2 * self.target)


RULES: dict[str, Callable[..., StoppingRule]] = {
    "window": Window,
    "window-cumulative": CumulativeWindow,
    "interval": Interval,
}


def resolve(rule: str | dict[str, Any] | StoppingRule | None, target: float | None = None) -> StoppingRule | None:
    """A rule by name, by {"use": name, option: value}, as an object, or none."""
    if rule is None or rule == "none":
        return None
    if isinstance(rule, str | dict):
        given: dict[str, Any] = {"use": rule} if isinstance(rule, str) else dict(rule)
        if given.get("use") == "interval" and target is not None:
            given.setdefault("target", target)
        return make("stopping", given, RULES)
    if not hasattr(rule, "stops") or not hasattr(rule, "batch"):
        raise InputError(f"stopping: expected one of {', '.join(RULES)} or a rule with stops(), got {rule!r}")
    return rule


def describe(rule: StoppingRule | None) -> dict[str, Any] | None:
    """The rule as plain data, to store and to compare; an interval's target may change between resumes."""
    if rule is None:
        return None
    options = asdict(rule) if hasattr(rule, "__dataclass_fields__") else {}  # type: ignore[call-overload]
    return {"use": getattr(rule, "name", type(rule).__name__), **options}


def _settled(rates: NDArray[np.float64], delta: float, window: int) -> NDArray[np.bool_]:
    if rates.shape[-1] < window:
        return np.zeros(rates.shape[:-1], bool)
    differences = np.abs(np.diff(rates, axis=-1, prepend=0.0))
    # Rates are multiples of 1/batch: a difference equal to delta must not slip below it by rounding.
    return np.asarray((differences[..., -window:] < delta - 1e-12).all(axis=-1))


def _positive(rule: str, **values: Any) -> None:
    for field, value in values.items():
        whole = field in {"batch", "window"}
        kind = int | np.integer if whole else int | float | np.number
        if isinstance(value, bool) or not isinstance(value, kind) or not value > 0:
            what = "a whole number, at least 1" if whole else "a positive number"
            raise InputError(f"stopping: {field} of {rule} must be {what}, got {value!r}")
