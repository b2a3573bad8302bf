"""The ASAP paper's Table I for our models: oracle, asap, quad, uniform and random on eight alterations of two models.

    python benchmarks/sweep.py                          # a part of the inputs, on this machine's processor
    python benchmarks/sweep.py --curves FOLDER          # all inputs, from recorded outcomes
    python benchmarks/make_grids.py pack PACKED mnist cifar20
    python benchmarks/sweep.py record PACKED --curves FOLDER      # record them, on an accelerator where there is one

The oracle is 1,024 equally spaced levels on all inputs, threshold 0.8. ASAP as published has curvature 128 and measures
a level on all inputs; ours finds the curvature itself and measures a level on as many inputs as it needs, with a
confidence of 95 %. `uniform` and `random` get as many levels as ASAP as published used. A record holds the outcome of
every input at 2,049 equally spaced levels, between which the curve is constant: with it all methods see the same curve.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from common import need, report
from numpy.typing import NDArray

from testifai import perturb
from testifai.perturb.images import GROUPED, image_perturbation
from testifai.perturb.ops import about_centre

THRESHOLD = 0.8
ORACLE = 1024
LEVELS = 2049
REPETITIONS = 20
MODELS = {
    "mnist": ("mnist_lenet5", "mnist_test", 1000),
    "cifar20": ("cifar10_resnet20", "cifar10_test", 100),
}


@image_perturbation("sweep.compression", [0.0, 1.0], levels=(0.0, 1.0))
def compression(ops: ModuleType, images: Any, level: float, rng: Any) -> Any:
    """JPEG with a quality from 100 (level 0) to 1."""
    return ops.jpeg(images, round(100 - 99 * level))


@image_perturbation("sweep.vertical_translation", [0.0, 0.5], slab=GROUPED)
def vertical_translation(ops: ModuleType, images: Any, share: float, rng: Any) -> Any:
    """Move the image down by a share of its height."""
    return ops.warp(images, [[1, 0, 0], [0, 1, -share * ops.image_shape(images)[0]]])


@image_perturbation("sweep.horizontal_translation", [0.0, 0.5], slab=GROUPED)
def horizontal_translation(ops: ModuleType, images: Any, share: float, rng: Any) -> Any:
    """Move the image to the right by a share of its width."""
    return ops.warp(images, [[1, 0, -share * ops.image_shape(images)[1]], [0, 1, 0]])


@image_perturbation("sweep.blur", [0.0, 4.0], levels=(0.0, 4.0))
def blur(ops: ModuleType, images: Any, sigma: float, rng: Any) -> Any:
    """Gaussian blur, sigma in pixels."""
    return ops.gaussian(images, sigma)


@image_perturbation("sweep.brightness", [0.0, 0.5], slab=GROUPED)
def brightness(ops: ModuleType, images: Any, amount: float, rng: Any) -> Any:
    """Add a share of white to all values."""
    return ops.lookup(images, np.clip(np.rint(np.arange(256) + 255 * amount), 0, 255).astype(np.uint8))


@image_perturbation("sweep.zoom", [0.0, 1.0], levels=(0.0, 1.0), slab=GROUPED)
def zoom(ops: ModuleType, images: Any, more: float, rng: Any) -> Any:
    """Enlarge about the centre: 0 as it is, 1 twice as large."""
    return ops.warp(images, about_centre(np.eye(2) / (1 + more), *ops.image_shape(images)[:2]))


# Level 0 is the original in all of them.
ALTERATIONS: dict[str, tuple[perturb.Perturbation, tuple[float, float]]] = {
    "gaussian noise": (perturb.get("classic.gaussian_noise"), (0.0, 0.5)),
    "compression": (compression, (0.0, 1.0)),
    "vertical trans.": (vertical_translation, (-0.25, 0.25)),
    "horizontal trans.": (horizontal_translation, (-0.25, 0.25)),
    "blur": (blur, (0.0, 4.0)),
    "brightness": (brightness, (-0.5, 0.5)),
    "zoom": (zoom, (0.0, 1.0)),
    "rotation": (perturb.get("classic.rotation"), (0.0, 45.0)),
}


# ---- recording


def record(names: list[str], packed: Path, folder: Path, device: str, inputs: int, levels: int, batch: int) -> None:
    """Write the outcomes of every input at every level, for each model a file."""
    import torch
    from make_grids import Network, floats

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        model, data, _ = MODELS[name]
        begin = time.perf_counter()
        arrays, network = np.load(packed / f"{data}.npz"), Network(packed / f"{model}.npz", torch.device(device))
        images, labels = (torch.from_numpy(arrays[part][:inputs]).to(device) for part in ("x", "y"))
        found = {}
        for alteration, (one, (low, high)) in ALTERATIONS.items():
            # A level of the sweep must not be taken for "off" because it is the first.
            wide = replace(one, levels=(low - 1, high))
            passed = torch.empty((len(images), levels), dtype=torch.bool, device=device)
            with torch.inference_mode():
                for start in range(0, len(images), batch):
                    part, indices = images[start : start + batch], np.arange(len(images))[start : start + batch]
                    for place, level in enumerate(np.linspace(low, high, levels)):
                        changed = part if level == 0 else wide.apply_level(part, float(level), indices=indices)
                        outputs = network(floats(changed)).argmax(1)
                        passed[start : start + batch, place] = outputs == labels[start : start + batch]
            # Neighbouring levels have mostly equal outcomes: packed along them, the file is small.
            found[alteration] = np.packbits(passed.cpu().numpy(), axis=1)
            print(f"{name} {alteration}: {time.perf_counter() - begin:.0f} s", flush=True)
        np.savez_compressed(folder / f"sweep_{name}.npz", inputs=len(images), levels=levels, **found)


# ---- what is swept


@dataclass(frozen=True)
class Case:
    """A model's inputs under one alteration."""

    model: Any
    data: Any
    perturbation: perturb.Perturbation
    levels: tuple[float, float]
    inputs: int

    def sweep(self, **options: Any) -> Any:
        from testifai.sweeps import sweep_model

        return sweep_model(self.model, self.data, self.perturbation, THRESHOLD, levels=self.levels, **options)


