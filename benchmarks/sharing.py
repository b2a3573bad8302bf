"""Where the time of a default run at 1 % goes, beside the bare model: LeNet-5, 10,000 MNIST digits, 1,296 tests.

    python benchmarks/sharing.py [--budget 129600] [--strategy adaptive] [--store] [--turns 3]

The floor is onnxruntime alone: float32 batches that are already perturbed and preprocessed, at the model's best batch
size. Floor and scan take turns in one process and one thread; times are the processor's, so that other programs on the
machine do not count. Fitting is what the surrogate takes, while planning and for the estimates at the end.
"""

from __future__ import annotations

import argparse
import functools
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from common import need, report
from tomography import bare_seconds, best_batches

import testifai as ta
from testifai.engine.local import LocalExecutor
from testifai.engine.subject import Subject
from testifai.strategies.adaptive import Adaptive
from testifai.strategies.balanced import Balanced
from testifai.surrogates.process import Process

AXES = {
    "brightness": "mnist_c.brightness", "zoom": "mnist_c.zoom", "blur": "mnist_c.motion_blur", "shear": "mnist_c.shear",
}  # fmt: skip
PARTS = ("planning", "perturbing", "inference", "recording", "fitting")
FITTING = ("fit", "predict", "bounds")
MOST = 2.0  # times the bare model, less fitting


class Clock:
    """Seconds by name, each without those of what it calls by another name."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.inputs = 0  # perturbed, once for each step
        self._running = ["the rest"]
        self._since = time.process_time()

    def split(self) -> None:
        """Give the time since the last split to what is running."""
        now = time.process_time()
        self.spent[self._running[-1]] += now - self._since
        self._since = now

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with its time under a name."""

        @functools.wraps(function)
        def wrapped(*arguments: Any, **options: Any) -> Any:
            self.split()
            self._running.append(name)
            self.calls[name] += 1
            if name == "perturbing":
                self.inputs += len(arguments[1])
            try:
                return function(*arguments, **options)
            finally:
                self.split()
                self._running.pop()

        return wrapped

    @contextmanager
    def watching(self) -> Iterator[None]:
        """What the parts of a run take while this lasts."""
        run = LocalExecutor.run

        def watched(executor: Any, work: Any, outcomes: Any, hand_over: Any) -> None:
            run(executor, work, outcomes, self.timed("recording", hand_over))

        replaced: list[tuple[type, str, Callable[..., Any]]] = [(LocalExecutor, "run", watched)]
        replaced += [(kind, "propose", self.timed("planning", kind.propose)) for kind in (Adaptive, Balanced)]
        replaced += [(Subject, "perturb", self.timed("perturbing", Subject.perturb))]
        replaced += [(Subject, "infer", self.timed("inference", Subject.infer))]
        replaced += [(Process, name, self.timed("fitting", getattr(Process, name))) for name in FITTING]
        before = [(kind, name, getattr(kind, name)) for kind, name, _ in replaced]
        try:
            for kind, name, function in replaced:
                setattr(kind, name, function)
            yield
        finally:
            for kind, name, function in before:
                setattr(kind, name, function)


def scan(model: Path, data: Path, options: argparse.Namespace) -> Clock:
    """A whole run, estimates included, and what its parts took."""
    arrays = np.load(data)
    space = ta.Space(AXES)
    clock = Clock()
    with clock.watching(), tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "run.db") if options.store else None
        tomogram = ta.scan(
            model, (arrays["x"], arrays["y"]), space,
            budget=options.budget, strategy=options.strategy, store=store, workers=1,
        )  # fmt: skip
        assert np.isfinite(tomogram.estimate).all()
        clock.split()
    return clock


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=int, default=129_600)
    parser.add_argument("--strategy", default="adaptive", choices=["adaptive", "balanced"])
    parser.add_argument("--store", action="store_true", help="with a run file")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    model, data = need("models/mnist_lenet5.onnx", "data/mnist_test.npz")
    session, batches = best_batches(model, data, workers=1)
    half = options.budget // 2
    scan(model, data, options)  # what is loaded when first used
    bare, clocks = [], []
    for turn in range(options.turns):
        before = bare_seconds(session, batches, half, 1, clock=time.process_time)
        clock = scan(model, data, options)
        bare.append(before + bare_seconds(session, batches, half, 1, clock=time.process_time))
        clocks.append(clock)
        spent = ", ".join(f"{name} {clock.spent[name]:.2f}" for name in (*PARTS, "the rest"))
        print(f"turn {turn + 1}: bare {bare[-1]:.2f} s; whole {clock.spent.total():.2f} s: {spent}")
    total = sum((clock.spent for clock in clocks), Counter[str]())
    floor = sum(bare)
    for name in (*PARTS, "the rest"):
        report(f"{name}, against the bare model", total[name] / floor, "x")
    last = clocks[-1]
    report("perturbation steps per inference", last.inputs / options.budget, "")
    report("inputs per step of a perturbation", last.inputs / last.calls["perturbing"], "")
    report("the whole run, against the bare model", total.total() / floor, "x")
    report("the whole run less fitting, against the bare model", (total.total() - total["fitting"]) / floor, "x", MOST)


if __name__ == "__main__":
    main()
