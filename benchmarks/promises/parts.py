"""Parts of the inputs: a class that has its own surface, one that has not, and one with next to no inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from replay import Grid, replay

from promises import Promise
from testifai.support.bits import pack
from testifai.tomogram import Tomogram

Floats = NDArray[np.float64]

LEVELS, INPUTS, CLASSES = 4, 800, 10
SEVERITIES = np.indices((LEVELS, LEVELS)).reshape(2, -1)
WITHIN = 0.5  # share of an input's luck that is the same in all tests
ODD, ORDINARY = 0, 1  # classes
HALVES = {f"axis_{axis} {sign} 2": (SEVERITIES[axis] < 2) == (sign == "<") for axis in range(2) for sign in ("<", ">=")}


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


def drawn(seed: int, budget: int, small: int | None = None) -> tuple[Tomogram, NDArray[np.bool_]]:
    """A run and the outcomes of everything; with `small`, the class ORDINARY has only so many inputs."""
    random = np.random.default_rng([seed, budget])
    labels = np.arange(INPUTS) % CLASSES
    if small is not None:
        labels[np.flatnonzero(labels == ORDINARY)[small:]] = CLASSES - 1
    labels = random.permutation(labels)
    passed = population(surfaces(random), labels, random)
    return scanned(passed, labels, budget, seed), passed


@dataclass(frozen=True)
class Covered:
    """How many intervals of a class hold the truth: those of half-spaces, of single tests, or that of `by_class`."""

    label: int
    budget: int
    of: str
    small: int | None = None

    def __call__(self, seed: int) -> tuple[int, int]:
        tomogram, passed = drawn(seed, self.budget, self.small)
        truth = passed[:, tomogram.labels == self.label].mean(axis=1)
        low, high, true = np.array(list(getattr(self, self.of)(tomogram, truth))).T
        return int(np.count_nonzero((low <= true) & (true <= high))), len(true)

    def regions(self, tomogram: Tomogram, truth: Floats) -> Iterator[tuple[float, float, float]]:
        for query, chosen in HALVES.items():
            answer = tomogram.query(query, inputs=f"label in {{{self.label}}}")
            yield answer.low, answer.high, truth[chosen].mean()

    def tests(self, tomogram: Tomogram, truth: Floats) -> Iterable[tuple[float, float, float]]:
        everything = np.arange(tomogram.space.size)
        view = tomogram.estimator.rates(everything, pack((tomogram.labels == self.label)[tomogram.order]))
        return zip(view.low, view.high, truth, strict=True)

    def by_class(self, tomogram: Tomogram, truth: Floats) -> Iterator[tuple[float, float, float]]:
        answer = tomogram.by_class()[str(self.label)]
        yield answer.low, answer.high, truth.mean()


ASSUMES = f"{INPUTS} inputs in {CLASSES} classes, 4 × 4 tests, adaptive, {{:,}} inferences"
KINDS = {
    "odd": (ODD, "a class that breaks down where others do not"),
    "ordinary": (ORDINARY, "a class like the others"),
}
WHAT = {
    "regions": "Intervals of regions on a part of the inputs",
    "tests": "Intervals of tests on a part of the inputs",
}
PROMISES = [
    Promise(
        name=f"parts-{kind}-{of}-{budget}",
        promised=f"{words} hold at 95 %",
        assumes=f"{whose}; {ASSUMES.format(budget)}",
        simulate=Covered(label, budget, of),
        at_least=0.93,
    )
    for kind, (label, whose) in KINDS.items()
    for of, words in WHAT.items()
    for budget in (1_500, 4_000)
] + [
    Promise(
        name=f"parts-ten-inputs-{budget}",
        promised="`by_class` of a class with ten inputs holds at 95 %",
        assumes=ASSUMES.format(budget),
        simulate=Covered(ORDINARY, budget, "by_class", small=10),
        at_least=0.93,
    )
    for budget in (1_500, 4_000)
]
