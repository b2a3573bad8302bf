"""All ways of computing one robustness, side by side on a recorded curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evaluation.sweeps_records import Recorded
from testifai.sweeps import sweep

THRESHOLD = 0.8
ORACLE = 1024
CURVATURE = 128


@dataclass(frozen=True)
class Compared:
    """What each method found on one alteration of one model; errors are against the truth of the whole record."""

    truth: float
    inputs: int
    step: float  # of the record: what its levels leave open
    oracle: Any
    published: Any
    quad: Any
    uniform: Any
    ours: Any
    sampled: Any

    def error(self, found: Any) -> float:
        return float(found.robustness - self.truth)

    def holds(self, found: Any) -> bool:
        """Whether the truth is within the bound, as far as the record can tell."""
        return abs(self.error(found)) <= found.bound + self.step

    @property
    def share(self) -> float:
        """The inferences of our sweep of samples, of the oracle's on all inputs."""
        return float(self.sampled.inferences / (ORACLE * self.inputs))


def compared(one: Recorded, *, rescaled: bool) -> Compared:
    """`rescaled`: the curvature is meant for levels from 0 to 1; else for the levels as they are, as in the paper."""
    low, high = one.span
    curvature = CURVATURE / (high - low) ** 2 if rescaled else CURVATURE
    published = sweep(one.curve, low, high, THRESHOLD, curvature, ORACLE)
    return Compared(
        truth=one.robustness(THRESHOLD),
        inputs=len(one.passed),
        step=1 / (one.passed.shape[1] - 1),
        oracle=sweep(one.curve, low, high, THRESHOLD, points=ORACLE, method="uniform"),
        published=published,
        quad=sweep(one.curve, low, high, THRESHOLD, points=ORACLE, method="quad"),
        uniform=sweep(one.curve, low, high, THRESHOLD, points=published.evaluations, method="uniform"),
        ours=sweep(one.curve, low, high, THRESHOLD, "auto", ORACLE),
        sampled=one.sweep(THRESHOLD, seed=1),
    )
