"""Estimates in spaces too large to list, against the truth.

    python benchmarks/scale_truth.py simulated [--axes 8 15] [--seeds 20] [--regions 10] [--budget 50000] [--workers N]
    python benchmarks/scale_truth.py cifar [--configurations 60] [--inputs 1000] [--budget 50000] [--seeds 1]
        [--device cuda]
    python benchmarks/scale_truth.py fits [--axes 8 15]

`simulated`: inputs with a margin, a weakness of their own towards every axis, and pairs of axes that help or harm each
other; the rate of any test on all inputs is known. `cifar`: ResNet-20 under eight perturbations of cifar_c; random
configurations are measured freshly, each on so many inputs, and a region is compared with those of them that are in
it. Regions are random queries. What intervals are compared with is a sample too, for which they are widened. `fits`:
processor seconds and memory of a fit of 20,000 tests, and of a fit of a run over 46,656 tests with all their estimates.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import kept
import numpy as np
from common import need, report
from numpy.typing import NDArray

import testifai as ta
from testifai.engine.plan import Work
from testifai.models import load
from testifai.runs.outcomes import Outcomes
from testifai.space import Selection
from testifai.strategies import Adaptive
from testifai.strategies.base import Progress
from testifai.tomogram import EstimatorSettings

LEVELS = 6
AXES = ["gaussian_noise", "defocus_blur", "fog", "brightness", "contrast", "pixelate", "jpeg_compression", "saturate"]
GROUPS = {"severity >= 0": "all", "order <= 3": "order <= 3"}
DRAWN = 4000  # tests whose mean stands for that of a region
FEWEST = 100  # tests of a region for their mean to say something of it
Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


class World:
    """Inputs and how they fare under every test."""

    def __init__(self, axes: int, seed: int, inputs: int = 5000) -> None:
        random = np.random.default_rng(seed)
        self.inputs, self._axes = inputs, np.arange(axes)
        self._margin = random.gamma(4, 0.5, inputs) - 0.15
        size = random.gamma(2, 0.5, axes)
        size /= size.sum()
        self._weakness = random.gamma(1.5, 1 / 1.5, (inputs, axes)) * size * 1.4
        self._effect = np.array([2 * np.linspace(0, 1, LEVELS) ** power for power in random.uniform(0.6, 1.8, axes)])
        pairs = random.normal(0, 0.5, (axes, axes)) * (random.random((axes, axes)) < 0.3)
        self._pairs = np.triu(pairs, 1) * np.sqrt(np.outer(size, size))
        keep = ta.Perturbation("keep", lambda batch, parameter, rng: batch, range(LEVELS))
        self.space = ta.Space({f"a{axis}": keep for axis in range(axes)})

    def passed(self, rows: Rows, places: NDArray[np.intp] | slice = slice(None)) -> NDArray[np.bool_]:
        """Which inputs pass under which tests, a column for each test."""
        effect = self._effect[self._axes, rows]
        shift = np.einsum("ni,ij,nj->n", effect, self._pairs, effect)
        return self._margin[places, None] > self._weakness[places] @ effect.T + shift

    def rates(self, rows: Rows) -> Floats:
        return np.concatenate([self.passed(some).mean(axis=0) for some in np.array_split(rows, 1 + len(rows) // 500)])

    def run(self, budget: int, seed: int) -> ta.Tomogram:
        progress = Progress(self.space, Outcomes(self.inputs), budget=budget, seed=seed)
        while (work := Adaptive().propose(progress)) is not None:
            for test, row, places in zip(
                work.configurations.tolist(), self.space.matrix(work.configurations), work.places, strict=True
            ):
                progress.outcomes.record(test, places, self.passed(row[None], places)[:, 0])
        return ta.Tomogram(
            self.space,
            progress.outcomes,
            np.arange(self.inputs),
            settings=EstimatorSettings(surrogate="process", seed=seed),
        )


def queries(random: np.random.Generator, names: tuple[str, ...], count: int) -> Iterator[str]:
    """Random queries: ranges of one to three axes, low orders, sums of severities."""
    for _ in range(count):
        kind = random.integers(4)
        if kind == 0:
            yield f"order <= {random.integers(1, 4)}"
        elif kind == 1:
            yield f"severity <= {random.integers(4, 2 * len(names))}"
        else:
            chosen = random.choice(names, int(random.integers(1, 4)), replace=False)
            yield " and ".join(f"{name} {random.choice(['<=', '>='])} {random.integers(1, 5)}" for name in chosen)


def one_world(axes: int, seed: int, budget: int, regions: int) -> dict[str, list[float]]:
    """A run over one world: errors and coverage, one number per group of tests and one per region."""
    random = np.random.default_rng(seed + 1000)
    world = World(axes, seed)
    begin = time.perf_counter()
    tomogram = world.run(budget, seed)
    surrogate = tomogram.estimator.fitted()
    assert surrogate is not None
    found: dict[str, list[float]] = {"clock": [time.perf_counter() - begin], "error": [], "covered": []}
    for text in GROUPS:
        rows = Selection(world.space, text).rows(500, random)
        truth = world.rates(rows)
        low, high = surrogate.bounds(rows)
        found["error"].append(float(np.abs(surrogate.predict(rows)[0] - truth).mean()))
        found["covered"].append(float(((low <= truth) & (truth <= high)).mean()))
    found["off"], found["width"], found["held"] = [], [], []
    for text in queries(random, world.space.names, regions):
        answer, chosen = tomogram.query(text), Selection(world.space, text)
        rates = world.rates(chosen.rows(DRAWN, random))
        spread = 1.96 * float(rates.std()) * np.sqrt(max(0.0, 1 / len(rates) - 1 / chosen.count))
        off, half = answer.robustness - float(rates.mean()), (answer.high - answer.low) / 2
        beyond = max(answer.low - rates.mean(), rates.mean() - answer.high)
        found["off"].append(abs(off))
        found["width"].append(half)
        # The truth is a draw too: an interval is wrong where it misses by more than both allow together.
        found["held"].append(float(beyond <= np.hypot(half, spread) - half))
    return found


def simulated(axes: int, seeds: int, budget: int, regions: int, workers: int | None) -> None:
    cases = [(axes, seed, budget, regions) for seed in range(seeds)]
    worlds = list(kept.results("scale-truth", one_world, cases, workers=workers).values())
    print(f"{axes} axes, {LEVELS**axes:,} tests, {budget:,} inferences, {seeds} seeds")
    for place, group in enumerate(GROUPS.values()):
        report(f"  mean error of tests, {group}", mean(world["error"][place] for world in worlds), "", 0.03)
        covered = [world["covered"][place] for world in worlds]
        report(f"  tests not covered, {group}", 1 - mean(covered), f"± {error(covered):.3f}", 0.07)
    held = [mean(world["held"]) for world in worlds]
    report("  mean error of regions", mean(mean(world["off"]) for world in worlds), "")
    report("  their half-width", mean(mean(world["width"]) for world in worlds), "")
    report(f"  regions not covered ({regions * seeds})", 1 - mean(held), f"± {error(held):.3f}", 0.07)
    report("  plan and fit", mean(world["clock"][0] for world in worlds), "s")


def mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def error(values: Sequence[float]) -> float:
    """The standard error of a mean over seeds."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def cifar(configurations: int, inputs: int, budget: int, seeds: int, regions: int, device: str | None) -> None:
    model_path, data_path = need("models/cifar10_resnet20.onnx", "data/cifar10_test.npz")
    stored = np.load(data_path)
    data, model = (stored["x"], stored["y"]), network(model_path, device)
    space = ta.Space({name: f"cifar_c.{name}" for name in AXES})
    random = np.random.default_rng(1)
    tests = Given(np.unique(Selection(space).sample(configurations, random)), inputs)
    options: dict[str, Any] = {"device": device} if device else {"workers": 1}
    truth = ta.scan(model, data, space, strategy=tests, surrogate="none", seed=7, **options)
    passes, trials = truth.outcomes.counts(truth.estimator.measured_ids)
    rows, rates = space.matrix(truth.estimator.measured_ids)[1:], (passes / trials)[1:]
    noise = np.maximum(rates * (1 - rates), 0.01) / inputs * (1 - inputs / len(data[1]))  # variance of each rate
    print(f"CIFAR-10, ResNet-20, {space.size:,} tests, {budget:,} inferences; {len(rows)} tests on {inputs:,} inputs")
    report("  mean rate", float(rates.mean()), "")
    errors, covered, held, off, clock = [], [], [], [], []
    for seed in range(seeds):
        begin = time.perf_counter()
        tomogram = ta.scan(model, data, space, budget=budget, seed=seed, **options)
        surrogate = tomogram.estimator.fitted()
        assert surrogate is not None
        clock.append(time.perf_counter() - begin)
        low, high = surrogate.bounds(rows)
        beyond = np.maximum(low - rates, rates - high)
        half = (high - low) / 2
        covered.append(float((beyond <= np.hypot(half, 1.96 * np.sqrt(noise)) - half).mean()))
        errors.append(float(np.abs(surrogate.predict(rows)[0] - rates).mean()))
        for text in queries(random, space.names, regions):
            chosen = Selection(space, text)
            inside = chosen.holds(rows)
            if np.count_nonzero(inside) < FEWEST:
                continue
            answer, own = tomogram.query(text), rates[inside]
            spread = 1.96 * float(np.sqrt(own.var() / len(own) * (1 - len(own) / chosen.count) + noise[inside].mean()))
            half, apart = (answer.high - answer.low) / 2, max(answer.low - own.mean(), own.mean() - answer.high)
            held.append(float(apart <= np.hypot(half, spread) - half))
            off.append(abs(answer.robustness - float(own.mean())))
    report("  mean error of tests", mean(errors), "", 0.03)
    report("  of it noise of what they are compared with", float(0.8 * np.sqrt(noise).mean()), "")
    report("  tests not covered", 1 - mean(covered), f"± {error(covered):.3f}", 0.07)
    report("  mean distance of regions from their tests' mean", mean(off), "")
    report(f"  regions not covered ({len(held)})", 1 - mean(held), "", 0.07)
    report("  run and fit", mean(clock), "s")


