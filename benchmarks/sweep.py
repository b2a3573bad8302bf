"""The ASAP paper's Table I for our models: oracle, asap, quad, uniform and random on eight alterations of two models.

    python benchmarks/sweep.py                          # a part of the inputs, on this machine's processor
    python benchmarks/sweep.py --curves FOLDER          # from recorded outcomes (sweep_MODEL_ours.npz)

`evaluation/recording/sweeps.py` records such outcomes, and `papers.py --only sweeps` has the whole of the evaluation.

The oracle is 1,024 equally spaced levels on all inputs, threshold 0.8. ASAP as published has curvature 128 and measures
a level on all inputs; ours finds the curvature itself and measures a level on as many inputs as it needs, with a
confidence of 95 %. `uniform` and `random` get as many levels as ASAP as published used. A record holds the outcome of
every input at equally spaced levels, between which the curve is constant: with it all methods see the same curve.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import need, report
from evaluation.sweeps_alterations import OURS
from evaluation.sweeps_records import Recorded, read

from testifai import perturb

THRESHOLD = 0.8
ORACLE = 1024
REPETITIONS = 20
MODELS = {
    "lenet5": ("mnist_lenet5", "mnist_test", 1000),
    "resnet20": ("cifar10_resnet20", "cifar10_test", 100),
}


# ---- what is swept


@dataclass(frozen=True)
class Measured:
    """A model and images themselves."""

    model: Any
    data: Any
    perturbation: perturb.Perturbation
    levels: tuple[float, float]

    def sweep(self, threshold: float, **options: Any) -> Any:
        from testifai.sweeps import sweep_model

        return sweep_model(self.model, self.data, self.perturbation, threshold, levels=self.levels, **options)


def measured_cases(name: str, inputs: int | None) -> Iterator[tuple[str, Measured]]:
    """Models and images themselves, a part of the inputs."""
    model, data, few = MODELS[name]
    path, images = need(f"models/{model}.onnx", f"data/{data}.npz")
    arrays, count = np.load(images), inputs or few
    from testifai import models

    adapter = models.load("onnx", path)
    for alteration, (one, levels) in OURS.items():
        yield alteration, Measured(adapter, (arrays["x"][:count], arrays["y"][:count]), one, levels)


def recorded_cases(name: str, folder: Path) -> Iterator[tuple[str, Recorded]]:
    """The alterations of a record."""
    path = folder / f"sweep_{name}_ours.npz"
    if path.exists():
        yield from read(path).items()
    else:
        print(f"skipped: {path} not found")


# ---- the table


def table(name: str, cases: Iterator[tuple[str, Any]]) -> list[dict[str, float]]:
    """Print the rows of one model; the error and the share of the oracle's inferences of our sweep for each."""
    from testifai.sweeps import sweep

    print(
        f"\n{name}: levels, inferences, robustness in %, error in percentage points, bound\n{'':18s}"
        f"{'oracle':>8s} | {'asap, samples':>39s} | {'asap as published':>39s} | {'quad':>22s} | "
        f"{'uniform':>14s} | {'random (s.d.)':>22s}"
    )
    rows = []
    for alteration, case in cases:
        begin = time.perf_counter()
        oracle = case.sweep(THRESHOLD, method="uniform", points=ORACLE)
        oracle_seconds = time.perf_counter() - begin
        begin = time.perf_counter()
        ours = case.sweep(THRESHOLD, seed=1)
        seconds = time.perf_counter() - begin
        published = case.sweep(THRESHOLD, curvature=128, confidence=None)
        few = published.evaluations
        quad = case.sweep(THRESHOLD, method="quad", points=ORACLE)
        uniform = case.sweep(THRESHOLD, method="uniform", points=few)

        # Twenty repetitions on the model would take hours: random levels are looked up among the oracle's.
        def curve(level: float, oracle: Any = oracle) -> float:
            return float(oracle.accuracies[np.abs(oracle.levels - level).argmin()])

        random = sweep(curve, *oracle.span, THRESHOLD, points=few, method="random", repetitions=REPETITIONS)
        truth = oracle.robustness
        rows.append(
            {
                "error": abs(ours.robustness - truth),
                "bound": ours.bound,
                "inputs": oracle.inferences / ORACLE,
                "inferences": ours.inferences / oracle.inferences,
                "published error": abs(published.robustness - truth),
                "published inferences": published.inferences / oracle.inferences,
                "seconds": seconds,
                "oracle seconds": oracle_seconds,
            }
        )
        print(
            f"{alteration:18s}{100 * truth:7.2f}% | {_row(ours, truth)} | {_row(published, truth)} | "
            f"{quad.evaluations:5d} "
            + (f"{'timeout':>16s}" if quad.timeout else f"{_points(quad.robustness, truth):>16s}")
            + f" | {_points(uniform.robustness, truth):>14s} | "
            f"{_points(random.robustness, truth):>13s} ({100 * random.spread:5.2f})",
            flush=True,
        )
    return rows


def _row(found: Any, truth: float) -> str:
    return (
        f"{found.evaluations:4d} {found.inferences:9,d} {100 * found.robustness:6.2f}% "
        f"{_points(found.robustness, truth)} ±{100 * found.bound:5.2f}"
    )


def _points(robustness: float, truth: float) -> str:
    return f"{100 * (robustness - truth):+6.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--curves", type=Path, help="the folder of recorded outcomes")
    parser.add_argument("--model", choices=sorted(MODELS), action="append", help="only these")
    parser.add_argument("--inputs", type=int, help="how many (default: 1,000 and 100; all where recorded)")
    options = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {}
    for name in options.model or MODELS:
        cases = recorded_cases(name, options.curves) if options.curves else measured_cases(name, options.inputs)
        rows = table(name, cases)
        if rows:
            found[name] = rows
    print()
    for name, rows in found.items():
        summary(name, rows, required=False)
    everything = [row for rows in found.values() for row in rows]
    if everything and not summary("all", everything, required=True):
        raise SystemExit(1)


def summary(name: str, rows: list[dict[str, float]], *, required: bool) -> bool:
    """Print the means of some rows; whether they are what is required."""
    mean = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
    broken = sum(row["error"] > row["bound"] + 1 / ORACLE for row in rows)
    reached = report(f"{name}: mean error", 100 * mean["error"], "points", 0.5 if required else None)
    # The share falls with the number of inputs, since a level needs no more of them: what is required is for 10,000.
    limit = 1.0 if required and mean["inputs"] >= 10_000 else None
    reached &= report(f"{name}: inferences, of the oracle's", 100 * mean["inferences"], "%", limit)
    report(f"{name}: mean error of asap as published", 100 * mean["published error"], "points")
    report(f"{name}: inferences of asap as published", 100 * mean["published inferences"], "%")
    limit = 0 if required else None
    reached &= report(f"{name}: errors beyond bound and oracle's step", broken, f"of {len(rows)}", limit)
    print(f"{name}: seconds per alteration: oracle {mean['oracle seconds']:.1f}, ours {mean['seconds']:.1f}")
    return reached


if __name__ == "__main__":
    main()
