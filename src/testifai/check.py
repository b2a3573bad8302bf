"""The dry run: what a session would cost, from one timed batch."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from testifai.engine.plan import Work
from testifai.outcomes import Outcomes
from testifai.session import Session
from testifai.store import BLOCK

SAMPLED_TESTS = 24
FIRST_INPUTS = 16
SECONDS = 2.0  # to spend on timing, about


@dataclass(frozen=True)
class Estimate:
    """What a run would take, at most."""

    tests: int
    run_tests: int
    inputs: int
    inferences: int
    seconds: float
    file_bytes: int
    workers: int
    batch_size: int
    clean_accuracy: float | None

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def estimate(session: Session) -> Estimate:
    """Run one batch of inputs through a sample of the tests and extrapolate. Nothing is stored."""
    progress = session.progress()
    work = session.strategy.propose(progress)
    tests = np.zeros(1, np.int64) if work is None else work.configurations
    sample = tests[np.unique(np.linspace(0, len(tests) - 1, min(SAMPLED_TESTS, len(tests))).astype(int))]
    executor, inputs = session.executor, len(session.data.inputs)
    thrown_away = Outcomes(inputs)

    def timed(configurations: Any, places: Any) -> float:
        start = time.perf_counter()
        executor.run(
            Work(configurations, places),
            Outcomes(inputs),
            lambda m: thrown_away.record(m.configuration, m.places, m.passed),
        )
        return time.perf_counter() - start

    few = np.arange(min(inputs, FIRST_INPUTS * executor.workers))
    timed(np.zeros(1, np.int64), few)  # the first call of a model is never typical
    clean = timed(np.zeros(1, np.int64), few) / len(few)
    affordable = int(SECONDS / clean / len(sample))
    places = np.arange(min(inputs, executor.chunk, max(len(few), affordable)))
    seconds = timed(sample, places) / (len(sample) * len(places))
    inferences = session.strategy.expected(progress)
    passes, trials = thrown_away.counts([0])
    return Estimate(
        tests=session.space.size,
        run_tests=len(tests),
        inputs=inputs,
        inferences=inferences,
        seconds=seconds * inferences,
        file_bytes=_file_bytes(len(tests), inputs, inferences, len(session.keep)),
        workers=executor.workers,
        batch_size=executor.batch_size.next(),
        clean_accuracy=float(passes[0] / trials[0]) if trials[0] else None,
    )


def _file_bytes(tests: int, inputs: int, inferences: int, kept: int) -> int:
    """At the most: two bits and every kept value an outcome, some 50 bytes a row, a row for each block of a test."""
    rows = tests * -(-inputs // BLOCK) * (1 + kept)
    # Kept values spill over from one page of the file into others.
    values = 4 * kept * inferences * 4 // 3
    return 40_000 + 50 * rows + inferences // 4 + values
