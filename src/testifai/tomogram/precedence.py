"""Which of two perturbations is better applied first, in a space in which the order of application counts."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

from testifai.space.query import before
from testifai.statistics.corrections import confidence_each
from testifai.tomogram.answers import Answer
from testifai.tomogram.tomogram import Tomogram

MOST_PAIRS = 15  # of axes, each asked about twice


@dataclass(frozen=True)
class Precedence:
    """Two perturbations over all tests that have both: the rate is higher with the first applied before the second."""

    first: str
    second: str
    before: Answer
    after: Answer

    @property
    def difference(self) -> float:
        return self.before.robustness - self.after.robustness

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        answers = {"before": self.before.as_dict(), "after": self.after.as_dict()}
        return {"first": self.first, "second": self.second, **answers}


def precedences(tomogram: Tomogram) -> list[Precedence] | None:
    """The pairs whose order makes a difference beyond the noise, the largest first; None where that was not asked.

    It is not in a plain space, in one too large to list, where there are many pairs, and where answers have no
    interval. At most 5 % of the runs in which no order matters have any: the intervals hold together, and the errors of
    the two answers, of which a part is the same, count as if they were independent.
    """
    pairs = list(itertools.combinations(tomogram.space.sequenced, 2))
    if not tomogram.space.listed or not 0 < len(pairs) <= MOST_PAIRS:
        return None
    confidence = confidence_each(len(pairs))
    found = []
    for pair in pairs:
        asked = [(tomogram.query(before(a, b), confidence=confidence), a, b) for a, b in (pair, pair[::-1])]
        (worse, second, first), (better, _, _) = sorted(asked, key=lambda one: one[0].robustness)
        apart = better.robustness - worse.robustness
        noise = math.hypot(better.robustness - better.low, worse.high - worse.robustness)
        if math.isnan(noise):
            return None
        if apart > noise:
            found.append(Precedence(first, second, better, worse))
    return sorted(found, key=lambda one: -one.difference)
