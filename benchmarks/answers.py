"""How quick answers are: start-up, the forest, queries over 1,296 and a million tests, in one run.

python benchmarks/answers.py
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from common import report

from testifai import Perturbation, Space, Tomogram
from testifai.runs.outcomes import Outcomes, visiting_order
from testifai.surrogates import Forest

KEEP = Perturbation("keep", lambda batch, parameter, rng: batch, range(10))


def best(action: Callable[[], object], repetitions: int = 5) -> float:
    """The quickest of some tries, in seconds."""
    times = []
    for _ in range(repetitions):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return min(times)


def forest(axes: int) -> float:
    """Fit on all tests of order <= 2 with 10,000 inputs each, predict the whole space."""
    everything = np.array(list(itertools.product(range(6), repeat=axes)))
    low = everything[(everything > 0).sum(axis=1) <= 2]
    passes = np.random.default_rng(0).binomial(10_000, np.exp(-0.1 * low.sum(axis=1)))
    return best(lambda: Forest().fit(low, passes, np.full(len(low), 10_000)).predict(everything), 3)


def tomogram(axes: int, levels: int, inputs: int = 16) -> Tomogram:
    """Made-up outcomes on all tests of a space."""
    space = Space({f"a{j}": (KEEP, list(range(levels))) for j in range(axes)})
    outcomes = Outcomes(inputs)
    places = np.arange(inputs)
    for configuration in range(space.size):
        outcomes.record(configuration, places, places % 7 < 1 + configuration % 7)
    return Tomogram(space, outcomes, visiting_order(inputs, 0))


def query_seconds(result: Tomogram) -> float:
    """One query, the arrays of the tomogram being there already."""
    first, second, *_ = result.space.names
    expression = f"{first} > 2 and {second} <= 1 or order == 2 and severity < 6"
    result.query(expression)
    return best(lambda: result.query(expression))


def main() -> None:
    command = Path(sys.executable).with_name("testifai")
    report(
        "import testifai", best(lambda: subprocess.run([sys.executable, "-c", "import testifai"], check=True)), "s", 0.5
    )
    helped = best(lambda: subprocess.run([command, "--help"], check=True, stdout=subprocess.DEVNULL))
    report("testifai --help", helped, "s", 0.5)
    report("forest, 3D: fit and predict 216 tests", forest(3), "s", 2)
    report("forest, 4D: fit and predict 1,296 tests", forest(4), "s", 2)
    report("query over 1,296 tests", 1e3 * query_seconds(tomogram(4, 6)), "ms", 5)
    report("query over 1,000,000 tests", 1e3 * query_seconds(tomogram(6, 10)), "ms", 100)


if __name__ == "__main__":
    main()
