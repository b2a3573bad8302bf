"""Replays of the first paper's method and of ours on one task's recorded grid, each held against the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from common import held
from numpy.typing import NDArray
from replay import Grid, replay

from evaluation.setting import Setting
from evaluation.tasks import Task
from testifai.commands.example import QueryRow, beside
from testifai.tomogram import Tomogram
from testifai.tomogram.regions import standard_queries

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Options = Mapping[str, Any]

# What the paper calls partial tomography, without early stopping and with it: in two readings, and by our own rule.
PARTIAL, WINDOW, CUMULATIVE, INTERVAL = "partial", "window", "window-cumulative", "interval"
STOPPING = (WINDOW, CUMULATIVE, INTERVAL)
EQUAL = "ours, equal"  # as many inferences as partial tomography without early stopping
MANY = 10_000  # inputs from which on 1 % of the inferences is the share to speak of
HIGH = 3  # the orders that partial tomography predicts
CLOSE, CLOSE_QUERY = 0.1, 0.01  # errors of tests that the paper calls small, and of queries that we do


@dataclass(frozen=True, eq=False)
class Judged:
    """One replay beside the truth; arrays are by test, errors are estimate − truth."""

    share: float  # of the inferences of full tomography
    orders: NDArray[np.intp]
    errors: Floats
    held: Booleans  # whether a test's 95 % interval holds the truth
    half_widths: Floats
    queries: list[QueryRow]

    @property
    def saved(self) -> float:
        return 1 - self.share

    @property
    def close(self) -> float:
        """The share of tests with an error within ±0.1."""
        return float((np.abs(self.errors) <= CLOSE).mean())

    @property
    def high(self) -> Floats:
        """The errors of the orders that partial tomography predicts."""
        return self.errors[self.orders >= HIGH]

    @cached_property
    def query_errors(self) -> Floats:
        return np.array([row.error for row in self.queries])

    @cached_property
    def queries_held(self) -> Booleans:
        """Whether each query's 95 % interval holds the truth."""
        return held(*np.array([(row.truth, row.answer.low, row.answer.high) for row in self.queries]).T)


@dataclass(frozen=True, eq=False)
class Known:
    """A grid, in three or in four dimensions: what is true of it, and what replays make of it."""

    grid: Grid

    @cached_property
    def full(self) -> Tomogram:
        return replay(self.grid, "full", surrogate="none")

    @cached_property
    def queries(self) -> dict[str, str]:
        """In three dimensions the twelve of Table 2; in four, octants and cubes alike."""
        return standard_queries(self.grid.space)

    @cached_property
    def orders(self) -> NDArray[np.intp]:
        """The order of each test."""
        return np.count_nonzero(self.grid.space.matrix(np.arange(self.grid.space.size)), axis=1)

    @property
    def inferences(self) -> int:
        """Of full tomography."""
        return self.grid.space.size * self.grid.inputs

    @property
    def truth(self) -> Floats:
        """The rate of each test."""
        return self.grid.truth.reshape(-1)

    @property
    def by_order(self) -> list[Floats]:
        """The rates of the tests of order 1, 2, …"""
        return [self.truth[self.orders == order] for order in range(1, len(self.grid.axes) + 1)]

    @property
    def clean(self) -> float:
        """The accuracy on unperturbed inputs."""
        return float(self.truth[0])

    @property
    def weakest(self) -> tuple[str, float]:
        """The axis that changes rates least, and by how much it does on average."""
        effects = {
            name: float(np.abs(np.delete(self.grid.truth, 0, place) - self.grid.truth.take([0], place)).mean())
            for place, name in enumerate(self.grid.axes)
        }
        name = min(effects, key=lambda name: effects[name])
        return name, effects[name]

    def judged(self, options: Options, seed: int) -> Judged:
        """A replay beside the truth."""
        found = replay(self.grid, seed=seed, **options)
        low, high, estimate = (array.reshape(-1) for array in (found.low, found.high, found.estimate))
        return Judged(
            share=found.inferences / self.inferences,
            orders=self.orders,
            errors=estimate - self.truth,
            held=held(self.truth, low, high),
            half_widths=(high - low) / 2,
            queries=beside(found, self.full, self.queries),
        )

    def all_judged(self, methods: Mapping[str, Options], seeds: int) -> dict[str, list[Judged]]:
        """Each method with each seed."""
        return {name: [self.judged(options, seed) for seed in range(seeds)] for name, options in methods.items()}


@dataclass(frozen=True, eq=False)
class Measured:
    """A task with all replays of it."""

    task: Task
    cube: Known  # the first three axes
    whole: Known
    in_3d: dict[str, list[Judged]]
    in_4d: dict[str, list[Judged]]

    @property
    def inputs(self) -> int:
        return self.cube.grid.inputs

    @property
    def small(self) -> str:
        """Our method at the smaller of the two shares."""
        return ours(shares(self.inputs)[0])

    @property
    def spoken_of(self) -> str:
        """Our method at the share to speak of."""
        return ours(shares(self.inputs)[1])

    @property
    def compared(self) -> tuple[str, ...]:
        """The published method, without and with early stopping, and ours from many inferences to few."""
        return (PARTIAL, WINDOW, EQUAL, self.spoken_of, self.small)


def measured(task: Task, setting: Setting, seeds_3d: int, seeds_4d: int) -> Measured:
    """All replays of a task; raises MissingFileError."""
    cube, whole = Known(task.cube(setting)), Known(task.grid(setting))
    inputs = cube.grid.inputs
    equal = int(np.count_nonzero(cube.orders < HIGH)) * inputs
    in_3d = {**published(inputs), EQUAL: {"strategy": "adaptive", "budget": equal}, **our_methods(cube)}
    in_4d = {PARTIAL: {"strategy": "ordered"}, **our_methods(whole)}
    return Measured(task, cube, whole, cube.all_judged(in_3d, seeds_3d), whole.all_judged(in_4d, seeds_4d))


def published(inputs: int) -> dict[str, Options]:
    """The paper's method (all tests of order ≤ 2, random forest) with its ways to stop early."""
    batch = batch_of(inputs)
    rules = {name: {"strategy": "ordered", "stopping": {"use": name, "batch": batch}} for name in STOPPING}
    return {PARTIAL: {"strategy": "ordered"}, **rules}


def batch_of(inputs: int) -> int:
    """The paper's batches of 100, where there are ten of them; else a tenth of the inputs, as of its 1,000 frames."""
    return min(100, inputs // 10)


def our_methods(known: Known) -> dict[str, Options]:
    """The adaptive strategy with the process at small shares of the inferences."""
    budgets = {ours(share): round(share * known.inferences) for share in shares(known.grid.inputs)}
    return {name: {"strategy": "adaptive", "budget": budget} for name, budget in budgets.items()}


def shares(inputs: int) -> tuple[float, float]:
    """The small shares of the inferences that ours is shown at: the second is the one to speak of."""
    return (0.001, 0.01) if inputs >= MANY else (0.01, 0.05)


def ours(share: float) -> str:
    """The name of our method at a share of the inferences."""
    return f"ours, {100 * share:g} %"


def over(runs: Sequence[Judged], figure: Callable[[Judged], Any]) -> Floats:
    """A figure of each replay, by seed."""
    return np.array([figure(run) for run in runs], float)


def mean(runs: Sequence[Judged], figure: Callable[[Judged], Any]) -> float:
    """A figure's mean over the seeds."""
    return float(over(runs, figure).mean())
