"""Whether 95 % intervals hold: simulated surfaces whose every rate is known, hundreds of seeds.

    python benchmarks/coverage.py [--seeds 200] [--surfaces NAME ...] [--plans NAME ...] [--workers 2]

Every seed draws a surface of 216 tests, a population of 2,000 inputs whose outcomes hang together (an input that fails
one test is more likely to fail its neighbours), and a run of a plan: `balanced` or `adaptive` with a number of inputs
per test, or `target`, where adaptive goes on until every half-width is at most so much. Tests of one seed are
dependent, so the standard error in brackets is that over seeds.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testifai.scans.replay import Grid, replay

Floats = NDArray[np.float64]

LEVELS, AXES, INPUTS = 6, 3, 2_000
SIGMAS = np.array(list(itertools.product(range(LEVELS), repeat=AXES)))
WITHIN = 0.6  # share of an input's luck that is the same in all tests
ROUGH = 0.05  # sd of a rough surface's single tests, on the scale arcsin sqrt(rate)
SURFACES = ("smooth", "floor", "dead", "compensating", "rough")
PLANS = {
    "balanced 10": {"strategy": "balanced", "budget": 10 * len(SIGMAS)},
    "balanced 100": {"strategy": "balanced", "budget": 100 * len(SIGMAS)},
    "adaptive 60": {"strategy": "adaptive", "budget": 60 * len(SIGMAS)},
    "adaptive 100": {"strategy": "adaptive", "budget": 100 * len(SIGMAS)},
    "target .05": {"strategy": "adaptive", "target": 0.05},
    "target .03": {"strategy": "adaptive", "target": 0.03},
}


@dataclass(frozen=True)
class Found:
    """What one seed gave."""

    covered: float  # share of the tests
    regions: float  # share of the half-spaces
    error: float  # mean absolute
    half_width: float  # the largest
    inferences: int


def surface(kind: str, random: np.random.Generator) -> Floats:
    """The rates of all tests."""
    strength = random.uniform(0.2, 0.6, AXES)
    if kind == "dead":
        strength[random.integers(AXES)] = 0
    severity = SIGMAS @ strength
    if kind == "compensating":  # two axes that undo each other, as darkness and exposure do
        a, b, c = (SIGMAS * strength).T
        severity = np.abs(a - b) + 0.3 * (a + b) + c
    rates = 0.97 * np.exp(-0.08 * severity**1.5)
    if kind == "floor":
        rates = 0.1 + 0.87 / (1 + np.exp(1.5 * severity - 4))
    if kind == "rough":
        shaken = np.arcsin(np.sqrt(rates)) + ROUGH * random.normal(size=len(rates))
        rates = np.sin(np.clip(shaken, 0.02, 1.55)) ** 2
    return np.clip(rates, 0.001, 0.999)


def population(rates: Floats, random: np.random.Generator) -> Grid:
    """Outcomes of every input under every test: a shared and an own part of luck against a bound."""
    from scipy.special import ndtri

    shared, own = random.normal(size=INPUTS), random.normal(size=(len(rates), INPUTS))
    passed = WITHIN**0.5 * shared + (1 - WITHIN) ** 0.5 * own < ndtri(rates)[:, None]
    names = tuple(f"axis_{number}" for number in range(AXES))
    return Grid(names, INPUTS, np.packbits(passed, axis=-1).reshape(*[LEVELS] * AXES, -1))


def one(case: tuple[str, str, int]) -> Found:
    """A seed of a plan on a surface."""
    kind, plan, seed = case
    random = np.random.default_rng([seed, SURFACES.index(kind)])
    grid = population(surface(kind, random), random)
    tomogram, truth = replay(grid, seed=seed, **PLANS[plan]), grid.truth
    covered = np.mean((tomogram.low <= truth) & (truth <= tomogram.high))
    regions = []
    for expression, chosen in half_spaces(grid):
        answer = tomogram.query(expression)
        regions.append(answer.low <= truth[chosen].mean() <= answer.high)
    return Found(
        float(covered),
        float(np.mean(regions)),
        float(np.abs(tomogram.estimate - truth).mean()),
        float(((tomogram.high - tomogram.low) / 2).max()),
        tomogram.inferences,
    )


def half_spaces(grid: Grid) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Each axis below and from its middle on."""
    for axis, name in enumerate(grid.axes):
        low = np.indices([LEVELS] * AXES)[axis] < LEVELS // 2
        yield f"{name} < {LEVELS // 2}", low
        yield f"{name} >= {LEVELS // 2}", ~low


def report(kind: str, plan: str, found: list[Found], seconds: float) -> str:
    tests, regions = (np.array([getattr(one, name) for one in found]) for name in ("covered", "regions"))
    error = np.sqrt(len(found))
    return (
        f"{kind:13} {plan:13} tests {tests.mean():.3f} ({tests.std() / error:.3f})  "
        f"regions {regions.mean():.3f} ({regions.std() / error:.3f})  "
        f"error {np.mean([one.error for one in found]):.4f}  "
        f"largest half-width {np.mean([one.half_width for one in found]):.3f} "
        f"(at most {np.max([one.half_width for one in found]):.3f})  "
        f"inferences {np.mean([one.inferences for one in found]):9,.0f}  {seconds:.0f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--surfaces", nargs="*", choices=SURFACES, default=list(SURFACES))
    parser.add_argument("--plans", nargs="*", choices=list(PLANS), default=list(PLANS))
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with ProcessPoolExecutor(options.workers) as pool:
        for kind, plan in itertools.product(options.surfaces, options.plans):
            begin = time.perf_counter()
            found = list(pool.map(one, [(kind, plan, seed) for seed in range(options.seeds)], chunksize=2))
            print(report(kind, plan, found, time.perf_counter() - begin), flush=True)


if __name__ == "__main__":
    main()
