"""Tests sampled from a space of any size, order by order, and the inputs of each; nothing is listed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.runs.outcomes import Ids, Outcomes, Places
from testifai.space import Space
from testifai.space import query as queries
from testifai.space.numbering import Numbering
from testifai.space.selection import Selection
from testifai.strategies.base import Progress
from testifai.support.types import Floats

MOST_LISTED = 1_000_000  # tests of an order that are listed; of more, repeats are rare and cheap to replace
WEIGHTS = ("tests", "orders", "mixed")  # equal probability for every test; for every order; half by either
FEWEST = 10  # trials of a test that is run at all
# Most tests; a larger budget buys more trials each, as the time of a fit is cubic in the number of tests. With 6,000
# inferences on the recorded grid of CIFAR-10 (1,296 tests, four seeds), 10, 20 and 40 trials per test make a mean error
# of .029, .029 and .030.
MOST = 1_000
# Share of the tests taken in order; the others are random, because a surface is unknown where it was never measured. On
# the same grid (650 and 3,000 inferences, ten seeds) the mean error over all tests is .062 and .038 with half of them,
# .063 and .037 with every test alike, .158 and .053 with all of them in order; that of order 1 is .054 and .032, .103
# and .051, .049 and .031. Sampling the others with every order alike for half of them does not help in a space this
# small: .088 and .043 instead of .080 and .042 with every test alike (six seeds, outcomes alone).
IN_ORDER = 0.5
FRESH = 1_000  # random tests that are tracked besides the measured ones in a space too large to list
SAMPLED = 2_000  # tests that represent those of a query
STREAM = 1 << 40  # the random numbers of round n are stream STREAM + n of the run's seed

Counts = NDArray[np.int64]


def of_order(space: Space, order: int, within: Ids) -> Ids:
    space.require_numbers()
    ranks = sum(space.count(lower) for lower in range(order)) + within
    if space.order_sensitive:
        return ranks  # there, a test's id is its place in the sequence by order
    positions = Numbering([len(axis.severities) - 1 for axis in space.axes]).unrank(ranks)
    columns = zip(space.axes, positions, strict=True)
    return space.ids(np.stack([np.array(axis.severities)[column] for axis, column in columns], axis=1))


def distinct(draw: Callable[[int], Ids], wanted: int, excluded: Collection[int] = ()) -> list[int]:
    found: dict[int, None] = {}
    while len(found) < wanted:
        found |= dict.fromkeys(one for one in draw(wanted - len(found)).tolist() if one not in excluded)
    return list(found)


def drawn(space: Space, order: int, wanted: int, generator: np.random.Generator, taken: Ids | None = None) -> Ids:
    """Sample different tests of one order, none of those taken; the first ones do not depend on how many."""
    if wanted == 0:
        return np.empty(0, np.int64)
    taken = np.empty(0, np.int64) if taken is None else taken
    count = space.count(order)
    if count <= MOST_LISTED:
        ids = of_order(space, order, generator.permutation(count)[: wanted + len(taken)])
        return ids[~np.isin(ids, taken)][:wanted]
    more = distinct(lambda n: of_order(space, order, generator.integers(count, size=n)), wanted, set(taken.tolist()))
    return np.array(more, np.int64)


def in_order(space: Space, wanted: int, generator: np.random.Generator) -> list[Ids]:
    """Return the first tests of each order, by sum of severities, ties at random; any of an order too large to list."""
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
    """Sample different tests, none of those taken (by order).

    Without `weights`, every test is equally probable, but in a space too large to list half are of equal shares of all
    orders: low and middle orders would not be sampled at all.
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
    """Distribute `wanted` over the available as equally as possible, the remainder to the first."""
    shares = [0] * len(available)
    while open_ := [i for i, most in enumerate(available) if shares[i] < most]:
        each, left = divmod(wanted - sum(shares), len(open_))
        if not each and not left:
            break
        for place, i in enumerate(open_):
            shares[i] = min(available[i], shares[i] + each + (place < left))
    return shares


