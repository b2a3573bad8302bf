"""The tests that a strategy keeps an eye on, in a space of any size."""

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

FRESH = 1_000  # others, drawn at random, that are watched beside the measured ones in a larger space
SAMPLED = 2_000  # tests that stand for those of a query where it selects more
STREAM = 1 << 40  # the random numbers of round n are stream STREAM + n of the run's seed


@dataclass(frozen=True)
class TrackedTests:
    """Tests by number, ascending, the clean one first, and how much each of them counts."""

    ids: Ids
    weights: Floats


def watched(
    progress: Progress, known: Outcomes, number: int, chosen: Sequence[Selection], weights: str | None
) -> TrackedTests:
    """All tests; of a space too large for that those measured, and others drawn for the round of this number.

    Tests count alike, or by their share in what the queries select.
    """
    ids = _ids(progress, known, number, chosen, weights)
    counts = np.zeros(len(ids)) if chosen else np.ones(len(ids))
    for selection in chosen:
        there = selection.contains(ids).astype(np.float64)
        counts += there / max(1.0, there.sum())
    return TrackedTests(ids, counts)


def _ids(progress: Progress, known: Outcomes, number: int, chosen: Sequence[Selection], weights: str | None) -> Ids:
    space = progress.space
    if space.listed:
        return np.arange(space.size)
    generator = np.random.Generator(np.random.Philox(key=[progress.seed, STREAM + number]))
    fresh = [one.sample(-(-FRESH // len(chosen)), generator) for one in chosen]
    return np.union1d(
        np.array([0, *known], np.int64), np.concatenate(fresh or [by_weight(space, FRESH, weights, generator)])
    )


def selections(space: Space, expressions: Sequence[str]) -> list[Selection]:
    """What each query selects; one that selects no test is an InputError."""
    found = []
    for expression in expressions:
        # What quality excludes is not known here: all that may be asked about is looked at.
        asked = queries.compile(expression, [*space.column_names, "quality"], space.levels, space.sequenced)
        compiled = asked.without("quality")
        chosen = Selection(space, compiled)
        if not chosen.count:
            raise InputError(f'for_queries: "{queries.printable(expression, 200)}" selects no test')
        found.append(chosen)
    return found


def representative_tests(selection: Selection, seed: int) -> Ids:
    """Tests that stand for what a query selects: all of them, or a sample in a space too large for that."""
    if selection.space.listed:
        return selection.ids()
    return selection.sample(SAMPLED, np.random.Generator(np.random.Philox(key=[seed, STREAM])))
