"""The clean test's share of a budget: every drop is from there, so it is measured and not left to its neighbours."""

from __future__ import annotations

import numpy as np

from testifai.runs.outcomes import Ids
from testifai.space import Space
from testifai.support.types import Bools
from testifai.surrogates import Surrogate

# Inputs that the clean test gets where there are so many, and its share of a budget that buys more.
LEAST = 1_000
SHARE = 10


def clean_trials(budget: int, inputs: int, tests: int) -> int:
    """How many inputs the clean test is tried on: all, or as many as a small budget can spare.

    That is a tenth of the budget, but 1,000 if that is less, as many as other tests get, and at most half of it.

    >>> [clean_trials(budget, 10_000, 1296) for budget in (1_000_000, 12_960, 5_000, 400)]
    [10000, 1296, 1000, 200]
    >>> clean_trials(30_000, 10_000, 3)
    10000
    """
    others = budget if tests == 1 else budget // 2
    return min(inputs, max(LEAST, budget // SHARE, -(-budget // tests)), max(1, others))


def region(
    surrogate: Surrogate,
    space: Space,
    chosen: Bools,
    clean: tuple[float, float] | None,
    confidence: float = 0.95,
) -> tuple[float, float]:
    """Bounds of the mean rate over the chosen tests (flat by configuration id), with those of the clean test given."""
    return region_of(surrogate, space, np.flatnonzero(chosen), clean, confidence)


def region_of(
    surrogate: Surrogate,
    space: Space,
    ids: Ids,
    clean: tuple[float, float] | None,
    confidence: float = 0.95,
    of: int | None = None,
) -> tuple[float, float]:
    """Bounds of the mean rate over tests, with those of the clean test given, or over the `of` they are a sample of.

    Its own trials say how far the clean test may be off, and the surrogate says it of the others together: their
    half-widths add up, whatever the errors have in common. None: the surrogate speaks for the clean test too, as it
    does for one test of a sample.
    """
    others = ids[ids != 0]
    drawn = of is not None and of > len(ids)
    if clean is None or drawn or len(others) == len(ids):
        return surrogate.region(space.matrix(ids), confidence, of)[1:]
    if not len(others):
        return clean
    _, low, high = surrogate.region(space.matrix(others), confidence)
    share = 1 / len(ids)
    return (1 - share) * low + share * clean[0], (1 - share) * high + share * clean[1]
