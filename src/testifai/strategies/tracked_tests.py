"""The tests that a strategy tracks, in a space of any size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from testifai.errors import InputError
from testifai.runs.outcomes import Ids, Outcomes
from testifai.space import Space
from testifai.space import query as queries
from testifai.space.selection import Selection
from testifai.strategies.base import Progress
from testifai.strategies.draws import by_weight
from testifai.support.types import Floats

FRESH = 1_000  # random tests that are tracked besides the measured ones in a space too large to list
SAMPLED = 2_000  # tests that represent those of a query
STREAM = 1 << 40  # the random numbers of round n are stream STREAM + n of the run's seed


@dataclass(frozen=True)
class TrackedTests:
    """Tests by number, ascending, the clean one first, and their weights."""

    ids: Ids
    weights: Floats


def watched(
    progress: Progress, known: Outcomes, number: int, chosen: Sequence[Selection], weights: str | None
) -> TrackedTests:
    """Return all tests; of a space too large for that the measured ones, and others sampled for this round.

    Weights are equal, or shares in what the queries select.
    """
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
