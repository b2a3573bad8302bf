"""Clean accuracy: the interval of the clean test holds the rate on all inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from replay import Grid, replay

from promises import Promise

INPUTS, LEVELS = 5_000, 3  # of 2 axes
BUDGETS = {"small": 1_500, "large": 12_000}


@dataclass(frozen=True)
class Run:
    """A model that gets so many clean inputs right and fewer with severity, scanned with a strategy and a budget.

    Failures grow fast from the clean test on: what its neighbours say of it misleads.
    """

    strategy: str
    rate: float
    budget: int

    def __call__(self, seed: int) -> tuple[int, int]:
        """Whether the interval holds the clean accuracy."""
        rank = np.random.default_rng([seed, self.budget]).permutation(INPUTS)  # the hardest first
        loads = np.add.outer(*[np.r_[0.0, 0.04, 0.10]] * 2)
        failing = np.round(INPUTS * (1 - self.rate + loads)).astype(int)
        grid = Grid(("a", "b"), INPUTS, np.packbits(rank >= failing[..., None], axis=-1))
        truth = grid.truth.flat[0]
        found = replay(grid, self.strategy, budget=self.budget, seed=seed).clean
        return int(found.low <= truth + 1e-12 and truth <= found.high + 1e-12), 1


PROMISES = [
    Promise(
        f"clean_{strategy}_{rate:g}_{size}",
        f"clean accuracy of {rate:g} lies in its 95 % interval after `{strategy}` with {budget:,} inferences",
        f"{INPUTS:,} inputs; {LEVELS} × {LEVELS} tests",
        Run(strategy, rate, budget),
        at_least=0.95,
    )
    for strategy in ("adaptive", "balanced")
    for rate in (0.9, 0.99, 0.999)
    for size, budget in BUDGETS.items()
]
