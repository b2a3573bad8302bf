"""The clean test's share of a budget: every drop is relative to it, so it is measured, not inferred from neighbours."""

from __future__ import annotations

from testifai.runs.outcomes import Ids
from testifai.space import Space
from testifai.surrogates import Surrogate

LEAST = 1_000  # inputs of the clean test, if available
SHARE = 10  # fraction of a budget that buys more


def clean_trials(budget: int, inputs: int, tests: int) -> int:
    """Return the number of inputs of the clean test: all, or as many as a small budget can spare.

    It is a tenth of the budget, but 1,000 if that is less, as many as other tests get, and at most half of it.
    """
    others = budget if tests == 1 else budget // 2
    return min(inputs, max(LEAST, budget // SHARE, -(-budget // tests)), max(1, others))


def region_of(
    surrogate: Surrogate,
    space: Space,
    ids: Ids,
    clean: tuple[float, float] | None,
    confidence: float = 0.95,
    of: int | None = None,
) -> tuple[float, float]:
    """Return bounds of the mean rate over tests, given those of the clean test, or over the `of` they are a sample of.

    The clean test's bounds are from its own trials, those of the others from the surrogate; their half-widths add up,
    whatever the correlation of their errors. None: the surrogate predicts the clean test too, as it does in a sample.
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
