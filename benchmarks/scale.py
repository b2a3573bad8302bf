"""Spaces of 2 to 15 axes with six levels at one budget: seconds and memory, each space in a process of its own.

    python benchmarks/scale.py [--axes 2 4 6 8 10 12 15] [--budget 5000] [--strategy adaptive] [--surrogate process]

For each space: the processor's seconds for the run, a query and the summary (`show`), and the peak of memory. Then,
over 15 axes, how long queries of 20 comparisons take to compile, count and draw from, with no surrogate in the way. The
model is a comparison, so that what is timed is ours. Errors against the truth are those of benchmarks/scale_truth.py.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

INPUTS = 2_000
LATENCY = 1.0  # second for 20 comparisons over 15 axes
TWENTY = {
    "single axes": " and ".join(
        [*(f"a{n} <= 4" for n in range(15)), "order >= 2", "5 <= severity <= 40", "a0 > a1", "a2 < a3"]
    ),
    "pairs of neighbours": " or ".join(f"(a{n} > 2 and a{n + 1} < 3)" for n in range(10)),
    "pairs far apart": " or ".join(f"(a{n} > 2 and a{n + 5} < 3)" for n in range(10)),
    "sums and pairs": "severity > 20 and order <= 9 and ("
    + " or ".join(f"(a{n} > 2 and a{n + 1} < 3)" for n in range(9))
    + ")",
    "axes against axes": " and ".join(f"(a{n} > a{n + 5} or a{(n + 10) % 15} > a{n + 1})" for n in range(10)),
}


def space(axes: int):
    """Axes with six levels each."""
    import testifai as ta

    def weaken(number: int):
        def apply(rows, severity, rng):
            rows = rows.copy()
            rows[:, 0] -= severity * rows[:, number + 2]
            return rows

        return ta.Perturbation(f"weaken{number}", apply, range(6))

    return ta.Space({f"a{number}": weaken(number) for number in range(axes)})


def data(axes: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs with a margin, a label, and a weakness towards each axis."""
    generator = np.random.default_rng(0)
    margin, labels = generator.gamma(4, 0.5, INPUTS) - 0.15, generator.integers(0, 2, INPUTS)
    weakness = generator.gamma(2, 0.6 / (axes * 6), (INPUTS, axes)) * np.linspace(0.5, 1.5, axes)
    return np.column_stack([margin, labels, weakness]), labels


def model(rows: np.ndarray) -> np.ndarray:
    return np.where(rows[:, 0] > 0, rows[:, 1], 1 - rows[:, 1]).astype(int)


def one(axes: int, budget: int, strategy: str, surrogate: str) -> dict[str, float | int]:
    """One space, in this process."""
    import testifai as ta
    from testifai.present.terminal import console, summary

    def timed(task):
        begin = time.process_time()
        return task(), time.process_time() - begin

    inputs = data(axes)
    tomogram, run = timed(
        lambda: ta.scan(model, inputs, space(axes), budget=budget, strategy=strategy, surrogate=surrogate)
    )
    _, query = timed(lambda: tomogram.query(f"a0 > 2 and a{axes - 1} <= 3"))
    shown = console()
    with shown.capture():
        _, show = timed(lambda: summary(shown, tomogram))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {
        "tests": tomogram.space.size, "tried": len(tomogram.outcomes), "run": run, "query": query, "show": show,
        "memory": memory,
    }  # fmt: skip


def latency() -> bool:
    """Queries of 20 comparisons over 15 axes."""
    from testifai.space import Selection

    whole, fine = space(15), True
    print(f"\n{'20 comparisons':22} {'tests selected':>18} {'count':>7} {'+ 2,000 drawn':>14}")
    for name, text in TWENTY.items():
        begin = time.perf_counter()
        chosen = Selection(whole, text)
        count, counted = chosen.count, time.perf_counter() - begin
        chosen.sample(2_000, np.random.default_rng(0))
        drawn = time.perf_counter() - begin
        fine &= drawn <= LATENCY
        print(f"{name:22} {count:18,} {counted:5.2f} s {drawn:12.2f} s")
    print(f"at most {LATENCY:g} s each: {'met' if fine else 'missed'}")
    return fine


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--axes", type=int, nargs="*", default=[2, 4, 6, 8, 10, 12, 15])
    parser.add_argument("--budget", type=int, default=5_000)
    parser.add_argument("--strategy", default="adaptive")
    parser.add_argument("--surrogate", default="process")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(one(options.one, options.budget, options.strategy, options.surrogate)))
        return
    print(f"budget {options.budget:,}, strategy {options.strategy}, surrogate {options.surrogate}")
    print(f"{'axes':>4} {'tests':>16} {'tried':>6} {'run':>8} {'query':>8} {'show':>8} {'memory':>8}")
    for axes in options.axes:
        command = [sys.executable, __file__, "--one", str(axes), "--budget", str(options.budget)]
        command += ["--strategy", options.strategy, "--surrogate", options.surrogate]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{axes} axes failed:\n{done.stderr}")
        found = json.loads(done.stdout.splitlines()[-1])
        print(
            f"{axes:4} {found['tests']:16,} {found['tried']:6,} {found['run']:6.1f} s {found['query']:6.2f} s "
            f"{found['show']:6.1f} s {found['memory']:5.2f} GB",
            flush=True,
        )
    if not latency():
        sys.exit(1)


if __name__ == "__main__":
    main()
