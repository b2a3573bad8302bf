"""Parts of the inputs: a class that has its own surface, one that has not, and one with next to no inputs."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from promises import Promise
from testifai.scans.replay import Grid, replay
from testifai.tomogram import Tomogram

Floats = NDArray[np.float64]

LEVELS, INPUTS, CLASSES = 4, 800, 4
SEVERITIES = np.indices((LEVELS, LEVELS)).reshape(2, -1)
WITHIN = 0.5  # share of an input's luck that is the same in all tests
ODD, ORDINARY = 0, 1  # classes
HALVES = {
    f"axis_{axis} {sign} 2": (SEVERITIES[axis] < 2) == (sign == "<") for axis in range(2) for sign in ("<", ">=")
}


def surfaces(random: np.random.Generator) -> Floats:
    """The rates of all tests for every class: only the odd one minds the second axis, and it breaks down there."""
    first, second = SEVERITIES
    rates = 0.96 * np.exp(-random.uniform(0.03, 0.15) * first**1.5)
    middle = random.uniform(1, 2.5)
    breaks = 0.05 + 0.95 / (1 + np.exp(3 * (second - middle)))
    return np.array([rates * (breaks if one == ODD else 1.0) for one in range(CLASSES)])


def population(rates: Floats, labels: NDArray[np.intp], random: np.random.Generator) -> NDArray[np.bool_]:
    """Outcomes of every test on every input: a shared and an own part of luck against a bound."""
    from scipy.special import ndtri

    shared, own = random.normal(size=len(labels)), random.normal(size=(rates.shape[1], len(labels)))
    passed: NDArray[np.bool_] = WITHIN**0.5 * shared + (1 - WITHIN) ** 0.5 * own < ndtri(rates[labels]).T
    return passed


def scanned(passed: NDArray[np.bool_], labels: NDArray[np.intp], budget: int, seed: int) -> Tomogram:
    packed = np.packbits(passed, axis=-1).reshape(LEVELS, LEVELS, -1)
    grid = Grid(("axis_0", "axis_1"), len(labels), packed)
    return replace(replay(grid, "adaptive", budget=budget, seed=seed), labels=labels)


def drawn(seed: int, budget: int) -> tuple[Tomogram, NDArray[np.bool_]]:
    """A run and the outcomes of everything."""
    random = np.random.default_rng([seed, budget])
    labels = random.permutation(np.arange(INPUTS) % CLASSES)
    passed = population(surfaces(random), labels, random)
    return scanned(passed, labels, budget, seed), passed


def regions(seed: int, budget: int, label: int) -> tuple[int, int]:
    """Intervals of half-spaces for a class."""
    tomogram, passed = drawn(seed, budget)
    truth = passed[:, tomogram.labels == label].mean(axis=1)
    answers = {query: tomogram.query(query, inputs=f"label == {label}") for query in HALVES}
    covered = [answers[query].low <= truth[chosen].mean() <= answers[query].high for query, chosen in HALVES.items()]
    return sum(map(int, covered)), len(covered)
