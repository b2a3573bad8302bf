"""Why estimates near the clean test are off: the surface learned from what was seen, and from the truth in its place.

    python benchmarks/near_clean.py FILE ... [--share 0.01] [--seeds 4]

On recorded grids, `adaptive` decides how often each test is tried. The surface is then learned from the passes counted,
from as many trials with the true rates in their place, which have no sampling error, and from the passes without
the clean test. What is off in the second as in the first is smoothed away, whatever the trials say. By the true rate,
perturbed tests: mean error, mean absolute error, mean half-width and the share of the 95 % intervals that hold.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from replay import Grid, replay

from testifai.surrogates.process import Process

EDGES = (0, 0.5, 0.8, 0.9, 0.98, 1)


def learned(grid: Grid, share: float, seed: int) -> Iterator[tuple[str, Process]]:
    """The surfaces of one run, each with what it was learned from."""
    tests = np.arange(grid.space.size)
    rows = grid.space.matrix(tests)
    found = replay(grid, "adaptive", budget=round(share * len(tests) * grid.inputs), seed=seed)
    passes, trials = found.outcomes.counts(tests)
    perturbed = tests > 0
    levels = [range(count) for count in grid.levels]
    yield "passes", Process(levels).fit(rows, passes, trials)
    yield "true rates", Process(levels).fit(rows, grid.truth.reshape(-1) * trials, trials)
    yield "passes without clean", Process(levels).fit(rows, passes * perturbed, trials * perturbed)


def lines(grid: Grid, surfaces: list[Process]) -> Iterator[str]:
    """What surfaces of several seeds have in common, by the true rate."""
    rows, truth = grid.space.matrix(np.arange(grid.space.size)), grid.truth.reshape(-1)
    errors = np.array([one.predict(rows)[0] for one in surfaces]) - truth
    low, high = np.array([one.bounds(rows) for one in surfaces]).swapaxes(0, 1)
    held = (low <= truth) & (truth <= high)
    for least, most in itertools.pairwise(EDGES):
        some = (truth >= least) & (truth < most) & rows.any(axis=1)
        if some.any():
            yield (
                f"rates {least:g}-{most:g}: {some.sum():4} tests  error {errors[:, some].mean():+.4f}  "
                f"absolute {np.abs(errors[:, some]).mean():.4f}  half-width {(high - low)[:, some].mean() / 2:.4f}  "
                f"covered {held[:, some].mean():.3f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grids", type=Path, nargs="+")
    parser.add_argument("--share", type=float, default=0.01, help="of a grid's inferences")
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args()
    for path in options.grids:
        grid = Grid.read(path)
        surfaces: dict[str, list[Process]] = {}
        for seed in range(options.seeds):
            for name, surface in learned(grid, options.share, seed):
                surfaces.setdefault(name, []).append(surface)
        for name, some in surfaces.items():
            for line in lines(grid, some):
                print(f"{path.stem:10} {name:20} {line}", flush=True)


if __name__ == "__main__":
    main()