def _alike(wanted: int, room: Sequence[int], generator: np.random.Generator) -> list[int]:
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
    """Return consecutive blocks of successive permutations of the pool, no place twice in a block."""
    # Places are in the run's random order, so the first of them are a random sample of the inputs.
    blocks, current = [], generator.permutation(pool)
    for share in counts.tolist():
        block, current = current[:share], current[share:]
        if len(block) < share:
            fresh = generator.permutation(pool)
            # Places in the block are postponed until after it.
            chosen = np.flatnonzero(~np.isin(fresh, block))[: share - len(block)]
            block, current = np.concatenate([block, fresh[chosen]]), np.delete(fresh, chosen)
        blocks.append(block)
    return blocks


def low_first(
    space: Space, budget: int, pool: int, generator: np.random.Generator, *, clean: int = 0, weights: str | None = None
) -> tuple[Ids, list[Places]]:
    """Return tests, the clean one first, and the places of each one's inputs; the whole budget is spent.

    Half of the tests are those of lowest order, the others are sampled by `weights` (`by_weight`).
    """
    each = min(pool, max(FEWEST, -(-budget // MOST)))
    first = min(budget, pool, max(each, clean))
    tests, rest = divmod(budget - first, each)
    shares = np.array([first, *[each] * tests, *[rest] * bool(rest)], np.int64)[: space.size]
    ahead = in_order(space, max(1, round(IN_ORDER * len(shares))), generator)
    in_front = np.concatenate(ahead)
    others = by_weight(space, len(shares) - len(in_front), weights, generator, ahead)
    return np.concatenate([in_front, others]), blocks(shares, pool, generator)


def shared_out(size: int, need: Floats, room: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return integer shares in proportion to need, none above its room; the excess goes to the others."""
    shares = np.zeros(len(need), np.int64)
    left = min(size, int(room.sum()))
    need = np.where(room > 0, np.maximum(need, 1e-9), 0.0)
    while left > 0:
        open_ = shares < room
        wanted = left * np.where(open_, need, 0) / need[open_].sum()
        step = np.minimum(np.floor(wanted).astype(np.int64), room - shares)
        if not step.any():
            # Fewer than one each: the remainder goes to the greatest needs, ties by number.
            order = np.lexsort((np.arange(len(need)), -np.where(open_, wanted, -1)))[:left]
            step[order[open_[order]]] = 1
        shares += step
        left -= int(step.sum())
    return shares


@dataclass(frozen=True)
class TrackedTests:
    """Tests by number, ascending, the clean one first, and their weights."""

    ids: Ids
    weights: Floats


def watched(
    progress: Progress, known: Outcomes, number: int, chosen: Sequence[Selection], weights: str | None
) -> TrackedTests:
    """Return all tests; of a space too large for that the measured ones, and others sampled for this round."""
    space = progress.space
    if space.listed:
        ids = np.arange(space.size)
    else:
        generator = np.random.Generator(np.random.Philox(key=[progress.seed, STREAM + number]))
        fresh = [one.sample(-(-FRESH // len(chosen)), generator) for one in chosen]
        fresh = fresh or [by_weight(space, FRESH, weights, generator)]
        ids = np.union1d(np.array([0, *known], np.int64), np.concatenate(fresh))
    counts = np.zeros(len(ids)) if chosen else np.ones(len(ids))
    for selection in chosen:
        there = selection.contains(ids).astype(np.float64)
        counts += there / max(1.0, there.sum())
    return TrackedTests(ids, counts)


def selections(space: Space, expressions: Sequence[str], option: str = "for_queries") -> list[Selection]:
    found = []
    for expression in expressions:
        # Quality is unknown here: tests that it may exclude are included.
        asked = queries.compile(expression, [*space.column_names, "quality"], space.levels, space.sequenced)
        chosen = Selection(space, asked.without("quality"))
        if not chosen.count:
            raise InputError(f'{option}: "{queries.printable(expression, 200)}" selects no test')
        found.append(chosen)
    return found


def representative_tests(selection: Selection, seed: int) -> Ids:
    if selection.space.listed:
        return selection.ids()
    return selection.sample(SAMPLED, np.random.Generator(np.random.Philox(key=[seed, STREAM])))
