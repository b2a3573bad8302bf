"""The ways to compute robustness that the ASAP paper compares with: uniform levels, numerical integration, random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from testifai.errors import InputError
from testifai.sweeps.asap import LevelGrid

Evaluate = Callable[[float], float]

# Evaluations of scipy.integrate.quad: the Gauss-Kronrod rule has 21 levels, and halving an interval costs two rules.
QUAD_RULE = 21


@dataclass(frozen=True)
class Compared:
    """Robustness per threshold, its standard deviation over repetitions, and whether the method gave up."""

    robustness: tuple[float, ...]
    spread: tuple[float, ...]
    timeout: tuple[bool, ...]


def uniform(evaluate: Evaluate, grid: LevelGrid, thresholds: tuple[float, ...]) -> Compared:
    """Definition 3: the share of equally spaced levels, both ends among them, at or above the threshold."""
    levels = np.linspace(grid.low, grid.high, grid.points)
    if grid.integer:
        levels = np.unique(np.rint(levels))
    accuracies = np.array([evaluate(float(level)) for level in levels])
    shares = tuple(float(np.mean(accuracies >= threshold)) for threshold in thresholds)
    return Compared(shares, (np.nan,) * len(shares), (False,) * len(shares))


def quad(evaluate: Evaluate, grid: LevelGrid, thresholds: tuple[float, ...]) -> Compared:
    """Definition 2 by scipy's adaptive quadrature of the step function, with at most `points` evaluations.

    Where these do not suffice the method has timed out; its last estimate is returned all the same.
    """
    from scipy import integrate

    if grid.points < QUAD_RULE:
        raise InputError(f"points: quad needs at least {QUAD_RULE} evaluations, got {grid.points}")
    halvings = (grid.points - QUAD_RULE) // (2 * QUAD_RULE)
    found, gave_up = [], []
    for threshold in thresholds:

        def step(level: float, threshold: float = threshold) -> float:
            return float(evaluate(float(np.rint(level)) if grid.integer else float(level)) >= threshold)

        result = integrate.quad(step, grid.low, grid.high, limit=halvings + 1, full_output=1)
        found.append(float(result[0] / (grid.high - grid.low)))
        gave_up.append(len(result) > 3)  # a fourth part is the reason why it did not converge
    return Compared(tuple(found), (np.nan,) * len(found), tuple(gave_up))


def random(
    evaluate: Evaluate, grid: LevelGrid, thresholds: tuple[float, ...], *, seed: int = 0, repetitions: int = 1
) -> Compared:
    """The share of random levels at or above the threshold: the mean over repetitions of `points` levels each."""
    rng, shape = np.random.default_rng(seed), (repetitions, grid.points)
    if grid.integer:
        draws = rng.integers(int(grid.low), int(grid.high), shape, endpoint=True).astype(float)
    else:
        draws = rng.uniform(grid.low, grid.high, shape)
    accuracies = np.array([[evaluate(float(level)) for level in row] for row in draws])
    shares = [(accuracies >= threshold).mean(axis=1) for threshold in thresholds]
    spread = tuple(float(share.std(ddof=1)) if repetitions > 1 else np.nan for share in shares)
    return Compared(tuple(float(share.mean()) for share in shares), spread, (False,) * len(shares))