def measured_cases(name: str, inputs: int | None) -> Iterator[tuple[str, Case]]:
    """Models and images themselves, a part of the inputs."""
    model, data, few = MODELS[name]
    path, images = need(f"models/{model}.onnx", f"data/{data}.npz")
    arrays, count = np.load(images), inputs or few
    from testifai import models

    adapter = models.load("onnx", path)
    for alteration, (one, levels) in ALTERATIONS.items():
        yield alteration, Case(adapter, (arrays["x"][:count], arrays["y"][:count]), one, levels, count)


def recorded_cases(name: str, folder: Path) -> Iterator[tuple[str, Case]]:
    """The record behind a perturbation that adds the nearest level's number and a model that looks outcomes up."""
    record = np.load(folder / f"sweep_{name}.npz")
    inputs, levels = int(record["inputs"]), int(record["levels"])
    rows = np.column_stack([np.arange(inputs), np.zeros(inputs, int)])
    for alteration, (_, (low, high)) in ALTERATIONS.items():
        passed = np.unpackbits(record[alteration], axis=1, count=levels)

        def look_up(batch: NDArray[Any], level: float, rng: Any, low: float = low, high: float = high) -> NDArray[Any]:
            place = round((level - low) / (high - low) * (levels - 1))
            return np.column_stack([batch[:, 0], np.full(len(batch), place)])

        def model(batch: NDArray[Any], passed: NDArray[np.uint8] = passed) -> NDArray[Any]:
            return passed[batch[:, 0], batch[:, 1]]

        # No level is off: the record has an outcome for each.
        one = perturb.Perturbation(f"recorded.{alteration}", look_up, [None, low])
        yield alteration, Case(model, (rows, np.ones(inputs, int)), one, (low, high), inputs)


# ---- the table


def table(name: str, cases: Iterator[tuple[str, Case]]) -> list[dict[str, float]]:
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
        oracle = case.sweep(method="uniform", points=ORACLE)
        oracle_seconds = time.perf_counter() - begin
        begin = time.perf_counter()
        ours = case.sweep(seed=1)
        seconds = time.perf_counter() - begin
        published = case.sweep(curvature=128, confidence=None)
        few = published.evaluations
        quad = case.sweep(method="quad", points=ORACLE)
        uniform = case.sweep(method="uniform", points=few)

        # Twenty repetitions on the model would take hours: random levels are looked up among the oracle's.
        def curve(level: float, oracle: Any = oracle) -> float:
            return float(oracle.accuracies[np.abs(oracle.levels - level).argmin()])

        random = sweep(curve, *case.levels, THRESHOLD, points=few, method="random", repetitions=REPETITIONS)
        truth = oracle.robustness
        rows.append(
            {
                "error": abs(ours.robustness - truth),
                "bound": ours.bound,
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
    parser.add_argument("command", nargs="?", choices=["compare", "record"], default="compare")
    parser.add_argument("packed", nargs="?", type=Path, help="record: models and data from make_grids.py pack")
    parser.add_argument("--curves", type=Path, help="the folder of recorded outcomes")
    parser.add_argument("--model", choices=sorted(MODELS), action="append", help="only these")
    parser.add_argument("--inputs", type=int, help="how many (default: 1,000 and 100; all where recorded)")
    parser.add_argument("--levels", type=int, default=LEVELS, help="record: how many (default: %(default)s)")
    parser.add_argument("--device", help="record: of torch (default: cuda where there is one)")
    parser.add_argument("--batch", type=int, default=10_000, help="record: inputs at a time")
    options = parser.parse_args()
    if options.command == "record":
        import torch

        device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
        record(
            options.model or list(MODELS),
            options.packed,
            options.curves,
            device,
            options.inputs or 10_000,
            options.levels,
            options.batch,
        )
        return
    found: dict[str, list[dict[str, float]]] = {}
    for name in options.model or MODELS:
        cases = recorded_cases(name, options.curves) if options.curves else measured_cases(name, options.inputs)
        found[name] = table(name, cases)
    print()
    for name, rows in found.items():
        summary(name, rows, required=False)
    everything = [row for rows in found.values() for row in rows]
    if not summary("all", everything, required=True):
        raise SystemExit(1)


def summary(name: str, rows: list[dict[str, float]], *, required: bool) -> bool:
    """Print the means of some rows; whether they are what is required."""
    mean = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
    broken = sum(row["error"] > row["bound"] + 1 / ORACLE for row in rows)
    reached = report(f"{name}: mean error", 100 * mean["error"], "points", 0.5 if required else None)
    limit = 1.0 if required else None
    reached &= report(f"{name}: inferences, of the oracle's", 100 * mean["inferences"], "%", limit)
    report(f"{name}: mean error of asap as published", 100 * mean["published error"], "points")
    report(f"{name}: inferences of asap as published", 100 * mean["published inferences"], "%")
    limit = 0 if required else None
    reached &= report(f"{name}: errors beyond bound and oracle's step", broken, f"of {len(rows)}", limit)
    print(f"{name}: seconds per alteration: oracle {mean['oracle seconds']:.1f}, ours {mean['seconds']:.1f}")
    return reached


if __name__ == "__main__":
    main()
