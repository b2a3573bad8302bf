"""What a query found, as plain values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from testifai.support.plain import plain
from testifai.support.views import view

Sigma = tuple[int, ...]


@dataclass(frozen=True)
class Excluded:
    """The tests that a query would select but for its limit on quality: how many, and the robustness on them.

    `doubtful` counts the tests, selected or excluded, whose quality is not known well enough to tell on which side of
    the limit they are. Without excluded tests there is no robustness: NaN.
    """

    tests: int
    doubtful: int
    robustness: float
    low: float
    high: float

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, None for what does not exist."""
        return {name: plain(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class Answer:
    """What a query found. An interval bound is NaN where a selected test's estimate has none.

    Attributes:
        robustness: the mean over the selected tests
        low: the lower end of its interval
        high: the upper end
        drop: robustness less that on clean inputs
        tests: how many the query selects
        measured: those whose estimate rests on their own trials alone
        inferred: those whose estimate rests on other tests too
        worst: the lowest five: (configuration, estimate, low, high)
        model_free: (estimate, low, high) from the tests' own trials alone; None where nothing else is behind the
            answer
        disagrees: whether these and the surrogate cannot both be right; the answer is then that of the trials
        excluded: what a limit on quality leaves out; None: there is no limit
        modelled: what the surrogate said, where it is not the answer
    """

    robustness: float
    low: float
    high: float
    drop: float
    tests: int
    measured: int
    inferred: int
    worst: tuple[tuple[Sigma, float, float, float], ...]
    # Where a surrogate stands behind the answer: (estimate, low, high) from the tests' own trials alone, and whether
    # the two cannot both be right. Then the answer is that of the trials, and `modelled` is the surrogate's.
    model_free: tuple[float, float, float] | None = None
    disagrees: bool = False
    # Where the query has a limit on quality.
    excluded: Excluded | None = None
    modelled: tuple[float, float, float] | None = None

    def __repr__(self) -> str:
        ends = "no interval" if math.isnan(self.low) else f"{self.low:.3f} … {self.high:.3f}"
        found = f"{self.robustness:.3f} ({ends}), drop {self.drop:+.3f}"
        return f"<Answer {found}, over {self.tests:,} tests: {self.measured:,} measured, {self.inferred:,} predicted>"

    def _repr_html_(self) -> str:
        html: str = view("answer in a notebook")(self)
        return html

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, None for what does not exist."""
        names = ("robustness", "low", "high", "drop", "tests", "measured", "inferred")
        found = {name: getattr(self, name) for name in names}
        found["worst"] = [
            dict(zip(("configuration", "estimate", "low", "high"), one, strict=True)) for one in self.worst
        ]
        if self.model_free is not None:
            found["model_free"] = dict(zip(("robustness", "low", "high"), self.model_free, strict=True))
            found["disagrees"] = self.disagrees
        if self.modelled is not None:
            found["modelled"] = dict(zip(("robustness", "low", "high"), self.modelled, strict=True))
        if self.excluded is not None:
            found["excluded"] = self.excluded
        return {name: plain(value) for name, value in found.items()}
