"""`testifai show --independence` calls independent perturbations dependent in at most 5 % of runs."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from promises import Promise
from testifai.statistics.independence import examine, find_designs

SEVERITIES = 4
INPUTS = (200, 800, 3000)
RATES = ((0.999, 0.97), (0.99, 0.95), (0.97, 0.85), (0.9, 0.5))  # of the clean test, and of the worst of one axis
SHARED = (0.0, 0.5, 1.0)  # how much of what an outcome hangs on is one difficulty of the input, the same in all tests
Outcomes = NDArray[np.bool_]


def up_to_two(axes: int) -> NDArray[np.int64]:
    """The tests of at most two perturbations."""
    grid = np.array(list(itertools.product(range(SEVERITIES), repeat=axes)))
    return grid[np.count_nonzero(grid, axis=1) <= 2]


def survival(clean: float, worst: float) -> NDArray[np.float64]:
    """The rate of every severity alone over that of the clean test."""
    return np.linspace(1, worst / clean, SEVERITIES)


def by_thresholds(rng: np.random.Generator, inputs: int, clean: float, worst: float, axes: int = 2) -> Outcomes:
    """An input has a threshold on each axis, and fails above any of them: outcomes of single axes decide all."""
    alone = survival(clean, worst)
    passed: Outcomes = (ndtr(rng.standard_normal((inputs, 1, axes))) < alone[up_to_two(axes)]).all(axis=2)
    return passed & (rng.random((inputs, 1)) < clean)


def by_difficulty(rng: np.random.Generator, inputs: int, clean: float, worst: float, shared: float) -> Outcomes:
    """Products of rates, with outcomes that hang on one difficulty of the input as far as it is shared."""
    rates = clean * survival(clean, worst)[up_to_two(2)].prod(axis=1)
    own = rng.standard_normal((inputs, len(rates)))
    passed: Outcomes = np.sqrt(shared) * rng.standard_normal((inputs, 1)) + np.sqrt(1 - shared) * own < ndtri(rates)
    return passed


def rejected(outcomes: Outcomes, axes: int, seed: int) -> bool:
    """Whether any pair is called dependent."""
    everywhere = np.ones_like(outcomes)
    names = [f"axis {number}" for number in range(axes)]
    found = examine(
        list(find_designs(up_to_two(axes))), names, lambda rows: (everywhere[:, rows], outcomes[:, rows]),
        len(outcomes), seed=seed, draws=199,
    )  # fmt: skip
    return any(pair.dependent for pair in found.pairs)


def thresholds(seed: int) -> tuple[int, int]:
    wrong = [
        rejected(by_thresholds(np.random.default_rng([seed, inputs, number]), inputs, *rates), 2, seed)
        for inputs in INPUTS
        for number, rates in enumerate(RATES)
    ]
    return sum(wrong), len(wrong)


def difficulty(seed: int) -> tuple[int, int]:
    wrong = [
        rejected(by_difficulty(np.random.default_rng([seed, inputs, number]), inputs, *rates, shared), 2, seed)
        for inputs in INPUTS[:2]
        for number, (rates, shared) in enumerate(itertools.product(RATES, SHARED))
    ]
    return sum(wrong), len(wrong)


def several_pairs(seed: int) -> tuple[int, int]:
    wrong = [rejected(by_thresholds(np.random.default_rng([seed, 3]), 800, *rates, axes=3), 3, seed) for rates in RATES]
    return sum(wrong), len(wrong)


WORDS = "`independence`: perturbations that act independently are called dependent in at most 5 % of runs"
SETTINGS = "4 × 4 tests, rates of single perturbations from .999 down to .5"
PROMISES = [
    Promise(
        "independence-thresholds", WORDS,
        f"outcomes of single perturbations decide those of both; 200 to 3,000 inputs, {SETTINGS}",
        thresholds, at_most=0.05,
    ),
    Promise(
        "independence-difficulty", WORDS,
        f"outcomes hang on one difficulty of an input, wholly, in part or not; 200 and 800 inputs, {SETTINGS}",
        difficulty, at_most=0.05,
    ),
    Promise(
        "independence-pairs", "`independence`: no pair of three axes is wrongly called dependent in 95 % of runs",
        "800 inputs, three axes, rates as above", several_pairs, at_most=0.05,
    ),
]  # fmt: skip
