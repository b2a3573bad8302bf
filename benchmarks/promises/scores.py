"""Means of scores in 0..1: intervals of tests by themselves hold them, and gates about them are decided rightly."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray
from replay import Grid, replay
from scipy.special import betaincinv, ndtr

from promises import Promise
from testifai.gates.strategy import GateStrategy
from testifai.gates.verdicts import judge
from testifai.spec.parsing import Gate
from testifai.statistics.means import Moments, mean_interval

INPUTS, LEVELS = 400, 4
RUNS = 50  # tests by themselves, to a seed
HAIR = 1e-6

Scores = NDArray[np.float64]


def two_points(mean: Scores, luck: Scores) -> Scores:
    """Passes and failures."""
    return (luck < mean).astype(np.float64)


def skewed(mean: Scores, luck: Scores) -> Scores:
    """Beta variables."""
    return np.asarray(betaincinv(9 * mean, 9 * (1 - mean), luck))


def constant(mean: Scores, luck: Scores) -> Scores:
    """The same for every input, but for a few that are worth nothing."""
    return np.where(luck < 0.01, 0.0, mean)


def mixed(mean: Scores, luck: Scores) -> Scores:
    """1 for many inputs, 0 for some, and anything in between."""
    between = skewed(mean, luck)
    return np.where(luck < 0.5 * (1 - mean) ** 2, 0.0, np.where(luck > 1 - mean**2, 1.0, between))


KINDS = {
    two_points: "passes and failures",
    skewed: "skewed scores",
    constant: "equal scores but for one in a hundred",
    mixed: "scores of 0, of 1 and in between",
}


def alone(kind: str, trials: int, seed: int) -> tuple[int, int]:
    """How many intervals of tests tried on so many of their inputs hold the mean on all of them."""
    random = np.random.default_rng([seed, trials])
    made = {one.__name__: one for one in KINDS}[kind]
    scores = made(random.uniform(0.05, 0.95, (RUNS, 1)), random.random((RUNS, INPUTS)))
    low, high = mean_interval(Moments.of(scores[:, :trials]), INPUTS)
    truth = scores.mean(axis=1)
    return int(np.count_nonzero((low <= truth + 1e-9) & (truth <= high + 1e-9))), RUNS


def wrong(kind: str, side: int, seed: int) -> tuple[int, int]:
    """Whether a run decides wrongly on a gate whose requirement is above the true mean (side 1) or below it (-1)."""
    random = np.random.default_rng([seed, 17])
    a, b = np.indices((LEVELS, LEVELS))
    luck = ndtr(0.6**0.5 * random.normal(size=INPUTS) + 0.4**0.5 * random.normal(size=(LEVELS, LEVELS, INPUTS)))
    made = {one.__name__: one for one in KINDS}[kind]
    scores = made((0.9 - 0.08 * (a + b))[..., None], luck).astype(np.float32)
    grid = Grid(("a", "b"), INPUTS, np.packbits(scores >= 0.5, axis=-1), score="f1", scores=scores)
    gate = Gate(query="a >= 0", at_least=float(grid.means.mean()) + side * HAIR, score="f1")
    run = replay(grid, GateStrategy(gates=(gate,)), seed=seed, score="f1")
    return int(judge([gate], run)[0].status == ("holds" if side > 0 else "fails")), 1


PROMISES = [
    *(
        Promise(
            f"scores-alone-{kind.__name__.replace('_', '-')}-{trials}",
            "The mean score of a test lies in the 95 % interval of its own trials",
            f"{told}; {trials} of {INPUTS} inputs",
            partial(alone, kind.__name__, trials),
            at_least=0.95,
        )
        for kind, told in KINDS.items()
        for trials in (5, 30)
    ),
    *(
        Promise(
            f"scores-gate-{'holds' if side > 0 else 'fails'}-{kind.__name__}",
            f"A gate about a mean score is wrongly said to {'hold' if side > 0 else 'fail'} in at most 5 % of runs",
            f"{KINDS[kind]}; {INPUTS} inputs, {LEVELS} × {LEVELS} tests, a look after every doubling",
            partial(wrong, kind.__name__, side),
            at_most=0.05,
        )
        for kind in (skewed, mixed)
        for side in (1, -1)
    ),
]
