"""What a query found, as plain values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

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
        bounds = {name: _number(getattr(self, name)) for name in ("robustness", "low", "high")}
        return {"tests": self.tests, "doubtful": self.doubtful, **bounds}


@dataclass(frozen=True)
class Answer:
    """What a query found. An interval bound is NaN where a selected test's estimate has none."""

    robustness: float
    low: float
    high: float
    drop: float
    tests: int
    measured: int
    inferred: int
    worst: tuple[tuple[Sigma, float, float, float], ...]
    # Where a surrogate stands behind the answer: (estimate, low, high) from the tests' own trials alone, and whether
    # the two cannot both be right.
    model_free: tuple[float, float, float] | None = None
    disagrees: bool = False
    # Where the query has a limit on quality.
    excluded: Excluded | None = None

    def _repr_html_(self) -> str:
        html: str = view("answer in a notebook")(self)
        return html

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, None for what does not exist."""
        free = (
            None if self.model_free is None else dict(zip(("robustness", "low", "high"), self.model_free, strict=True))
        )
        return {
            "robustness": _number(self.robustness),
            "low": _number(self.low),
            "high": _number(self.high),
            "drop": _number(self.drop),
            "tests": self.tests,
            "measured": self.measured,
            "inferred": self.inferred,
            "worst": [
                {"configuration": list(sigma), "estimate": _number(e), "low": _number(lo), "high": _number(hi)}
                for sigma, e, lo, hi in self.worst
            ],
            **({} if free is None else {"model_free": free, "disagrees": self.disagrees}),
            **({} if self.excluded is None else {"excluded": self.excluded.as_dict()}),
        }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
