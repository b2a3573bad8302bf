"""How long each figure of `tomogram.plot()` takes, for 1,296 and 46,656 tests.

python benchmarks/plots.py

Runs of a made-up model over four and six axes of six severities, 20,000 inferences each. The surface is fitted before
the clock starts (its time is printed by itself): whoever looks at a run has it already, and a run file keeps it. Each
figure is drawn on a tomogram of its own, so that none profits from what another has worked out, and once more, as in a
notebook cell that is run again. Seconds on the wall: other programs on the machine count; look at ratios there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import testifai as ta
from testifai.support.formatting import aligned

NAMES = ("fog", "rotation", "noise", "brightness", "blur", "shift")
WEIGHTS = np.array([1.0, 0.8, 0.6, 0.5, 0.4, 0.2, 1.0, 1.0])
REGION = "fog >= 3 and rotation >= 2"


def adding(place: int) -> Callable[..., NDArray[np.float64]]:
    """A perturbation of one feature."""

    def add(rows: NDArray[np.float64], by: float, rng: Any) -> NDArray[np.float64]:
        changed = rows.copy()
        changed[:, place] += by
        return changed

    return add


def model(rows: NDArray[np.float64]) -> NDArray[np.int64]:
    return (rows @ WEIGHTS - 0.15 * rows[:, 0] * rows[:, 1] > 0).astype(np.int64)


def made_up(axes: int) -> ta.Tomogram:
    """A run over so many axes."""
    rows = np.random.default_rng(0).normal(size=(1_000, len(WEIGHTS)))
    table = [0.35 * severity for severity in range(6)]
    space = ta.Space({name: ta.Perturbation(name, adding(at), table) for at, name in enumerate(NAMES[:axes])})
    return ta.scan(model, (rows, model(rows)), space, budget=20_000)


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    rows = []
    for axes in (4, 6):
        run = made_up(axes)
        fit = seconds(lambda run=run: run.estimate)
        rows.append([f"{run.space.size:,}", "(fit and estimates)", f"{fit:.2f}", ""])
        kinds = {kind: (kind, None) for kind in ("pairs", "orders", "severities", "worst", "classes")}
        kinds["region"] = ("region", REGION)
        for kind, arguments in kinds.items():
            fresh = fitted_alone(run)
            first = seconds(lambda fresh=fresh, given=arguments: fresh.plot(*given))
            again = seconds(lambda fresh=fresh, given=arguments: fresh.plot(*given))
            rows.append([f"{run.space.size:,}", f"plot({kind!r})", f"{first:.2f}", f"{again:.2f}"])
        answer = run.query(REGION)
        drawn = f"{seconds(answer.plot):.2f}", f"{seconds(answer.plot):.2f}"
        rows.append([f"{run.space.size:,}", "answer.plot()", *drawn])
    print(aligned([["tests", "figure", "first", "again"], *rows]))


def fitted_alone(run: ta.Tomogram) -> ta.Tomogram:
    """The run with its fit and estimates, and none of the tables that were asked for."""
    fresh = replace(run)
    vars(fresh)["estimator"] = run.estimator
    return fresh


if __name__ == "__main__":
    main()
