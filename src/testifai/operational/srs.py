"""Simple random sampling, with and without replacement (DeepEST, Eqs. 1-3)."""

from __future__ import annotations

import numpy as np

from testifai.operational import intervals
from testifai.operational.base import NOTHING, Frame, Plan, Sample


class SimpleRandom:
    """Every example is as likely as any other; any first part of the draws is such a sample too."""

    name = "srs"
    needs = NOTHING
    assumes = "nothing but the labels: it is exact, whatever the model and the data"

    def __init__(self, *, replacement: bool = False) -> None:
        self.replacement = replacement

    def plan(self, frame: Frame, tests: int, rng: np.random.Generator) -> Plan:
        """All draws at once."""
        if self.replacement:
            yield rng.integers(frame.size, size=tests)
        else:
            yield rng.permutation(frame.size)[:tests]
        return {}

    def estimate(self, frame: Frame, sample: Sample) -> tuple[float, float, float]:
        """The observed share (Eq. 1) with its exact interval."""
        return share(sample, None if self.replacement else frame.size)


def share(sample: Sample, population: int | None) -> tuple[float, float, float]:
    """The share of draws that did not fail, with the exact interval for that many draws at random."""
    draws = len(sample.failed)
    passes = draws - int(sample.failed.sum())
    return passes / draws, *intervals.share(passes, draws, population)
