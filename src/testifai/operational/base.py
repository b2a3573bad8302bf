"""What every technique of operational testing shares: what is known before any label, what was drawn, the answer.

A technique says which examples to label and turns their outcomes into an accuracy with an interval. It never sees a
label it did not ask for, so it works with known outcomes, a person at a keyboard and a half-filled file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.support.formatting import estimate_text
from testifai.support.types import Array, Bools, Floats
from testifai.support.validation import choice

log = logging.getLogger(__name__)

Indices = NDArray[np.int64]
Flags = Bools
Facts = dict[str, Array]

# What a technique needs to know of all examples before it draws: nothing, 1 - confidence, their features, or their
# surprise against the training data, by distance, by likelihood or combined with the confidence.
NOTHING, CONFIDENCE, FEATURES = "nothing", "confidence", "features"
SURPRISE = DISTANCE, LIKELIHOOD, COMBINED = "dsa", "lsa", "combined"
NEEDS = (NOTHING, CONFIDENCE, FEATURES, *SURPRISE)

# Yields batches of examples to label, is sent whether each failed, returns the facts of all draws in drawing order.
Plan = Generator[Indices, Flags, Facts]


@dataclass(frozen=True)
class Frame:
    size: int
    risk: Floats | None = None  # higher if a failure is more likely
    features: Array | None = None  # a row per example, by which a technique may compare examples
    predicted: Array | None = None  # the model's classes


@dataclass(frozen=True)
class Sample:
    """What was drawn, in drawing order: example, outcome, and per draw the facts of the design (one array each)."""

    selected: Indices
    failed: Flags
    facts: Facts = field(default_factory=dict)

    def first(self, draws: int) -> Sample:
        """The sample as it was after its first draws, as if the rest had not been labelled yet."""
        facts = {name: values[:draws] for name, values in self.facts.items()}
        return Sample(self.selected[:draws], self.failed[:draws], facts)


@dataclass(frozen=True)
class Estimate:
    """The accuracy with its interval, and what was labelled to get it."""

    accuracy: float
    low: float
    high: float
    failures: int
    selected: Indices
    failed: Flags
    technique: str
    size: int
    assumes: str = ""  # what the interval takes for granted

    def __repr__(self) -> str:
        found = estimate_text(self.accuracy, self.low, self.high)
        return f"<Estimate {found} by {self.technique}: {self.failures:,} failures in {self.labels:,} of {self.size:,}>"

    @property
    def labels(self) -> int:
        """How many different examples were labelled."""
        return len(np.unique(self.selected))

    @property
    def failing(self) -> Indices:
        """The examples that failed, each once, in the order they were found."""
        found = self.selected[self.failed]
        _, first = np.unique(found, return_index=True)
        return found[np.sort(first)]


@runtime_checkable
class Technique(Protocol):
    """A way to choose examples and to estimate from them.

    `plan` is a generator: one that needs no labels yields all its draws together, an adaptive one yields what to label
    next and receives the outcomes. `estimate` also works on the first part of a sample. Optional members: `needs`, one
    of NEEDS (default: confidence); `assumes`, the assumptions of the interval in words; `doubts(frame) -> str | None`,
    a warning if the technique will not be useful on these examples.
    """

    name: str

    def plan(self, frame: Frame, tests: int, rng: np.random.Generator) -> Plan:
        """Yield batches of examples to label; return the facts per draw."""
        ...

    def estimate(self, frame: Frame, sample: Sample) -> tuple[float, float, float]:
        """Accuracy with the ends of its 95 % interval."""
        ...


def needs_of(technique: Technique) -> str:
    return choice(f"technique {technique.name!r}: needs", getattr(technique, "needs", CONFIDENCE), NEEDS)


def assumed_by(technique: Technique) -> str:
    return str(getattr(technique, "assumes", ""))


def warn_of_doubts(technique: Technique, frame: Frame) -> None:
    """Warn the user, before any label is paid for, if a technique doubts that it is useful on these examples."""
    doubts = getattr(technique, "doubts", None)
    if doubts is not None and (line := doubts(frame)) is not None:
        log.warning("%s", line)


def needed(frame: Frame, technique: str) -> Floats:
    if frame.risk is None:
        raise InputError(f"risk: technique {technique!r} needs one value per example, higher where more suspicious")
    return frame.risk


def draw(
    technique: Technique, frame: Frame, tests: int, rng: np.random.Generator, label: Callable[[Indices], Flags]
) -> Sample:
    """Run a technique's plan, with `label` answering each batch.

    Args:
        technique: which chooses
        frame: what is known of all examples
        tests: most labels to ask for
        rng: of all that is drawn
        label: says of a batch of examples which of them failed

    >>> from testifai.operational.random_sampling import SimpleRandom
    >>> sample = draw(SimpleRandom(), Frame(100), 5, np.random.default_rng(0), lambda batch: batch < 50)
    >>> len(sample.selected), bool((sample.failed == (sample.selected < 50)).all())
    (5, True)
    """
    plan = technique.plan(frame, tests, rng)
    batches, outcomes = [np.asarray(next(plan), np.int64)], list[Flags]()
    while True:
        outcomes.append(np.asarray(label(batches[-1]), bool))
        try:
            batches.append(np.asarray(plan.send(outcomes[-1]), np.int64))
        except StopIteration as end:
            return Sample(np.concatenate(batches), np.concatenate(outcomes), end.value or {})


def conclude(technique: Technique, frame: Frame, sample: Sample) -> Estimate:
    """The estimate from a sample or from the first part of one.

    Args:
        technique: by which the sample was drawn
        frame: what is known of all examples
        sample: with its labels
    """
    accuracy, low, high = technique.estimate(frame, sample)
    failures = len(np.unique(sample.selected[sample.failed]))
    return Estimate(
        accuracy, low, high, failures, sample.selected, sample.failed, technique.name, frame.size, assumed_by(technique)
    )
