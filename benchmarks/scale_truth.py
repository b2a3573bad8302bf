"""Estimates in spaces too large to list, against the truth.

    python benchmarks/scale_truth.py simulated [--axes 8 15] [--seeds 20] [--regions 10] [--budget 50000]
    python benchmarks/scale_truth.py cifar [--configurations 60] [--inputs 1000] [--budget 50000]
    python benchmarks/scale_truth.py fits [--axes 8 15]

`simulated`: inputs with a margin, a weakness of their own towards every axis, and pairs of axes that help or harm each
other; the rate of any test on all inputs is known. `cifar`: ResNet-20 under eight perturbations of cifar_c; random
configurations are measured freshly, each on so many inputs. Regions are random queries there, and random sets of the
configurations here. `fits`: processor seconds and memory of a fit of 20,000 tests, and of a fit of a run over 46,656
tests with all their estimates.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator

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

LEVELS = 6
AXES = ["gaussian_noise", "defocus_blur", "fog", "brightness", "contrast", "pixelate", "jpeg_compression", "saturate"]
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
        return ta.Tomogram(self.space, progress.outcomes, np.arange(self.inputs), surrogate="process", seed=seed)


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


def simulated(axes: int, seeds: int, budget: int, regions: int) -> None:
    errors, low_errors, covered, low_covered, held, off, clock = [], [], [], [], [], [], []
    for seed in range(seeds):
        random = np.random.default_rng(seed + 1000)
        world = World(axes, seed)
        begin = time.perf_counter()
        tomogram = world.run(budget, seed)
        surrogate = tomogram.fitted()
        assert surrogate is not None
        clock.append(time.perf_counter() - begin)
        for text, error, cover in (("severity >= 0", errors, covered), ("order <= 3", low_errors, low_covered)):
            rows = Selection(world.space, text).rows(500, random)
            truth = world.rates(rows)
            low, high = surrogate.bounds(rows)
            error.append(np.abs(surrogate.predict(rows)[0] - truth).mean())
            cover.append(((low <= truth) & (truth <= high)).mean())
        for text in queries(random, world.space.names, regions):
            answer, chosen = tomogram.query(text), Selection(world.space, text)
            truth = world.rates(chosen.rows(4000, random)).mean()
            held.append(answer.low <= truth <= answer.high)
            off.append(abs(answer.robustness - truth))
    print(f"{axes} axes, {LEVELS**axes:,} tests, {budget:,} inferences, {seeds} seeds")
    report("  mean error of tests, all", float(np.mean(errors)), "", 0.03)
    report("  mean error of tests, order <= 3", float(np.mean(low_errors)), "", 0.03)
    report("  mean error of regions", float(np.mean(off)), "")
    report("  tests not covered, all", 1 - float(np.mean(covered)), "", 0.07)
    report("  tests not covered, order <= 3", 1 - float(np.mean(low_covered)), "", 0.07)
    report(f"  regions not covered ({len(held)})", 1 - float(np.mean(held)), "", 0.07)
    report("  plan and fit", float(np.mean(clock)), "s")


def cifar(configurations: int, inputs: int, budget: int) -> None:
    model_path, data_path = need("models/cifar10_resnet20.onnx", "data/cifar10_test.npz")
    stored = np.load(data_path)
    data, model = (stored["x"], stored["y"]), load("onnx", model_path)
    space = ta.Space({name: f"cifar_c.{name}" for name in AXES})
    begin = time.perf_counter()
    tomogram = ta.scan(model, data, space, budget=budget, workers=1)
    surrogate = tomogram.fitted()
    assert surrogate is not None
    clock = time.perf_counter() - begin
    random = np.random.default_rng(1)
    truth_run = Given(np.unique(Selection(space).sample(configurations, random)), inputs)
    truth = ta.scan(model, data, space, strategy=truth_run, surrogate="none", workers=1, seed=7)
    passes, trials = truth.outcomes.counts(truth.measured_ids)
    rows = space.matrix(truth.measured_ids)[1:]
    rates = (passes / trials)[1:]
    low, high = surrogate.bounds(rows)
    allowance = 1.96 * np.sqrt(np.maximum(rates * (1 - rates), 0.01) / inputs * (1 - inputs / len(data[1])))
    half = np.hypot((high - low) / 2, allowance)
    estimate = surrogate.predict(rows)[0]
    print(f"CIFAR-10, ResNet-20, {space.size:,} tests, {budget:,} inferences; {len(rows)} tests on {inputs:,} inputs")
    report("  mean rate", float(rates.mean()), "")
    report("  mean error of tests", float(np.abs(estimate - rates).mean()), "", 0.03)
    report("  of it noise of what they are compared with", float((0.8 * allowance / 1.96).mean()), "")
    report("  tests not covered", float((np.abs((low + high) / 2 - rates) > half).mean()), "", 0.07)
    held = []
    for _ in range(40):
        some = random.permutation(len(rows))[: len(rows) // 2]
        _, least, most = surrogate.region(rows[some])
        spread = 1.96 * float(np.sqrt(rates[some].mean() * (1 - rates[some].mean()) / inputs))
        held.append(least - spread <= rates[some].mean() <= most + spread)
    report("  regions not covered (40 random halves)", 1 - float(np.mean(held)), "", 0.07)
    report("  run and fit", clock, "s")


def fits(axes: list[int]) -> None:
    for number in axes:
        world, random = World(number, 0), np.random.default_rng(0)
        tests, outcomes = Selection(world.space).sample(20_000, random), Outcomes(world.inputs)
        for test, row in zip(tests.tolist(), world.space.matrix(tests), strict=True):
            places = np.sort(random.permutation(world.inputs)[:10])
            outcomes.record(test, places, world.passed(row[None], places)[:, 0])
        tomogram = ta.Tomogram(world.space, outcomes, np.arange(world.inputs), surrogate="process")
        begin = time.process_time()
        tomogram.fitted()
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
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--regions", type=int, default=10)
    parser.add_argument("--budget", type=int, default=50_000)
    parser.add_argument("--configurations", type=int, default=60)
    parser.add_argument("--inputs", type=int, default=1000)
    given = parser.parse_args()
    if given.what == "cifar":
        cifar(given.configurations, given.inputs, given.budget)
    elif given.what == "fits":
        fits(given.axes)
    else:
        for axes in given.axes:
            simulated(axes, given.seeds, given.budget, given.regions)


if __name__ == "__main__":
    main()
