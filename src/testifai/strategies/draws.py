"""Tests drawn from a space of any size, order by order, and the inputs that each of them gets; nothing is listed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from testifai.runs.outcomes import Ids, Places
from testifai.space import Space
from testifai.space.numbering import Numbering

# Up to here the tests of an order are listed; beyond, repeats are rare and drawing again costs nothing.
MOST_LISTED = 1_000_000
WEIGHTS = ("tests", "orders", "mixed")  # every test alike; every order alike; half by either

Counts = NDArray[np.int64]


def of_order(space: Space, order: int, within: Ids) -> Ids:
    """The tests of an order by their place among them.

    >>> from testifai import Perturbation
    >>> space = Space({name: Perturbation(name, lambda batch, by, rng: batch, range(3)) for name in "ab"})
    >>> space.matrix(of_order(space, 2, np.array([0, 3]))).tolist()
    [[1, 1], [2, 2]]
    """
    space.require_numbers()
    ranks = sum(space.count(lower) for lower in range(order)) + within
    if space.order_sensitive:
        return ranks  # there, a test's id is its place in the sequence by order
    positions = Numbering([len(axis.severities) - 1 for axis in space.axes]).unrank(ranks)
    columns = zip(space.axes, positions, strict=True)
    return space.ids(np.stack([np.array(axis.severities)[column] for axis, column in columns], axis=1))


def drawn(space: Space, order: int, wanted: int, generator: np.random.Generator, taken: Ids | None = None) -> Ids:
    """Tests of one order drawn without repeats, none of those taken; the first ones do not depend on how many."""
    if wanted == 0:
        return np.empty(0, np.int64)
    taken = np.empty(0, np.int64) if taken is None else taken
    count = space.count(order)
    if count <= MOST_LISTED:
        ids = of_order(space, order, generator.permutation(count)[: wanted + len(taken)])
        return ids[~np.isin(ids, taken)][:wanted]
    found: dict[int, None] = {}
    known = set(taken.tolist())
    while len(found) < wanted:
        more = of_order(space, order, generator.integers(count, size=wanted - len(found)))
        found |= dict.fromkeys(test for test in more.tolist() if test not in known)
    return np.array(list(found), np.int64)


def in_order(space: Space, wanted: int, generator: np.random.Generator) -> list[Ids]:
    """The first tests by order and sum of severities, ties at random: a list for each order.

    Of an order too large to list, any.
    """
    found: list[Ids] = []
    for order in range(len(space.axes) + 1):
        count = space.count(order)
        left = min(wanted - sum(map(len, found)), count)
        if 0 < left < count <= MOST_LISTED:
            ids = of_order(space, order, np.arange(count))
            severity = space.matrix(ids)[:, : len(space.axes)].sum(axis=1)
            found.append(ids[np.lexsort((generator.random(count), severity))[:left]])
        else:
            found.append(drawn(space, order, left, generator))
    return found


def by_weight(
    space: Space, wanted: int, weights: str | None, generator: np.random.Generator, taken: Sequence[Ids] = ()
) -> Ids:
    """Tests drawn at random without repeats, none of those taken (by order).

    Without `weights`, every test is as likely, but in a space too large to list half go to every order alike: low and
    middle orders would not be seen at all.
    """
    weights = weights or ("tests" if space.listed else "mixed")
    taken = [*taken, *[np.empty(0, np.int64)] * (len(space.axes) + 1 - len(taken))]
    room = [space.count(order) - len(ids) for order, ids in enumerate(taken)]
    by_order = {"tests": 0, "orders": wanted, "mixed": wanted // 2}[weights]
    shares = equal_shares(by_order, room)
    room = [most - share for most, share in zip(room, shares, strict=True)]
    shares = [a + b for a, b in zip(shares, _alike(wanted - sum(shares), room, generator), strict=True)]
    found = [drawn(space, order, share, generator, taken[order]) for order, share in enumerate(shares)]
    return generator.permutation(np.concatenate(found))


def equal_shares(wanted: int, available: Sequence[int]) -> list[int]:
    """As many of each as can be, as equally as can be, what is left over to the first.

    >>> equal_shares(10, [1, 20, 20])
    [1, 5, 4]
    """
    shares = [0] * len(available)
    while open_ := [i for i, most in enumerate(available) if shares[i] < most]:
        each, left = divmod(wanted - sum(shares), len(open_))
        if not each and not left:
            break
        for place, i in enumerate(open_):
            shares[i] = min(available[i], shares[i] + each + (place < left))
    return shares


def _alike(wanted: int, room: Sequence[int], generator: np.random.Generator) -> list[int]:
    """How many of so many tests fall on each order, every test being as likely."""
    total = sum(room)
    if wanted >= total:
        return list(room)
    if total < 10**9:
        return [int(share) for share in generator.multivariate_hypergeometric(np.array(room, np.int64), wanted)]
    shares = generator.multinomial(wanted, [most / total for most in room])
    fitting = [min(int(share), most) for share, most in zip(shares, room, strict=True)]
    fitting[int(np.argmax(room))] += wanted - sum(fitting)
    return fitting


def blocks(counts: Counts, pool: int, generator: np.random.Generator) -> list[Places]:
    """Consecutive blocks of successive permutations of the pool, no place twice in a block."""
    # Places stand in the run's random order, so the first of them are a random sample of the inputs.
    blocks, current = [], generator.permutation(pool)
    for share in counts.tolist():
        block, current = current[:share], current[share:]
        if len(block) < share:
            fresh = generator.permutation(pool)
            # What the block holds from the last permutation waits until after it.
            chosen = np.flatnonzero(~np.isin(fresh, block))[: share - len(block)]
            block, current = np.concatenate([block, fresh[chosen]]), np.delete(fresh, chosen)
        blocks.append(block)
    return blocks


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
