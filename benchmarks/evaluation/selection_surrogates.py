"""The paper's preliminary comparison: other models in the forest's place, all trained on the tests of order ≤ 2."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from replay import Grid, replay

from evaluation.page import Page, seconds
from evaluation.selection_training import orders_of
from evaluation.setting import Setting
from evaluation.tasks import Task
from testifai.support.bits import unpack
from testifai.surrogates import Forest, Surrogate, resolve
from testifai.surrogates.fitting import evidence

Floats = NDArray[np.float64]

SEEDS = 3
FEW = 100  # inputs, to see how many a model needs; half of them where there are fewer
SMALL = 0.01  # of all inferences, for ours
OURS = "ours: process, 1 % of all inferences"


def boosted(seed: int) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(random_state=seed)


def perceptron(seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier((100,), solver="lbfgs", random_state=seed)


# The paper's four, then ours; a name is one of the product's.
MODELS: dict[str, Callable[[int], Any] | str] = {
    "random forest": lambda seed: Forest(seed=seed),
    "boosted trees": boosted,
    "multilayer perceptron": perceptron,
    "Bayesian network": "bayes_net",
    "ours: independence": "independence",
    "ours: pairwise": "pairwise",
    "ours: process": "process",
}
PAPERS = tuple(MODELS)[:4]


@dataclass(frozen=True)
class Fit:
    """Errors of one model on the tests of order ≥ 3, one row for each fit, and the time of a fit."""

    errors: Floats
    seconds: float

    @property
    def mse(self) -> float:
        return float((self.errors**2).mean())

    def told(self) -> str:
        return f"{self.mse * 1000:.3g} · {np.abs(self.errors).mean():.3f} · {self.errors.mean():+.3f}"


Fits = dict[tuple[str, str, int], Fit]  # by model, task and dimensions


def compare(grids: Mapping[Task, Grid], setting: Setting) -> tuple[Fits, Fits]:
    """All models on all tasks: trained on all inputs, and on few of them."""
    whole, few = {}, {}
    for task, grid in grids.items():
        for part in (grid.sub({grid.axes[-1]: 0}), grid):
            for name in MODELS:
                key = name, task.title, len(part.axes)
                whole[key] = fitted(part, name, setting, part.inputs)
                if name in PAPERS:
                    few[key] = fitted(part, name, setting, min(FEW, part.inputs // 2))
            whole[OURS, task.title, len(part.axes)] = ours(part)
    return whole, few


def fitted(grid: Grid, name: str, setting: Setting, inputs: int) -> Fit:
    """A model trained on so many inputs, under all tests of order ≤ 2."""
    high = orders_of(grid) >= 3
    features, truth = grid.space.matrix(np.arange(grid.space.size)), grid.truth.reshape(-1)
    by_chance = inputs < grid.inputs or callable(MODELS[name])
    errors, times = [], []
    for seed in range(setting.times(SEEDS) if by_chance else 1):
        measured = replay(of_inputs(grid, inputs, seed), "ordered", "none", seed=seed)
        surrogate = made(name, seed, grid)
        known = evidence(surrogate, measured.outcomes, measured.measured_ids, features[measured.measured_ids])
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the perceptron's: 200 steps are not enough for it to converge
            known.fit(surrogate)
        times.append(time.process_time() - begin)
        errors.append(surrogate.predict(features[high])[0] - truth[high])
    return Fit(np.array(errors), float(np.mean(times)))


def made(name: str, seed: int, grid: Grid) -> Surrogate:
    model = MODELS[name]
    levels = [axis.severities for axis in grid.space.axes]
    found = resolve(model(seed) if callable(model) else model, seed, levels)
    assert found is not None
    return found


def of_inputs(grid: Grid, inputs: int, seed: int) -> Grid:
    """The grid of some of its inputs, drawn at random."""
    if inputs == grid.inputs:
        return grid
    chosen = np.random.default_rng(seed).permutation(grid.inputs)[:inputs]
    return Grid(grid.axes, inputs, np.packbits(unpack(grid.passes, grid.inputs)[..., chosen], axis=-1))


def ours(grid: Grid) -> Fit:
    """What `adaptive` with the process finds for one in a hundred of all inferences."""
    found = replay(grid, "adaptive", "process", budget=max(round(SMALL * grid.space.size * grid.inputs), 2))
    begin = time.process_time()
    errors = (found.estimate - grid.truth).reshape(-1)
    return Fit(errors[None, orders_of(grid) >= 3], time.process_time() - begin)


def write(page: Page, grids: Mapping[Task, Grid], setting: Setting) -> None:
    """Tables of all models, and what became of the paper's choice."""
    whole, few = compare(grids, setting)
    titles = [task.title for task in grids]
    page.text(
        "All are trained on the tests of order ≤ 2, as the forest is: outcomes merged to weighted rows, by "
        "`surrogate=…`, which takes any classifier of scikit-learn. Boosted trees: 100 of depth 3; perceptron: one "
        "layer of 100, 200 steps of L-BFGS (the library's defaults but for the optimiser); Bayesian network: our "
        "`bayes_net`. The paper names no settings. A cell is MSE × 1000 · mean absolute error · mean error, on the "
        "tests of order ≥ 3."
    )
    for dimensions in (3, 4):
        rows = [
            [name, *(whole[name, title, dimensions].told() for title in titles), fit_time(whole, name, dimensions)]
            for name in [*MODELS, OURS]
        ]
        page.text(f"In {dimensions}D:")
        page.table(["model", *titles, "time of a fit"], rows, f"seeds 0–{setting.times(SEEDS) - 1}")
    page.text(
        "The forest's mean error: " + "; ".join(leaning(whole, titles, dimensions) for dimensions in (3, 4)) + "."
    )
    page.text(
        f"How many inputs they need: MSE × 1000 in 3D · 4D from {FEW} inputs (half of all where there are fewer), the "
        "same under all tests, drawn for each seed."
    )
    rows = [
        [name, *(" · ".join(f"{1000 * few[name, title, d].mse:.3g}" for d in (3, 4)) for title in titles)]
        for name in PAPERS
    ]
    page.table(["model", *titles], rows, f"seeds 0–{setting.times(SEEDS) - 1}")
    claims(page, whole, few)


