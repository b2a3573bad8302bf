"""The clean test's share of a budget: every drop is from there, so it is measured and not left to its neighbours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from testifai.space import Space
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
    chosen: NDArray[np.bool_],
    clean: tuple[float, float] | None,
    confidence: float = 0.95,
) -> tuple[float, float]:
    """Bounds of the mean rate over the chosen tests (flat by configuration id), with those of the clean test given.

    Its own trials say how far the clean test may be off, and the surrogate says it of the others together: their
    half-widths add up, whatever the errors have in common. None: the surrogate speaks for the clean test too.
    """
    apart = clean is not None and bool(chosen[0])
    ids = np.flatnonzero(chosen)[1 if apart else 0 :]
    if clean is None or not apart:
        return surrogate.region(space.matrix(ids), confidence)[1:]
    if not len(ids):
        return clean
    _, low, high = surrogate.region(space.matrix(ids), confidence)
    share = 1 / (len(ids) + 1)
    return (1 - share) * low + share * clean[0], (1 - share) * high + share * clean[1]
