"""Which tests a forest is trained on, low orders first or drawn at random; and ours for as many inferences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from replay import Grid, replay

from evaluation.setting import Setting
from evaluation.tasks import Task
from testifai.surrogates import Forest

Floats = NDArray[np.float64]
Ids = NDArray[np.intp]

SHARES = tuple(tenths / 10 for tenths in range(1, 10))
OUR_SHARES = SHARES[::4]
REPETITIONS, TREES = 10, 100
SMALL, SMALL_SEEDS = 0.01, 2  # of the inferences of the published method


@dataclass(frozen=True)
class Curve:
    """Mean squared errors by the share of tests (columns), over repetitions (rows)."""

    shares: tuple[float, ...]
    errors: Floats

    @property
    def mean(self) -> Floats:
        return np.asarray(self.errors.mean(axis=0))

    @property
    def spread(self) -> Floats:
        """The standard deviation over repetitions; 0 of a single one."""
        return np.asarray(self.errors.std(axis=0, ddof=1)) if len(self.errors) > 1 else np.zeros(len(self.shares))

    @property
    def doubt(self) -> Floats:
        """The standard error of the mean."""
        return self.spread / len(self.errors) ** 0.5


@dataclass(frozen=True)
class Selection:
    """One task in three or four dimensions.

    Published curves are of the tests left out. Ours are of as many tests, those with the fewest inputs, and of all.
    """

    task: Task
    dimensions: int
    tests: int
    complete: dict[int, float]  # the share of tests of at most so many perturbations
    ordered: Curve
    random: Curve
    ours: Curve
    ours_all: Curve
    small: Curve
    small_all: Curve

    @property
    def lead(self) -> Floats:
        """By how many standard errors the ordered choice is better (positive) or worse at each share."""
        doubt = np.hypot(self.ordered.doubt, self.random.doubt)
        return np.asarray((self.random.mean - self.ordered.mean) / np.maximum(doubt, 1e-300))


def select(task: Task, grid: Grid, setting: Setting) -> Selection:
    """Everything about one task in the dimensions of its grid."""
    shares = SHARES[::8] if setting.tiny else SHARES
    our_shares = tuple(share for share in shares if share in OUR_SHARES)
    orders = orders_of(grid)
    repetitions, trees = setting.times(REPETITIONS), setting.times(TREES, 10)
    ours, ours_all = ours_at(grid, our_shares, 1, 1)
    small, small_all = ours_at(grid, our_shares, SMALL, setting.times(SMALL_SEEDS))
    return Selection(
        task,
        len(grid.axes),
        grid.space.size,
        {order: float((orders <= order).mean()) for order in (2, 3)},
        trained(grid, shares, repetitions, trees, lambda drawn: drawn[np.argsort(orders[drawn], kind="stable")]),
        trained(grid, shares, repetitions, trees, lambda drawn: drawn),
        ours,
        ours_all,
        small,
        small_all,
    )


def orders_of(grid: Grid) -> NDArray[np.int64]:
    """How many perturbations each test has."""
    return np.asarray((grid.space.matrix(np.arange(grid.space.size)) > 0).sum(axis=1))


def trained(grid: Grid, shares: Sequence[float], repetitions: int, trees: int, arranged: Callable[[Ids], Ids]) -> Curve:
    """The forest's error on the tests left out: trained on the first of all tests, drawn and then arranged."""
    features = grid.space.matrix(np.arange(grid.space.size))
    truth = grid.truth.reshape(-1)
    trials = np.full(len(truth), grid.inputs)
    passes = np.rint(truth * grid.inputs).astype(np.int64)
    errors = np.empty((repetitions, len(shares)))
    for repetition in range(repetitions):
        sequence = arranged(np.random.default_rng(repetition).permutation(len(truth)))
        for column, share in enumerate(shares):
            used, rest = np.split(sequence, [round(share * len(truth))])
            forest = Forest(trees, seed=repetition).fit(features[used], passes[used], trials[used])
            errors[repetition, column] = ((forest.predict(features[rest])[0] - truth[rest]) ** 2).mean()
    return Curve(tuple(shares), errors)


def ours_at(grid: Grid, shares: Sequence[float], part: float, seeds: int) -> tuple[Curve, Curve]:
    """Errors of `adaptive` with the process at a part of those inferences: on the least measured tests, and on all."""
    pairs = np.array([[_our_errors(grid, share, part, seed) for share in shares] for seed in range(seeds)])
    return Curve(tuple(shares), pairs[..., 0]), Curve(tuple(shares), pairs[..., 1])


def _our_errors(grid: Grid, share: float, part: float, seed: int) -> tuple[float, float]:
    tests = grid.space.size
    budget = max(round(share * part * tests * grid.inputs), 2)  # no run has fewer
    found: Any = replay(grid, "adaptive", "process", budget=budget, seed=seed)
    errors = ((found.estimate - grid.truth) ** 2).reshape(-1)
    # Of tests with as many inputs, chance says which count among those left out.
    by_lot = np.random.default_rng(seed).permutation(tests)
    least = by_lot[np.argsort(found.trials.reshape(-1)[by_lot], kind="stable")][: tests - round(share * tests)]
    return float(errors[least].mean()), float(errors.mean())
