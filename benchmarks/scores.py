"""Whether 95 % intervals for means of scores hold: simulated scores of every kind, over many seeds.

    python benchmarks/scores.py [--seeds 20] [--first 0] [--kinds NAME ...] [--shares .05 .2] [--inputs 400]
        [--markdown FILE]

Every seed draws a surface of 216 tests, as `coverage.py` does, and the scores of a population of inputs: an input that
is hard under one test is likely so under others. `adaptive` is planned for the score and spends a share of all
inferences. Regions are the standard queries. Tests by themselves, tried on so many inputs each, have no surrogate and
assume no smooth surface. Tests of one seed are dependent, so that the standard error in brackets is that over seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from one_seed import AXES, LEVELS, WITHIN, surface
from replay import Grid, replay

from testifai.statistics.means import Moments, mean_interval
from testifai.tomogram.regions import standard_queries

Floats = NDArray[np.float64]

SURFACES = ("smooth", "floor", "compensating", "rough")  # in turn, by the seed
ALONE = (5, 10, 30)  # inputs of a test by itself


def _uniform(latent: Floats) -> Floats:
    from scipy.special import ndtr

    return np.asarray(ndtr(latent))


def _two_points(mean: Floats, latent: Floats) -> Floats:
    """Passes and failures."""
    return (_uniform(latent) < mean).astype(np.float64)


def _high_or_low(mean: Floats, latent: Floats) -> Floats:
    """.15 or .95, nothing else."""
    return np.where(_uniform(latent) < (mean - 0.15) / 0.8, 0.95, 0.15)


def _skewed(mean: Floats, latent: Floats) -> Floats:
    """Beta variables, Beta(8, 1) where the mean is 8/9."""
    from scipy.special import betaincinv

    return np.asarray(betaincinv(9 * mean, 9 * (1 - mean), _uniform(latent)))


def _constant(mean: Floats, latent: Floats) -> Floats:
    """The same for every input."""
    return np.broadcast_to(mean, latent.shape).copy()


def _mixed(mean: Floats, latent: Floats) -> Floats:
    """As F1 of detections: 1 for many inputs, 0 for some, and anything in between."""
    from scipy.special import betaincinv

    share = _uniform(latent)
    ones, zeros = mean**2, 0.5 * (1 - mean) ** 2
    between = np.clip((share - zeros) / np.maximum(1 - ones - zeros, 1e-9), 1e-6, 1 - 1e-6)
    return np.where(share < zeros, 0.0, np.where(share > 1 - ones, 1.0, betaincinv(4 * mean, 4 * (1 - mean), between)))


KINDS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "passes and failures": _two_points,
    ".15 or .95": _high_or_low,
    "skewed": _skewed,
    "constant": _constant,
    "mixed": _mixed,
}


def grid_of(kind: str, inputs: int, seed: int) -> Grid:
    """A population of scores under every test: the inputs' luck is shared in part, as in `coverage.py`."""
    random = np.random.default_rng([seed, list(KINDS).index(kind)])
    mean, _ = surface(SURFACES[seed % len(SURFACES)], random)
    shared, own = random.normal(size=inputs), random.normal(size=(len(mean), inputs))
    latent = WITHIN**0.5 * shared + (1 - WITHIN) ** 0.5 * own
    scores = np.clip(KINDS[kind](np.clip(mean, 0.02, 0.98)[:, None], latent), 0, 1).astype(np.float32)
    cells = scores.reshape((LEVELS,) * AXES + (inputs,))
    return Grid(("a", "b", "c"), inputs, np.packbits(cells >= 0.5, axis=-1), score="f1", scores=cells)


def one_run(kind: str, inputs: int, share: float, seed: int) -> dict[str, Any]:
    """How many intervals hold of a run's tests and regions, and how wide they are."""
    grid = grid_of(kind, inputs, seed)
    run = replay(grid, "adaptive", budget=int(share * inputs * LEVELS**AXES), seed=seed, score="f1").scored("f1")
    truth = grid.means
    held = _held(run.low, truth, run.high)
    regions = [(run.query(query), run.select(query)) for query in standard_queries(run.space).values()]
    answers = np.array([[one.low, truth.reshape(-1)[chosen].mean(), one.high] for one, chosen in regions]).T
    return {
        "tests": float(held.mean()),
        "regions": float(_held(*answers).mean()),
        "error": float(np.abs(run.estimate - truth).mean()),
        "width": float((run.high - run.low).mean() / 2),
        "region width": float((answers[2] - answers[0]).mean() / 2),
    }


def _held(low: Floats, truth: Floats, high: Floats) -> NDArray[np.bool_]:
    return np.asarray((low <= truth + 1e-6) & (truth <= high + 1e-6))


def alone(kind: str, inputs: int, trials: int, seed: int) -> tuple[float, float]:
    """Of tests by themselves, tried on so many inputs: how many intervals hold, and how wide they are."""
    grid = grid_of(kind, inputs, seed)
    scores = grid.scores.reshape(-1, inputs)  # type: ignore[union-attr]
    random = np.random.default_rng([seed, trials])
    seen = np.array([row[random.choice(inputs, trials, replace=False)] for row in scores])
    low, high = mean_interval(Moments.of(seen), inputs)
    return float(_held(low, grid.means.reshape(-1), high).mean()), float((high - low).mean() / 2)


def rows_of(kinds: Sequence[str], shares: Sequence[float], inputs: int, seeds: Sequence[int]) -> list[list[str]]:
    """A row for every kind of scores and share."""
    rows = []
    for kind in kinds:
        for share in shares:
            found = [one_run(kind, inputs, share, seed) for seed in seeds]
            columns = {name: np.array([one[name] for one in found]) for name in found[0]}
            covered = [f"{columns[name].mean():.3f} ({_error(columns[name]):.3f})" for name in ("tests", "regions")]
            rest = [f"{columns[name].mean():.4f}" for name in ("error", "width", "region width")]
            rows.append([kind, f"{100 * share:g} %", *covered, *rest])
            print("  ".join(rows[-1]), flush=True)
    return rows


def alone_rows(kinds: Sequence[str], inputs: int, seeds: Sequence[int]) -> list[list[str]]:
    """A row for every kind, of tests by themselves."""
    rows = []
    for kind in kinds:
        cells = [kind]
        for trials in ALONE:
            covered, width = np.array([alone(kind, inputs, trials, seed) for seed in seeds]).T
            cells.append(f"{covered.mean():.3f} ({_error(covered):.3f}), ± {width.mean():.3f}")
        rows.append(cells)
        print("  ".join(cells), flush=True)
    return rows


def _error(values: Floats) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """As Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first of the seeds")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--shares", nargs="*", type=float, default=[0.05, 0.2])
    parser.add_argument("--inputs", type=int, default=400)
    parser.add_argument("--markdown", type=Path)
    asked = parser.parse_args()
    head = ["scores", "budget", "tests", "regions", "error", "± of tests", "± of regions"]
    seeds = range(asked.first, asked.first + asked.seeds)
    text = table(head, rows_of(asked.kinds, asked.shares, asked.inputs, seeds))
    by_themselves = ["scores", *(f"{trials} inputs" for trials in ALONE)]
    text += "\n\n" + table(by_themselves, alone_rows(asked.kinds, asked.inputs, seeds)) + "\n"
    print(text)
    if asked.markdown is not None:
        asked.markdown.write_text(text)


if __name__ == "__main__":
    main()
