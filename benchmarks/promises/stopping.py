"""Intervals of tests that a rule ended cover, whatever the rate."""

from __future__ import annotations

from functools import partial

import numpy as np
from replay import Grid, replay

from promises import Promise

INPUTS, TESTS = 2_000, 20
RATES = (0.5, 0.9, 0.99, 1.0)


def covered(rate: float, rule: str, target: float, seed: int) -> tuple[int, int]:
    """How many of a run's tests, each with its own inputs' luck, are covered where a rule ended them."""
    random = np.random.default_rng([seed, 18])
    passed = np.argsort(random.random((TESTS, INPUTS)), axis=-1) < round(rate * INPUTS)
    grid = Grid(("a",), INPUTS, np.packbits(passed, axis=-1))
    options = {"target": target} if target else {"stopping": rule}
    run = replay(grid, "full", "none", seed=seed, **options)
    return int(((run.low <= grid.truth) & (grid.truth <= run.high)).sum()), TESTS


PROMISES = [
    Promise(
        name=f"stopping-{rule}-{rate:g}" + (f"-{target:g}" if target else ""),
        promised=f"The interval of a test ended by the rule `{rule}` covers in 95 % of cases",
        assumes=f"rate {rate:g}, 2,000 inputs" + (f", target {target:g}" if target else ""),
        simulate=partial(covered, rate, rule, target),
        at_least=0.95,
        seeds=100,
    )
    for rule, target in (("interval", 0.02), ("interval", 0.05), ("window-cumulative", 0.0))
    for rate in RATES
]