def network(path: Path, device: str | None) -> Any:
    """The model as onnxruntime runs it, or on a device as torch does."""
    if device is None:
        return load("onnx", path)
    from testifai.models.onnx_torch import onnx_as_torch
    from testifai.models.torch import TorchModel

    return TorchModel(onnx_as_torch(path), layout="NCHW", scale="unit", device=device)


def fits(axes: list[int]) -> None:
    for number in axes:
        world, random = World(number, 0), np.random.default_rng(0)
        tests, outcomes = Selection(world.space).sample(20_000, random), Outcomes(world.inputs)
        for test, row in zip(tests.tolist(), world.space.matrix(tests), strict=True):
            places = np.sort(random.permutation(world.inputs)[:10])
            outcomes.record(test, places, world.passed(row[None], places)[:, 0])
        tomogram = ta.Tomogram(
            world.space, outcomes, np.arange(world.inputs), settings=EstimatorSettings(surrogate="process")
        )
        begin = time.process_time()
        tomogram.estimator.fitted()
        report(f"fit of 20,000 tests of {number} axes", time.process_time() - begin, "s", 60)
    world = World(6, 0)
    begin = time.process_time()
    tomogram = world.run(20_000, 0)
    assert tomogram.estimate.size == 46_656
    report("plan, fit and estimates of 46,656 tests", time.process_time() - begin, "s", 10)
    report("peak of memory", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, "GB", 1.5)


class Given:
    """A strategy that runs given tests on the first inputs."""

    name = "given"
    surrogate = None

    def __init__(self, tests: Rows, inputs: int) -> None:
        self.tests, self.inputs = np.union1d([0], tests), inputs

    def propose(self, progress: Progress) -> Work | None:
        if progress.outcomes.total():
            return None
        return Work(self.tests, np.arange(self.inputs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["simulated", "cifar", "fits"])
    parser.add_argument("--axes", type=int, nargs="+", default=[8, 15])
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--regions", type=int, default=10)
    parser.add_argument("--budget", type=int, default=50_000)
    parser.add_argument("--configurations", type=int, default=60)
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--device")
    parser.add_argument("--workers", type=int, help="processes of a simulation; default: as many as there are cores")
    given = parser.parse_args()
    if given.what == "cifar":
        cifar(given.configurations, given.inputs, given.budget, given.seeds or 1, given.regions, given.device)
    elif given.what == "fits":
        fits(given.axes)
    else:
        for axes in given.axes:
            simulated(axes, given.seeds or 20, given.budget, given.regions, given.workers)


if __name__ == "__main__":
    main()
