"""Intervals of several queries hold all at once, after adaptive plans with a small part of all inferences."""

from __future__ import annotations

from functools import partial

import numpy as np
from replay import Grid, replay

from promises import Promise
from promises.gates import INPUTS, POPULATIONS
from testifai.tomogram import Tomogram
from testifai.tomogram.regions import standard_queries


def ran(kind: str, rate: float, share: float, seed: int) -> tuple[Tomogram, Grid, list[str]]:
    """A run with a share of all inferences, its grid, and the standard queries of its space."""
    passed = POPULATIONS[kind](rate, np.random.default_rng([seed, 17]))
    grid = Grid(("a", "b"), INPUTS, np.packbits(passed, axis=-1))
    run = replay(grid, "adaptive", budget=round(share * passed.size), seed=seed)
    return run, grid, list(standard_queries(grid.space).values())


def together(kind: str, rate: float, share: float, seed: int) -> tuple[int, int]:
    """Whether the simultaneous intervals of all standard queries cover."""
    run, grid, asked = ran(kind, rate, share, seed)
    truth = grid.truth.reshape(-1)
    covered = [
        answer.low <= truth[run.select(one)].mean() <= answer.high
        for one, answer in zip(asked, run.queries(asked), strict=True)
    ]
    return int(all(covered)), 1


def single(kind: str, rate: float, share: float, seed: int) -> tuple[int, int]:
    """How many of the standard queries' own 95 % intervals cover."""
    run, grid, asked = ran(kind, rate, share, seed)
    truth = grid.truth.reshape(-1)
    answers = [(truth[run.select(one)].mean(), run.query(one)) for one in asked]
    return int(sum(answer.low <= mean <= answer.high for mean, answer in answers)), len(asked)


def _promise(
    kind: str, rate: float, share: float, told: str, *, at_once: bool = True, at_least: float = 0.95
) -> Promise:
    what = "The intervals of `queries` all cover at once" if at_once else "The interval of a `query` covers"
    return Promise(
        name=f"{'queries' if at_once else 'query'}-{kind.replace('_', '-')}-{rate:g}-{share:g}",
        promised=f"{what}, in {at_least:.0%} of runs",
        assumes=f"{told}, rate {rate:g}; 800 inputs, 4 × 4 tests, adaptive with {share:.0%} of all inferences",
        simulate=partial(together if at_once else single, kind, rate, share),
        at_least=at_least,
        seeds=400,
    )


SLOPE = "rates fall with severity, inputs have a luck of their own"
SAME = "the same inputs fail in all tests"
PROMISES = [
    _promise("sloping", 0.95, 0.05, SLOPE),
    _promise("sloping", 0.95, 0.08, SLOPE),
    _promise("sloping", 0.7, 0.05, SLOPE),
    _promise("sloping", 0.7, 0.08, SLOPE),
    _promise("same_inputs", 0.975, 0.05, SAME),
    _promise("sloping", 0.95, 0.06, SLOPE, at_once=False, at_least=0.93),
    _promise("same_inputs", 0.975, 0.06, SAME, at_once=False, at_least=0.93),
    _promise("same_inputs", 0.99, 0.06, SAME, at_once=False, at_least=0.93),
]
