"""A technique drawn and estimated again and again on examples whose outcomes are all known."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.operational_subjects import Subject
from testifai.operational import conclude, draw, frame, resolve


@dataclass(frozen=True)
class Arm:
    """A technique with its options, by the name it has on the page."""

    title: str
    use: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Trials:
    """What came of each repetition, and the processor seconds of one selection."""

    truth: float
    accuracy: NDArray[np.float64]
    failures: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    seconds: float

    def first(self, repetitions: int) -> Trials:
        """As if only the first repetitions had been made."""
        return Trials(self.truth, *(each[:repetitions] for each in self._arrays()), self.seconds)

    def groups(self, size: int) -> Iterator[Trials]:
        """Disjoint experiments of so many repetitions each."""
        for start in range(0, len(self.accuracy) - size + 1, size):
            yield Trials(self.truth, *(each[start : start + size] for each in self._arrays()), self.seconds)

    def _arrays(self) -> tuple[NDArray[np.float64], ...]:
        return self.accuracy, self.failures, self.low, self.high

    @property
    def squared(self) -> NDArray[np.float64]:
        return np.asarray((self.accuracy - self.truth) ** 2)

    @property
    def mse(self) -> float:
        return float(self.squared.mean())

    @property
    def mse_error(self) -> float:
        """The standard error of the mean squared error."""
        return float(self.squared.std(ddof=1) / np.sqrt(len(self.squared)))

    @property
    def found(self) -> float:
        """Mean failures."""
        return float(self.failures.mean())

    @property
    def deviation(self) -> float:
        """Standard deviation of the failures from repetition to repetition."""
        return float(self.failures.std(ddof=1))

    @property
    def coverage(self) -> float:
        """The share of intervals that hold the truth."""
        return float(((self.low <= self.truth) & (self.truth <= self.high)).mean())

    @property
    def width(self) -> float:
        """Mean width of the intervals over ±1.96 root mean squared errors."""
        return float((self.high - self.low).mean() / (2 * 1.96 * np.sqrt(self.mse)))


def measure(subject: Subject, arm: Arm, tests: int, repetitions: int) -> Trials:
    """Repetitions with the seeds from 0 on."""
    technique = resolve(arm.use, **arm.options)
    whole = frame(risk=subject.risk(arm.use), features=subject.features if arm.use == "ces" else None)
    rows, seconds = [], 0.0
    for seed in range(repetitions):
        begin = time.process_time()
        sample = draw(technique, whole, tests, np.random.default_rng(seed), subject.failed.__getitem__)
        seconds += time.process_time() - begin
        answer = conclude(technique, whole, sample)
        rows.append((answer.accuracy, answer.failures, answer.low, answer.high))
    return Trials(1 - subject.rate, *np.array(rows, float).T, seconds / repetitions)
