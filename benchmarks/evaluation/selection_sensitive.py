"""A space in which the order of application counts: 916 ordered tests of LeNet-5, all of them measured."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from order_sensitive import holds, pairs, run

import testifai as ta
from evaluation.drawing import COLOURS, axes
from evaluation.page import Page
from evaluation.recording import mnist_ordered
from evaluation.setting import Setting
from testifai.statistics.differences import paired_interval
from testifai.strategies import Adaptive, Ordered

Floats = NDArray[np.float64]
Passed = NDArray[np.bool_]

SHARES = (0.01, 0.05)
SEEDS = 5
PUBLISHED = "published: forest on order ≤ 2"


@dataclass(frozen=True)
class Judged:
    """What one run found: error of every test, and how often its intervals held."""

    share: float  # of all inferences
    errors: Floats
    tests: float
    regions: float


@dataclass(frozen=True)
class Swap:
    """Two orders of the same severities, by the tests' numbers, and how much more often the second passes."""

    first: int
    second: int
    difference: float


def write(page: Page, setting: Setting) -> None:
    """How much the order matters, and what both methods make of it."""
    passed = mnist_ordered.read(setting.grid(mnist_ordered.FILE))
    space = mnist_ordered.space()
    page.text(
        "MNIST, LeNet-5, shot noise (`noise`), brightness (`bright`) and motion blur (`blur`), in any order; "
        f"{passed.shape[1]:,} digits under all {space.size} ordered tests (1 + 15 + 2 · 75 + 6 · 125)."
    )
    matters(page, space, passed)
    estimated(page, space, passed, setting)


# -- how much the order matters ----------------------------------------------------------------------------------------


def swaps(space: ta.Space, rates: Floats) -> list[Swap]:
    """Every two orders of the same severities."""
    severities = space.matrix(np.arange(space.size))[:, : len(space.axes)]
    alike: dict[tuple[int, ...], list[int]] = {}
    for test, row in enumerate(severities.tolist()):
        alike.setdefault(tuple(row), []).append(test)
    return [
        Swap(a, b, float(rates[b] - rates[a])) if rates[b] >= rates[a] else Swap(b, a, float(rates[a] - rates[b]))
        for tests in alike.values()
        for a, b in itertools.combinations(tests, 2)
    ]


def matters(page: Page, space: ta.Space, passed: Passed) -> None:
    """The largest differences between orders, and the mean ones between before and after."""
    rates = passed.mean(axis=1)
    all_swaps = swaps(space, rates)
    confidence = 1 - 0.05 / len(all_swaps)  # each, so that all hold together: the largest is chosen among them
    rows = []
    for order in (2, 3):
        largest = max((one for one in all_swaps if order_of(space, one.first) == order), key=lambda one: one.difference)
        ((low, high),) = intervals(passed, [largest], confidence)
        both = f"{rates[largest.first]:.3f}, {rates[largest.second]:.3f}"
        change = [f"{largest.difference:+.3f}", f"{low:+.3f} … {high:+.3f}"]
        rows.append([told(space, largest.first), told(space, largest.second), both, *change])
    page.text(
        "The same severities in another order: the two orders that differ most, by the number of perturbations. "
        f"Intervals for paired rates, 95 % for all {len(all_swaps):,} pairs together."
    )
    page.table(["applied in this order", "and in that", "rates", "difference", "interval"], rows, "no chance in it")
    sizes = np.array([one.difference for one in all_swaps])
    certain = (intervals(passed, all_swaps, confidence)[:, 0] > 0).mean()
    page.text(
        f"Over all such pairs the difference is {sizes.mean():.3f} on average, more than .05 in "
        f"{100 * (sizes > 0.05).mean():.0f} % and certain in {100 * certain:.0f} %. A plain space, which applies "
        "perturbations in the order of its axes, does not show it."
    )


def intervals(passed: Passed, some: Sequence[Swap], confidence: float) -> Floats:
    """Bounds of the differences: all orders were tried on the same inputs."""
    first, second = passed[[one.first for one in some]], passed[[one.second for one in some]]
    gained, lost = (second & ~first).sum(axis=1), (first & ~second).sum(axis=1)
    return np.stack(paired_interval(gained, lost, passed.shape[1], confidence=confidence), axis=1)


def order_of(space: ta.Space, test: int) -> int:
    return int((space.matrix(np.array([test]))[0, : len(space.axes)] > 0).sum())


