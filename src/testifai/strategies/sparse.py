"""A budget below a few inputs per test: low orders first, low severities first among them, and a part at random."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from testifai.runs.outcomes import Ids, Places
from testifai.space import Space
from testifai.strategies.draws import blocks, by_weight, in_order

FEWEST = 10  # trials of a test that is run at all
# Tests at the most, of which a larger budget buys more trials each: a fit takes the cube of their number. With 6,000
# inferences on the recorded grid of CIFAR-10 (1,296 tests, four seeds), 10, 20 and 40 trials per test make a mean error
# of .029, .029 and .030.
MOST = 1_000
# Share of the tests taken in order; the others are drawn at random, because a surface is not known where it was never
# seen. On the same grid (650 and 3,000 inferences, ten seeds) the mean error over all tests is .062 and .038 with half
# of them, .063 and .037 with every test alike, .158 and .053 with all of them in order; that of order 1 is .054 and
# .032, .103 and .051, .049 and .031. Drawing the others with every order alike for half of them does no good in a space
# this small: .088 and .043 instead of .080 and .042 with every test alike (six seeds, outcomes alone).
IN_ORDER = 0.5


def low_first(
    space: Space, budget: int, pool: int, generator: np.random.Generator, *, clean: int = 0, weights: str | None = None
) -> tuple[Ids, list[Places]]:
    """Tests, the clean one first, and the places of the inputs each gets; the budget is spent to the last inference.

    The clean test gets `clean` inputs, or as many as any other where that is more. What is drawn at random is drawn by
    `weights` (`by_weight`).
    """
    each = min(pool, max(FEWEST, -(-budget // MOST)))
    first = min(budget, pool, max(each, clean))
    shares = np.concatenate([[first], _shares(budget - first, each)])[: space.size]
    ahead = in_order(space, max(1, round(IN_ORDER * len(shares))), generator)
    in_front = np.concatenate(ahead)
    others = by_weight(space, len(shares) - len(in_front), weights, generator, ahead)
    return np.concatenate([in_front, others]), blocks(shares, pool, generator)


def _shares(budget: int, each: int) -> NDArray[np.int64]:
    """So many trials for each test, and what is left to one more."""
    whole, rest = divmod(budget, each)
    return np.array([each] * whole + [rest] * bool(rest), np.int64)
