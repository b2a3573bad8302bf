"""Gates are decided wrongly in at most 5 % of runs, looks after every doubling included.

A gate's requirement is a hair above the truth (to hold would be wrong) or a hair below it (to fail would be wrong).
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray
from replay import Grid, replay
from scipy.special import ndtri

from promises import Promise
from testifai.gates.strategy import GateStrategy
from testifai.gates.verdicts import judge
from testifai.runs.outcomes import Outcomes, visiting_order
from testifai.spec.parsing import Gate
from testifai.tomogram import EstimatorSettings, Tomogram

INPUTS, LEVELS = 800, 4
HAIR = 1e-6
ALL, CORNER, MILD = "a >= 0", "a >= 2 and b >= 2", "a <= 1 and b <= 1"

Outcome = NDArray[np.bool_]


def same_inputs(rate: float, random: np.random.Generator) -> Outcome:
    """The same inputs fail in all tests, and nothing else."""
    return np.broadcast_to(random.permutation(INPUTS) >= round((1 - rate) * INPUTS), (LEVELS, LEVELS, INPUTS))


def mostly_same(rate: float, random: np.random.Generator) -> Outcome:
    """The same inputs fail in all tests; a fifth of the failures are each test's own."""
    own = random.random((LEVELS, LEVELS, INPUTS)) >= (1 - rate) / 5
    return same_inputs(1 - (1 - rate) * 0.8, random) & own


def apart(rate: float, random: np.random.Generator) -> Outcome:
    """Each test fails by itself."""
    return random.random((LEVELS, LEVELS, INPUTS)) < rate


def sloping(rate: float, random: np.random.Generator) -> Outcome:
    """Rates fall with severity; inputs have a luck of their own."""
    a, b = np.indices((LEVELS, LEVELS))
    rates = np.clip(rate + min(0.15, (1 - rate) / 2) * (1 - (a + b) / 3), 0.001, 0.999)
    luck = 0.6**0.5 * random.normal(size=INPUTS) + 0.4**0.5 * random.normal(size=(LEVELS, LEVELS, INPUTS))
    return np.asarray(luck < ndtri(rates)[..., None])


def one_bad(rate: float, random: np.random.Generator) -> Outcome:
    """Each test fails by itself, and one, any of them, half as often again as it passes."""
    passed = apart(rate, random)
    at = tuple(random.integers(LEVELS, size=2))
    passed[at] = random.random(INPUTS) < 0.4
    return passed


def drop_then_floor(rate: float, random: np.random.Generator) -> Outcome:
    """Each axis that is on costs once, by chance up to twelve points; how strong it is does not matter."""
    a, b = np.indices((LEVELS, LEVELS)) > 0
    first, second = random.uniform(0, 0.12, 2)
    luck = 0.6**0.5 * random.normal(size=INPUTS) + 0.4**0.5 * random.normal(size=(LEVELS, LEVELS, INPUTS))
    return np.asarray(luck < ndtri(rate - first * a - second * b)[..., None])


POPULATIONS = {made.__name__: made for made in (same_inputs, mostly_same, apart, sloping, one_bad, drop_then_floor)}


def wrong(kind: str, rate: float, query: str, side: int, seed: int) -> tuple[int, int]:
    """Whether a run decides wrongly on a gate whose requirement is above the truth (side 1) or below it (-1)."""
    passed = POPULATIONS[kind](rate, np.random.default_rng([seed, 16]))
    grid = Grid(("a", "b"), INPUTS, np.packbits(passed, axis=-1))
    blank = Tomogram(
        grid.space,
        Outcomes(INPUTS),
        visiting_order(INPUTS, seed),
        settings=EstimatorSettings(surrogate="process", seed=seed),
    )
    truth = float(grid.truth.reshape(-1)[blank.query_engine.select(query)].mean())
    gate = Gate(query=query, at_least=float(np.clip(truth + side * HAIR, 0, 1)))
    run = replay(grid, GateStrategy(gates=(gate,)), seed=seed)
    return int(judge([gate], run)[0].status == ("holds" if side > 0 else "fails")), 1


def _promise(kind: str, rate: float, query: str, side: int, told: str) -> Promise:
    way = "holds" if side > 0 else "fails"
    where = {ALL: "all", CORNER: "corner", MILD: "mild"}[query]
    return Promise(
        name=f"gate-{way}-{kind.replace('_', '-')}-{rate:g}-{where}",
        promised=f"A gate that just does not hold is wrongly said to hold in at most 5 % of runs ({rate:g})"
        if side > 0
        else f"A gate that just holds is wrongly said to fail in at most 5 % of runs ({rate:g})",
        assumes=f"{told}; 800 inputs, {'' if query == ALL else '4 of '}4 × 4 tests, a look after every doubling",
        simulate=partial(wrong, kind, rate, query, side),
        at_most=0.05,
        seeds=400,
    )


PROMISES = [
    _promise("same_inputs", 0.97, ALL, 1, "the same inputs fail in all tests"),
    _promise("same_inputs", 0.98, CORNER, 1, "the same inputs fail in all tests"),
    _promise("same_inputs", 0.99, ALL, 1, "the same inputs fail in all tests"),
    _promise("same_inputs", 0.995, ALL, -1, "the same inputs fail in all tests"),
    _promise("same_inputs", 0.98, ALL, -1, "the same inputs fail in all tests"),
    _promise("mostly_same", 0.98, ALL, 1, "the same inputs fail in all tests, and a few more in each"),
    _promise("apart", 0.98, ALL, 1, "tests fail apart from each other"),
    _promise("apart", 0.995, ALL, -1, "tests fail apart from each other"),
    _promise("one_bad", 0.98, ALL, 1, "tests fail apart from each other, one of them mostly"),
    _promise("sloping", 0.95, ALL, 1, "rates fall with severity, inputs have a luck of their own"),
    _promise("sloping", 0.7, ALL, 1, "rates fall with severity, inputs have a luck of their own"),
    _promise("sloping", 0.7, ALL, -1, "rates fall with severity, inputs have a luck of their own"),
    _promise("drop_then_floor", 0.95, MILD, 1, "any severity costs the same, mild conditions"),
    _promise("drop_then_floor", 0.95, MILD, -1, "any severity costs the same, mild conditions"),
]