def told(space: ta.Space, test: int) -> str:
    """A test by its severities, in the order of application."""
    severities, places = np.split(space.matrix(np.array([test]))[0], 2)
    applied = sorted(np.flatnonzero(severities), key=lambda axis: places[axis])
    return ", ".join(f"{space.names[axis]} {severities[axis]}" for axis in applied)


# -- what both methods make of it --------------------------------------------------------------------------------------


def estimated(page: Page, space: ta.Space, passed: Passed, setting: Setting) -> None:
    """Errors by order and coverage, the published method and ours."""
    orders = (space.matrix(np.arange(space.size))[:, : len(space.axes)] > 0).sum(axis=1)
    low_share = float((orders <= 2).mean())
    seeds = range(setting.times(SEEDS))
    found = {PUBLISHED: [judged(space, passed, Ordered(), "forest", low_share, seed) for seed in seeds]}
    for share in SHARES[:1] if setting.tiny else SHARES:
        found[f"ours, {100 * share:.0f} %"] = [
            judged(space, passed, Adaptive(), "process", share, seed) for seed in seeds
        ]
    page.text(
        "Mean absolute error by order (measured tests among them), the mean error on order 3, and how many of the 95 % "
        "intervals hold the truth: of all tests, and of the six regions `before(a, b)`. A forest has no intervals."
    )
    rows = [[name, f"{100 * runs[0].share:.1f} %", *figures(runs, orders)] for name, runs in found.items()]
    header = ["method", "inferences", "order 1", "order 2", "order 3", "mean error", "tests held", "regions held"]
    page.table(header, rows, f"seeds 0–{len(seeds) - 1}")
    page.figure(
        "order",
        drawn(found, orders),
        "Errors on order 3, all seeds: quartiles, and 95 % between the whiskers",
        f"seeds 0–{len(seeds) - 1}",
    )
    errors = {name: np.abs([one.errors[orders == 3] for one in runs]).mean() for name, runs in found.items()}
    page.claim(
        "Partial tomography also serves order-sensitive spaces (916 tests)",
        "no figure",
        f"mean absolute error on order 3: {errors[PUBLISHED]:.3f} from {100 * low_share:.0f} % of the inferences; "
        f"ours {errors['ours, 1 %']:.3f} from 1 %",
        None,
    )


def judged(space: ta.Space, passed: Passed, strategy: Any, surrogate: str, share: float, seed: int) -> Judged:
    """One run against all outcomes."""
    found = run(space, passed, strategy, surrogate, round(share * passed.size), seed)
    truth = passed.mean(axis=1)
    estimate, low, high = (array.reshape(-1) for array in (found.estimate, found.low, found.high))
    share, errors = found.inferences / passed.size, estimate - truth
    if np.isnan(low).any():  # predictions without intervals
        return Judged(share, errors, float("nan"), float("nan"))
    inside = (low <= truth + 1e-9) & (truth <= high + 1e-9)
    return Judged(share, errors, float(inside.mean()), float(np.mean([holds(found, truth, q) for q in pairs(space)])))


def figures(runs: list[Judged], orders: NDArray[np.int64]) -> list[str]:
    errors = np.array([one.errors for one in runs])
    means = [f"{np.abs(errors[:, orders == order]).mean():.4f}" for order in (1, 2, 3)]
    return [*means, f"{errors[:, orders == 3].mean():+.4f}", *(held(runs, what) for what in ("tests", "regions"))]


def held(runs: list[Judged], what: str) -> str:
    """The share of intervals that hold the truth."""
    shares = [getattr(one, what) for one in runs]
    return "–" if np.isnan(shares).any() else f"{100 * np.mean(shares):.1f} %"


def drawn(found: dict[str, list[Judged]], orders: NDArray[np.int64]) -> Any:
    """Box plots of errors."""
    figure, panels = axes(width=5.2, height=1.9)
    panel = panels[0, 0]
    names = list(found)[::-1]
    boxes = panel.boxplot(
        [np.concatenate([one.errors[orders == 3] for one in found[name]]) for name in names],
        orientation="horizontal", tick_labels=names, whis=(2.5, 97.5), showfliers=False, patch_artist=True, widths=0.6,
    )  # fmt: skip
    for box, name in zip(boxes["boxes"], names, strict=True):
        box.set_facecolor(COLOURS["published" if name == PUBLISHED else "ours small"])
    for median in boxes["medians"]:
        median.set_color(COLOURS["truth"])
    panel.axvline(0, color=COLOURS["truth"], lw=0.8)
    panel.set(xlabel="error (positive: optimistic)")
    return figure
