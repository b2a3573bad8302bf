"""Spaces in which the order of application counts: `adaptive` with the process beside `ordered` with the forest.

    python benchmarks/order_sensitive.py [--seeds 20] [--axes 3] [--each 20] [--real] [--inputs 500] [--workers N]

Every seed draws a surface over six levels of each axis and a population of 2,000 inputs whose outcomes hang together.
Which of two perturbations is applied first moves the rate by an effect of its own for every pair, which the other
severities change; or not at all. Runs have so many inferences per test, in a space of ordered configurations, and
`adaptive` with the process also in the plain space of the same surface where the order makes no difference.

With `--real`, LeNet-5 on MNIST under shot noise, brightness and motion blur: all 916 ordered tests on the first inputs,
as recorded, are the truth that both are held against, over as many seeds.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import kept
import numpy as np
from evaluation.recording import mnist_ordered
from numpy.typing import NDArray
from scipy.special import ndtri

import testifai as ta
from testifai.runs.outcomes import Outcomes
from testifai.strategies import Adaptive, Ordered, Progress, Strategy
from testifai.tomogram import EstimatorSettings
from testifai.tomogram.interactions import precedences

Floats = NDArray[np.float64]
Passed = NDArray[np.bool_]

LEVELS, INPUTS = 6, 2_000
WITHIN = 0.6  # share of an input's luck that is the same in all tests
# Standard deviation of what the order of two moves, on the scale arcsin sqrt(rate).
EFFECTS = {"none": 0.0, "weak": 0.04, "strong": 0.15}
METHODS: dict[str, tuple[Callable[[], Strategy], str]] = {
    "adaptive, process": (Adaptive, "process"),
    "ordered, forest": (Ordered, "forest"),
}
GRIDS = Path(__file__).parent / "grids"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--axes", type=int, default=3)
    parser.add_argument("--each", type=int, default=20, help="inferences per test")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--inputs", type=int, default=500, help="of the real data set")
    parser.add_argument("--workers", type=int)
    options = parser.parse_args()
    seeds = range(options.seeds)
    if options.real:
        cases = [(method, options.each, options.inputs, seed) for method in METHODS for seed in seeds]
        told(kept.results("order-real", recorded, cases, workers=options.workers), 1)
        return
    each = options.axes, options.each
    cases = [(method, effect, *each, seed) for effect in EFFECTS for method in METHODS for seed in seeds]
    cases += [("plain space", "none", *each, seed) for seed in seeds]
    told(kept.results("order-simulated", simulated, cases, workers=options.workers), 2)


def told(found: dict[tuple[Any, ...], dict[str, float]], named: int) -> None:
    """A line for each method, and effect where there is one: means over seeds."""
    print(f"{'':32} error   covered: tests     before(a, b)  half-width  pairs said to matter (wrong)")
    for name in dict.fromkeys(case[:named] for case in found):
        rows = [result for case, result in found.items() if case[:named] == name]
        mean = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
        spread = np.std([row["covered"] for row in rows], ddof=1) / len(rows) ** 0.5 if len(rows) > 1 else 0
        print(
            f"{' · '.join(name):32} {mean['error']:.4f}  {mean['covered']:.3f} ± {spread:.3f}     {mean['regions']:.3f}"
            f"         {mean['half_width']:.4f}      {mean['claimed']:.2f} ({mean['wrong']:.2f})"
        )


# -- one seed ----------------------------------------------------------------------------------------------------------


def simulated(method: str, effect: str, axes: int, each: int, seed: int) -> dict[str, float]:
    """A run over a surface of this seed."""
    space = made_space(axes, ordered=method in METHODS)
    rates = surface(space, EFFECTS[effect], np.random.default_rng(seed))
    return judged(space, population(rates, np.random.default_rng([seed, 1])), method, each, seed)


def recorded(method: str, each: int, inputs: int, seed: int) -> dict[str, float]:
    """A run over the outcomes of the model."""
    space, passed = measured(inputs)
    return judged(space, passed, method, each, seed)


def judged(space: ta.Space, passed: Passed, method: str, each: int, seed: int) -> dict[str, float]:
    """A run with so many inferences per test, against the rates of all inputs."""
    strategy, surrogate = METHODS.get(method, (Adaptive, "process"))
    found = run(space, passed, strategy(), surrogate, each * space.size, seed)
    truth = passed.mean(axis=1)
    estimate, low, high = (array.reshape(-1) for array in (found.estimate, found.low, found.high))
    held = [holds(found, truth, query) for query in pairs(space)]
    claimed = precedences(found) or []
    wrong = [
        one for one in claimed if rate(found, truth, one.first, one.second) <= rate(found, truth, one.second, one.first)
    ]
    return {
        "error": float(np.abs(estimate - truth).mean()),
        "covered": float(((low <= truth + 1e-9) & (truth <= high + 1e-9)).mean()),
        "regions": float(np.mean(held)) if held else float("nan"),
        "half_width": float((high - low).mean() / 2),
        "claimed": len(claimed),
        "wrong": len(wrong),
        "inferences": found.inferences,
    }


def run(space: ta.Space, passed: Passed, strategy: Strategy, surrogate: str, budget: int, seed: int) -> ta.Tomogram:
    """What a strategy finds on recorded outcomes (tests x inputs)."""
    progress = Progress(space, Outcomes(passed.shape[1]), budget=budget, seed=seed)
    order = np.random.default_rng(seed).permutation(passed.shape[1])  # in which inputs are visited
    while (work := strategy.propose(progress)) is not None:
        for row, test in enumerate(work.configurations.tolist()):
            places = work.places[row] if isinstance(work.places, list) else work.places
            progress.outcomes.record(test, places, passed[test, order[places]])
    return ta.Tomogram(space, progress.outcomes, order, settings=EstimatorSettings(surrogate=surrogate, seed=seed))


def pairs(space: ta.Space) -> Sequence[str]:
    """One before the other, for each two axes."""
    return [f"before({a}, {b})" for a in space.names for b in space.names if a != b and space.order_sensitive]


def holds(found: ta.Tomogram, truth: Floats, query: str) -> bool:
    answer = found.query(query)
    return bool(answer.low <= truth[found.query_engine.select(query)].mean() <= answer.high)


def rate(found: ta.Tomogram, truth: Floats, first: str, second: str) -> float:
    """That of all tests in which one is applied before the other."""
    return float(truth[found.query_engine.select(f"before({first}, {second})")].mean())


# -- what is simulated and recorded ------------------------------------------------------------------------------------


def made_space(axes: int, *, ordered: bool) -> ta.Space:
    keep = ta.Perturbation("keep", lambda batch, parameter, rng: batch, tuple(range(LEVELS)))
    return ta.Space({f"a{axis}": keep for axis in range(axes)}, order_sensitive=ordered)


def surface(space: ta.Space, effect: float, random: np.random.Generator) -> Floats:
    """The rates of all tests."""
    k, rows = len(space.axes), space.matrix(np.arange(space.size))
    strength, power = random.uniform(0.05, 0.8, k), random.uniform(0.7, 1.8, k)
    joint, first = random.normal(0, 0.15, (k, k)), random.normal(0, effect, (k, k))
    changed = random.normal(0, effect / 2, (k, k, k))
    x = rows[:, :k] / (LEVELS - 1)
    eta = 1.4 - (strength * x**power).sum(axis=1)
    for a in range(k):
        for b in range(a):
            eta += joint[a, b] * x[:, a] * x[:, b]
            if space.order_sensitive:
                others = [axis for axis in range(k) if axis not in (a, b)]
                moved = first[a, b] + x[:, others] @ changed[a, b, others]
                eta += np.sign(rows[:, k + a] - rows[:, k + b]) * moved * np.sqrt(x[:, a] * x[:, b])
    rates: Floats = np.sin(np.clip(eta, 0.05, 1.52)) ** 2
    return rates


def population(rates: Floats, random: np.random.Generator) -> Passed:
    """Outcomes of every input under every test: a shared and an own part of luck against a bound."""
    shared, own = random.normal(size=INPUTS), random.normal(size=(len(rates), INPUTS))
    return np.asarray(WITHIN**0.5 * shared + (1 - WITHIN) ** 0.5 * own < ndtri(rates)[:, None])


@functools.lru_cache(maxsize=1)
def measured(inputs: int) -> tuple[ta.Space, Passed]:
    """The recorded outcomes of LeNet-5 on the first images of MNIST."""
    return mnist_ordered.space(), mnist_ordered.read(GRIDS / mnist_ordered.FILE)[:, :inputs]


if __name__ == "__main__":
    main()
