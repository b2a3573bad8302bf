"""What is known of tests, one by one: estimates with their bounds, and the trials behind them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.runs.outcomes import Ids

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RateTable:
    """Estimates of some tests, or of the whole space by configuration id, for all inputs or a part of them."""

    estimate: Floats
    low: Floats
    high: Floats
    passes: NDArray[Any]  # of a score, the sum of its values
    trials: Ids
    alone: NDArray[np.bool_]  # whether the estimate rests on the test's own trials alone

    def at(self, places: Any) -> RateTable:
        """Those at some places."""
        return RateTable(*(getattr(self, one.name)[places] for one in fields(self)))

    def and_(self, other: RateTable) -> RateTable:
        """These and then others."""
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
