"""Partial tomography as published: all tests of low order, the rest predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from testifai.errors import InputError
from testifai.runs.outcomes import Ids
from testifai.space import Space
from testifai.space.numbering import Numbering
from testifai.strategies.base import Listed, Progress
from testifai.support.checks import whole

# Up to here the tests of an order are shuffled as a whole; beyond, repeats are rare and drawing again costs nothing.
MOST_LISTED = 1_000_000
STREAM = 1 << 32  # the random numbers of order t are stream STREAM + t of the run's seed


@dataclass(frozen=True)
class Ordered(Listed):
    """Run all configurations with at most `max_order` perturbations at once (TestifAI, section 4.2).

    `extra` tests of higher order are run too, equally many of each order, drawn at random: they show whether low orders
    predict high ones. More of them contain fewer of them, so a run can be continued with more.

    >>> Ordered(extra=10).describe()
    {'use': 'ordered', 'max_order': 2, 'extra': 10}
    """

    max_order: int = 2
    extra: int = 0
    name = "ordered"

    def __post_init__(self) -> None:
        whole("strategy: max_order", self.max_order, least=1)
        whole("strategy: extra", self.extra, least=0)

    def tests(self, progress: Progress) -> Ids:
        space, orders = progress.space, range(self.max_order + 1, len(progress.space.axes) + 1)
        shares = _shares(self.extra, [space.count(order) for order in orders])
        drawn = [_draw(space, order, share, progress.seed) for order, share in zip(orders, shares, strict=True)]
        return np.concatenate([space.ids_up_to(self.max_order), *drawn])

    def describe(self) -> dict[str, Any]:
        # Left out where there is none: runs made before it existed keep their identity.
        return {"use": self.name, "max_order": self.max_order} | ({"extra": self.extra} if self.extra else {})


def _shares(wanted: int, available: list[int]) -> list[int]:
    """As many of each as can be, as equally as can be, what is left over to the first."""
    shares = [0] * len(available)
    while open_ := [i for i, most in enumerate(available) if shares[i] < most]:
        each, left = divmod(wanted - sum(shares), len(open_))
        if not each and not left:
            break
        for place, i in enumerate(open_):
            shares[i] = min(available[i], shares[i] + each + (place < left))
    return shares


def _draw(space: Space, order: int, wanted: int, seed: int) -> Ids:
    """Tests of one order drawn without replacement; the first ones do not depend on how many."""
    if wanted == 0:
        return np.empty(0, np.int64)
    if space.size > np.iinfo(np.int64).max:
        raise InputError(f"strategy: extra tests cannot be drawn from {space.size} tests; accepted: up to 2^63")
    count = space.count(order)
    generator = np.random.Generator(np.random.Philox(key=[seed, STREAM + order]))
    if count <= MOST_LISTED:
        within = generator.permutation(count)[:wanted]
    else:
        drawn: dict[int, None] = {}
        while len(drawn) < wanted:
            drawn |= dict.fromkeys(generator.integers(count, size=wanted - len(drawn)).tolist())
        within = np.array(list(drawn), np.int64)
    ranks = sum(space.count(lower) for lower in range(order)) + within
    if space.order_sensitive:
        return ranks  # there, a test's id is its place in the sequence by order
    positions = Numbering([len(axis.severities) - 1 for axis in space.axes]).unrank(ranks)
    columns = zip(space.axes, positions, strict=True)
    return space.ids(np.stack([np.array(axis.severities)[column] for axis, column in columns], axis=1))
