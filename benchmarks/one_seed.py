"""One seed of coverage.py: a run where every rate is known, and how its 95 % intervals stand to the truth."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from common import held
from numpy.typing import NDArray
from replay import Grid, replay
from scipy.special import ndtri

from testifai.tomogram import Tomogram

Floats = NDArray[np.float64]
Tally = list[float]  # intervals that contain the truth, intervals; sums of absolute errors, half-widths, errors

LEVELS, AXES, INPUTS = 6, 3, 2_000
SIGMAS = np.array(list(itertools.product(range(LEVELS), repeat=AXES)))
WITHIN = 0.6  # share of an input's luck that is the same in all tests
ROUGH = 0.05  # sd of a rough surface's single tests, on the scale arcsin sqrt(rate)
BAD = 0.5  # how far the one bad test is from its neighbours, on that scale
SURFACES = (
    "smooth", "floor", "dead", "compensating", "rough", "high", "low", "one bad test", "drop then floor",
    "flat then cliff",
)  # fmt: skip
PLANS: dict[str, dict[str, Any]] = {
    "balanced 10": {"strategy": "balanced", "budget": 10 * len(SIGMAS)},
    "balanced 100": {"strategy": "balanced", "budget": 100 * len(SIGMAS)},
    "adaptive 60": {"strategy": "adaptive", "budget": 60 * len(SIGMAS)},
    "adaptive 100": {"strategy": "adaptive", "budget": 100 * len(SIGMAS)},
    "target .05": {"strategy": "adaptive", "target": 0.05},
    "target .03": {"strategy": "adaptive", "target": 0.03},
}
# Requirements are made about mild conditions and high rates: tests are counted by both.
EDGES = (0, 0.5, 0.8, 0.9, 0.95, 0.98, 1)
RATES = tuple(f"{low:g}–{high:g}" for low, high in itertools.pairwise(EDGES))
STEPS = {"1": (1, 1), "2": (2, 2), "3–4": (3, 4), "5+": (5, 10**9)}  # sums of severities


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
    elif kind == "drop then floor":  # whatever is on costs once, how strong it is hardly matters
        drop, slope = random.uniform(0, 0.12, AXES), random.uniform(0, 0.004, AXES)
        rates = 0.95 - (SIGMAS > 0) @ drop - SIGMAS @ slope
    elif kind == "flat then cliff":
        rates = 0.1 + 0.87 / (1 + np.exp(4 * (severity - random.uniform(1.5, 3))))
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
    """The tests of each group by their ids; the clean test is only in its own."""
    severities = grid.space.matrix(np.arange(grid.space.size))
    orders, steps = np.count_nonzero(severities, axis=1), severities.sum(axis=1)
    perturbed = orders > 0
    rates = np.clip(np.searchsorted(EDGES, truth, side="right") - 1, 0, len(RATES) - 1)
    chosen = {"tests": perturbed, "clean": orders == 0}
    chosen |= {f"severity {name}": (steps >= least) & (steps <= most) for name, (least, most) in STEPS.items()}
    chosen |= {f"order {order}": orders == order for order in range(1, len(grid.axes) + 1)}
    chosen |= {f"rate {name}": perturbed & (rates == place) for place, name in enumerate(RATES)}
    return {name: np.flatnonzero(tests) for name, tests in chosen.items() if tests.any()}


def region_groups(grid: Grid, found: Tomogram) -> dict[str, Tally]:
    """Half-spaces together, and regions near clean, each and together."""
    halves = np.array([_asked(grid, found, query) for query in half_spaces(grid)])
    near = {name: _asked(grid, found, query) for name, query in near_clean(grid.axes).items()}
    groups = {"regions": halves, "regions near clean": np.array(list(near.values()))}
    groups |= {name: np.array([one]) for name, one in near.items()}
    return {name: tally(*figures.T) for name, figures in groups.items()}


def _asked(grid: Grid, found: Tomogram, query: str) -> tuple[float, float, float, float]:
    """The true mean rate of a region, the estimate, and its bounds."""
    answer = found.query(query)
    truth = float(grid.truth.reshape(-1)[np.asarray(found.query_engine.select(query)).reshape(-1)].mean())
    return truth, answer.robustness, answer.low, answer.high


def near_clean(axes: Sequence[str]) -> dict[str, str]:
    """Queries for mild conditions, by name."""
    return {
        "severity == 1": "severity == 1",
        "severity <= 2": "severity <= 2",
        "order == 1": "order == 1",
        "each axis <= 1": " and ".join(f"{name} <= 1" for name in axes),
    }


def half_spaces(grid: Grid) -> Iterator[str]:
    """Each axis in its lower and its upper half, alone and with all others."""
    halves = [
        (f"{name} < {levels // 2}", f"{name} >= {levels // 2}")
        for name, levels in zip(grid.axes, grid.levels, strict=True)
    ]
    yield from itertools.chain(*halves)
    yield from (" and ".join(corner) for corner in itertools.product(*halves))


def tally(truth: Floats, estimate: Floats, low: Floats, high: Floats) -> Tally:
    """Count of intervals that contain the truth, of how many; sums of absolute errors, half-widths and errors."""
    covered = np.count_nonzero(held(truth, low, high))
    error, half_width, bias = np.abs(estimate - truth).sum(), (high - low).sum() / 2, (estimate - truth).sum()
    return [int(covered), len(truth), *(round(float(one), 6) for one in (error, half_width, bias))]
