"""One seed of coverage.py: a run where every rate is known, and how its 95 % intervals stand to the truth."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from common import held
from numpy.typing import NDArray
from replay import Grid, replay
from scipy.special import ndtri

from testifai.tomogram import Tomogram

Floats = NDArray[np.float64]
Tally = list[float]  # intervals that hold the truth, intervals, sum of absolute errors, sum of half-widths

LEVELS, AXES, INPUTS = 6, 3, 2_000
SIGMAS = np.array(list(itertools.product(range(LEVELS), repeat=AXES)))
WITHIN = 0.6  # share of an input's luck that is the same in all tests
ROUGH = 0.05  # sd of a rough surface's single tests, on the scale arcsin sqrt(rate)
BAD = 0.5  # how far the one bad test is from its neighbours, on that scale
SURFACES = ("smooth", "floor", "dead", "compensating", "rough", "high", "low", "one bad test")
PLANS: dict[str, dict[str, Any]] = {
    "balanced 10": {"strategy": "balanced", "budget": 10 * len(SIGMAS)},
    "balanced 100": {"strategy": "balanced", "budget": 100 * len(SIGMAS)},
    "adaptive 60": {"strategy": "adaptive", "budget": 60 * len(SIGMAS)},
    "adaptive 100": {"strategy": "adaptive", "budget": 100 * len(SIGMAS)},
    "target .05": {"strategy": "adaptive", "target": 0.05},
    "target .03": {"strategy": "adaptive", "target": 0.03},
}
# Tenths of the rate, of which the first and the last end apart: the scale of the estimates is least normal there.
EDGES = (0, 0.02, *(tenth / 10 for tenth in range(1, 10)), 0.98, 1)
RATES = tuple(f"{low:g}–{high:g}" for low, high in itertools.pairwise(EDGES))
NEAR = 0.1  # of 0 or 1: where a region is counted once more, apart


def simulated(kind: str, plan: str, seed: int) -> dict[str, Any]:
    """A seed of a plan on a simulated surface."""
    random = np.random.default_rng([seed, SURFACES.index(kind)])
    rates, bad = surface(kind, random)
    grid = population(rates, random)
    groups = {} if bad is None else {"the bad test": np.array([bad])}
    return judged(grid, replay(grid, seed=seed, **PLANS[plan]), groups)


def recorded(path: str, digest: str, strategy: str, share: float, seed: int) -> dict[str, Any]:
    """A seed of a strategy on a recorded grid with a share of its inferences; the digest tells its content."""
    grid = read(path, digest)
    budget = round(share * grid.space.size * grid.inputs)
    return judged(grid, replay(grid, strategy, budget=budget, seed=seed), {})


@functools.lru_cache(maxsize=1)
def read(path: str, digest: str) -> Grid:
    """A grid, which many seeds in turn are about."""
    return Grid.read(path)


# -- what is simulated ------------------------------------------------------------------------------------------------


def surface(kind: str, random: np.random.Generator) -> tuple[Floats, int | None]:
    """The rates of all tests, and which of them is the bad one, where there is one."""
    strength = random.uniform(0.2, 0.6, AXES)
    if kind == "dead":
        strength[random.integers(AXES)] = 0
    severity = SIGMAS @ strength
    if kind == "compensating":  # two axes that undo each other, as darkness and exposure do
        a, b, c = (SIGMAS * strength).T
        severity = np.abs(a - b) + 0.3 * (a + b) + c
    rates = 0.97 * np.exp(-0.08 * severity**1.5)
    bad = None
    if kind == "floor":
        rates = 0.1 + 0.87 / (1 + np.exp(1.5 * severity - 4))
    elif kind == "high":  # nearly all of a few percent of failures are at the strongest
        rates = 0.999 - random.uniform(0.01, 0.04) * (severity / severity.max()) ** 1.5
    elif kind == "low":  # right on clean inputs, and at once at a chance level that many classes have
        chance = random.uniform(0.002, 0.08) * (1 - 0.5 * severity / severity.max())
        rates = chance + (0.95 - chance) * np.exp(-3 * severity)
    elif kind == "rough":
        rates = shifted(rates, ROUGH * random.normal(size=len(rates)))
    elif kind == "one bad test":
        bad = int(random.integers(1, len(rates)))
        down = rates[bad] > 0.5
        rates[bad] = shifted(rates[bad], -BAD if down else BAD)
    return np.clip(rates, 0.001, 0.999), bad


def shifted(rates: Any, by: Any) -> Any:
    """Rates that differ by so much on the scale arcsin sqrt(rate)."""
    return np.sin(np.clip(np.arcsin(np.sqrt(rates)) + by, 0.02, 1.55)) ** 2


def population(rates: Floats, random: np.random.Generator) -> Grid:
    """Outcomes of every input under every test: a shared and an own part of luck against a bound."""
    shared, own = random.normal(size=INPUTS), random.normal(size=(len(rates), INPUTS))
    passed = WITHIN**0.5 * shared + (1 - WITHIN) ** 0.5 * own < ndtri(rates)[:, None]
    names = tuple(f"axis_{number}" for number in range(AXES))
    return Grid(names, INPUTS, np.packbits(passed, axis=-1).reshape(*[LEVELS] * AXES, -1))


# -- held against the truth -------------------------------------------------------------------------------------------


def judged(grid: Grid, found: Tomogram, marked: dict[str, NDArray[np.intp]]) -> dict[str, Any]:
    """A tally for each group of tests and of regions, and what the run took."""
    truth, low, high, estimate = (array.reshape(-1) for array in (grid.truth, found.low, found.high, found.estimate))
    groups = {
        name: tally(truth[tests], estimate[tests], low[tests], high[tests])
        for name, tests in {**test_groups(grid, truth), **marked}.items()
    }
    return {
        "groups": groups | region_groups(grid, found),
        "largest": round(float((high - low).max() / 2), 5),
        "inferences": found.inferences,
    }


def test_groups(grid: Grid, truth: Floats) -> dict[str, NDArray[np.intp]]:
    """The tests of each group by their ids; the clean test is in none but its own."""
    orders = np.count_nonzero(grid.space.matrix(np.arange(grid.space.size)), axis=1)
    perturbed = orders > 0
    rates = np.clip(np.searchsorted(EDGES, truth, side="right") - 1, 0, len(RATES) - 1)
    chosen = {"tests": perturbed, "clean": orders == 0}
    chosen |= {f"order {order}": orders == order for order in range(1, len(grid.axes) + 1)}
    chosen |= {f"rate {name}": perturbed & (rates == place) for place, name in enumerate(RATES)}
    return {name: np.flatnonzero(tests) for name, tests in chosen.items() if tests.any()}


def region_groups(grid: Grid, found: Tomogram) -> dict[str, Tally]:
    """Half-spaces and what they have in common: all of them, and those whose rate is near 0 or 1."""
    asked = [(grid.truth[chosen].mean(), found.query(expression)) for expression, chosen in regions(grid)]
    figures = np.array([(truth, answer.robustness, answer.low, answer.high) for truth, answer in asked])
    near = np.minimum(figures[:, 0], 1 - figures[:, 0]) < NEAR
    groups = {"regions": tally(*figures.T)}
    return groups | ({"regions near 0 or 1": tally(*figures[near].T)} if near.any() else {})


def regions(grid: Grid) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Each axis in its lower and its upper half, by itself and with all others."""
    places = np.indices(grid.levels)
    halves = []
    for axis, (name, levels) in enumerate(zip(grid.axes, grid.levels, strict=True)):
        middle = levels // 2
        halves.append([(f"{name} < {middle}", places[axis] < middle), (f"{name} >= {middle}", places[axis] >= middle)])
    yield from itertools.chain(*halves)
    for corner in itertools.product(*halves):
        expressions, chosen = zip(*corner, strict=True)
        yield " and ".join(expressions), np.logical_and.reduce(chosen)


def tally(truth: Floats, estimate: Floats, low: Floats, high: Floats) -> Tally:
    """How many intervals hold the truth, of how many; sums of absolute errors and of half-widths."""
    covered = np.count_nonzero(held(truth, low, high))
    error, half_width = np.abs(estimate - truth).sum(), (high - low).sum() / 2
    return [int(covered), len(truth), round(float(error), 6), round(float(half_width), 6)]
