"""How far to trust a tomogram: figures, and the same in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from testifai.support.serialization import plain
from testifai.support.types import Record, RecordLike

NAMED = 5  # tests named in a line
TOO_NARROW = 1.25  # mean squared error, as a multiple of what the intervals say


@dataclass(frozen=True)
class LeftOut:
    """Tests predicted from the others, compared with their measured rates.

    `raw` is the mean absolute difference, `noise` its value if there were only sampling noise, `error` the difference
    without noise: too low if noise that tests share, being tried on the same inputs, cancels out. `coverage` is None if
    the surrogate has no intervals.
    """

    tests: int
    most_order: int
    error: float
    raw: float
    noise: float
    bias: float
    coverage: float | None

    def line(self) -> str:
        if self.noise == 0:
            off = f"off by {self.error:.3f} on average"
        elif self.error >= 0.0005:
            off = (
                f"off by {self.error:.3f} on average (seen {self.raw:.3f}; sampling noise alone makes {self.noise:.3f})"
            )
        else:
            off = f"off by no more than sampling noise (seen {self.raw:.3f}; noise alone makes {self.noise:.3f})"
        what = f"{self.tests:,} tests of order up to {self.most_order}, left out and predicted from the others"
        text = f"{what}: {off}, bias {self.bias:+.3f}"
        return text if self.coverage is None else f"{text}; 95 % intervals cover {self.coverage:.0%}"


@dataclass(frozen=True)
class HeldBack:
    """Trials on inputs that the surrogate did not see, compared with their prediction.

    `spread` is the mean square of the differences, each in standard deviations: 1 if the intervals are right.
    `scatter` is the variance of such a square by chance alone: 2 for normal numbers, more for rare failures.
    """

    tests: int
    trials: int
    inputs: int
    bias: float
    spread: float
    coverage: float
    scatter: float = 2.0

    @property
    def too_narrow(self) -> bool:
        """Whether the spread is more than chance: the mean of n squares has standard deviation sqrt(scatter / n).

        Errors of tests on the same inputs are correlated: at worst, as many tests as use one input count as one.
        """
        independent = max(1.0, self.tests * self.inputs / self.trials)
        return self.spread > max(TOO_NARROW, 1 + 3 * math.sqrt(self.scatter / independent))

    def line(self) -> str:
        text = (
            f"{self.trials:,} trials of {self.tests:,} tests, on inputs held back: 95 % intervals cover "
            f"{self.coverage:.0%}, squared errors are {self.spread:.2f} times as large as they should be, "
            f"bias {self.bias:+.3f}"
        )
        return f"{text}; the intervals are too narrow here" if self.too_narrow else text


@dataclass(frozen=True)
class HighOrders:
    """Tests of high order predicted from those of order 0 to 2 alone.

    `bias` is the mean of predicted minus measured rates, with a 95 % interval for all tests that could be sampled;
    `error` the mean absolute difference, without sampling noise. `verdict` is "predicted", "not predicted" or
    "doubtful".
    """

    orders: tuple[int, ...]
    tests: int
    error: float
    bias: float
    low: float
    high: float
    verdict: str
    by_order: Mapping[int, float]  # the bias at each
    missing: int  # tests of high order that were not measured
    pairwise: float | None  # error of the surrogate of that name, if it predicts them and this one does not

    @property
    def within(self) -> float:
        return max(self.error, abs(self.low), abs(self.high))

    def line(self) -> str:
        orders = f"order {self.orders[0]}" if len(self.orders) == 1 else f"orders {self.orders[0]} to {self.orders[-1]}"
        if self.verdict == "predicted":
            return f"low orders predict {orders} within {_up(self.within):.2f} on average ({self.tests:,} tests)"
        if self.pairwise is not None:
            return (
                f"low orders predict {orders} within {_up(self.pairwise):.2f} on average with surrogate = 'pairwise' "
                f"({self.tests:,} tests), but not with this one: it is off by {self.bias:+.2f}"
            )
        if self.verdict == "doubtful":
            return (
                f"it is doubtful whether low orders predict {orders}: they are off by {self.bias:+.2f} on average "
                f"({self.low:+.2f} … {self.high:+.2f}, {self.tests:,} tests){self._advice()}"
            )
        if self.low <= 0 <= self.high:
            how = f"they err by {self.error:.2f} on average, in both directions"
        else:
            how = f"they are {'optimistic' if self.bias > 0 else 'pessimistic'} by {abs(self.bias):.2f} on average"
        return f"low orders do not predict high ones here: {how} ({self.tests:,} tests){self._advice()}"

    def _advice(self) -> str:
        return f"; measure more with {strategy(max(50, 2 * self.tests))} or use 'adaptive'" if self.missing else ""


@dataclass(frozen=True)
class OffSurface:
    """A test whose own trials contradict its prediction from all others, so that only its own trials count."""

    test: str
    passes: int | float  # the latter for a sum of scores
    trials: int

    def words(self) -> str:
        if isinstance(self.passes, float):
            return f"{self.test} (mean {self.passes / self.trials:.3f} of {self.trials:,} trials)"
        return f"{self.test} ({self.passes:,} of {self.trials:,} passed)"


@dataclass(frozen=True)
class Trust:
    """Result of `assess`. A part is None if the run does not allow it."""

    left_out: LeftOut | None = None
    held_back: HeldBack | None = None
    high_orders: HighOrders | None = None
    unknown: str | None = None  # why high orders, if there are any, cannot be assessed
    off_surface: tuple[OffSurface, ...] = ()

    def __repr__(self) -> str:
        return "\n".join(self.lines()) or "<Trust: nothing can be said>"

    def as_dict(self) -> Record:
        return {name: plain(value) for name, value in {**vars(self), "lines": self.lines()}.items()}

    @classmethod
    def from_dict(cls, facts: RecordLike) -> Self:
        from pydantic import TypeAdapter

        return TypeAdapter(cls).validate_python(facts)

    def lines(self) -> tuple[str, ...]:
        found = [part.line() for part in (self.left_out, self.held_back, self.high_orders) if part is not None]
        if self.unknown:
            found.append(self.unknown)
        if off := self.off_surface:
            named = "; ".join(one.words() for one in off[:NAMED]) + ("; …" if off[NAMED:] else "")
            many = "1 test contradicts its" if len(off) == 1 else f"{len(off)} tests contradict their"
            found.append(f"{many} neighbours, so that only own trials count there: {named}")
        return tuple(found)


def strategy(extra: int) -> str:
    return f"strategy = {{ use = 'ordered', extra = {extra} }}"


def _up(value: float) -> float:
    return math.ceil(value * 100) / 100