def leaning(fits: Fits, titles: Sequence[str], dimensions: int) -> str:
    """On which tasks the forest is optimistic."""
    above = [title for title in titles if fits["random forest", title, dimensions].errors.mean() > 0]
    below = [title for title in titles if title not in above]
    return f"in {dimensions}D optimistic on {', '.join(above) or 'none'}, pessimistic on {', '.join(below) or 'none'}"


def fit_time(fits: Fits, name: str, dimensions: int) -> str:
    """The mean over the tasks."""
    return seconds(
        float(np.mean([fit.seconds for (model, _, d), fit in fits.items() if (model, d) == (name, dimensions)]))
    )


def best_in(fits: Fits) -> Counter[str]:
    """How often each of the paper's models has the smallest error."""
    settings = dict.fromkeys((title, dimensions) for _, title, dimensions in fits)
    return Counter(min(PAPERS, key=lambda name, at=at: fits[name, *at].mse) for at in settings)


def listed(best: Counter[str]) -> str:
    return ", ".join(f"{name} in {count}" for name, count in best.most_common())


def claims(page: Page, whole: Fits, few: Fits) -> None:
    """Whether the forest was the right choice of the paper's four, and what 4D costs it."""
    with_few, with_all = best_in(few), best_in(whole)
    page.claim(
        "Of forest, boosted trees, perceptron and Bayesian network, the forest needs the fewest samples",
        "“best sample efficiency … comparable accuracy”",
        f"smallest MSE on order ≥ 3, of {with_all.total()} (task, dimension), from {FEW} inputs: {listed(with_few)}; "
        f"from all: {listed(with_all)}",
        with_few["random forest"] > with_few.total() / 2,
    )
    both = {
        title: (whole["random forest", title, 3].mse, fit.mse)
        for (name, title, d), fit in whole.items()
        if (name, d) == ("random forest", 4)
    }
    page.claim(
        "Trained on order ≤ 2, the forest's MSE in 4D is comparable with 3D",
        "“already comparable”",
        "MSE on order ≥ 3, 3D → 4D: "
        + ", ".join(f"{title} {three:.4f} → {four:.4f}" for title, (three, four) in both.items())
        + " (comparable: at most twice, or below .001)",
        all(four <= max(2 * three, 0.001) for three, four in both.values()),
    )
