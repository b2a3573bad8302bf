"""Partial tomography as published: all tests of low order, the rest predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from testifai.runs.outcomes import Ids
from testifai.strategies.base import Listed, Progress
from testifai.strategies.draws import MOST_LISTED as MOST_LISTED
from testifai.strategies.draws import drawn, equal_shares
from testifai.support.checks import whole

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
        shares = equal_shares(self.extra, [space.count(order) for order in orders])
        extra = [
            drawn(space, order, share, np.random.Generator(np.random.Philox(key=[progress.seed, STREAM + order])))
            for order, share in zip(orders, shares, strict=True)
        ]
        return np.concatenate([space.ids_up_to(self.max_order), *extra])

    def describe(self) -> dict[str, Any]:
        # Left out where there is none: runs made before it existed keep their identity.
        return {"use": self.name, "max_order": self.max_order} | ({"extra": self.extra} if self.extra else {})
