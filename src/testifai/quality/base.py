"""What a quality measure is."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.models.base import Model
from testifai.support.batches import Batch, take
from testifai.support.registry import borrow
from testifai.support.types import Floats, Record


class Score(NamedTuple):
    """The quality of one test, and the standard error of that value."""

    value: float
    error: float


class Reference(Protocol):
    """The clean side of a measure, computed once: perturbed versions of `rows` are compared with it."""

    @property
    def rows(self) -> NDArray[np.intp]:
        """Which rows of the clean inputs are to be perturbed and handed to `score`, in this order."""
        ...

    @property
    def inferences(self) -> int:
        """How many inputs were handed to the model under test so far."""
        ...

    def score(self, perturbed: Batch) -> Score:
        """The quality of the clean inputs' `rows` under one configuration."""
        ...


class Measure(ABC):
    """A way to score how much perturbed inputs still look like clean ones.

    Which inputs are compared depends on the seed and on how many there are, never on what a model made of them.
    """

    name: str  # "kid", "ssim", …
    higher_is_better: bool = True  # a larger value means less damage (a similarity), not more (a distance)
    sample: int = 250  # clean inputs that it compares (all, if there are fewer): a standard error of about 0.01
    uses_model: bool = False  # hands inputs to the model under test:
    share: float = 1.0  # this part of the sample, perturbed, for each test
    clean_share: float = 1.0  # and this part as it is, once

    @abstractmethod
    def describe(self) -> Record:
        """What decides its values, as plain data without paths: equal on every machine."""

    @abstractmethod
    def reference(self, clean: Batch, model: Model | None, *, seed: int) -> Reference:
        """The clean inputs made ready; what does not fit the measure is an InputError before anything is run."""


def draw(count: int, inputs: int, seed: int) -> NDArray[np.intp]:
    """So many rows out of `inputs`, or all, in a random order of the seed's own.

    >>> sorted(draw(5, 3, seed=0).tolist())
    [0, 1, 2]
    """
    # The number sets these draws apart from others made with the same seed.
    order = np.random.default_rng([seed, 0x9A11]).permutation(inputs)
    return order[:count].astype(np.intp)


SAMPLE = Measure.sample
# A standard error needs at least two values.
FEWEST = 2


class Compare(Protocol):
    """Clean inputs made ready: perturbed versions of all of them in, a value for each out."""

    def __call__(self, perturbed: Batch) -> Floats: ...


@dataclass(frozen=True)
class PerInputReference:
    """The clean inputs of a measure that has one value per input."""

    name: str
    rows: NDArray[np.intp]
    compare: Compare
    inferences: int = 0

    def score(self, perturbed: Batch) -> Score:
        check_count(self.name, perturbed, len(self.rows))
        return mean_score(self.name, self.compare(perturbed))


def sample_of(name: str, clean: Batch, sample: int, seed: int) -> tuple[NDArray[np.intp], Batch]:
    """Random rows of the clean inputs, in ascending order, and these inputs."""
    if len(clean) < FEWEST:
        raise InputError(f"quality: {name} needs at least {FEWEST} inputs; there are {len(clean)}")
    rows = np.sort(draw(sample, len(clean), seed))
    return rows, take(clean, rows)


def check_count(name: str, perturbed: Batch, count: int) -> None:
    """Nothing but the perturbed versions of the reference's rows can be scored."""
    if len(perturbed) != count:
        raise InputError(f"quality: {name} was handed {len(perturbed)} perturbed inputs; its sample has {count}")


def mean_score(name: str, values: Floats) -> Score:
    """The mean of per-input values; its error is that of a mean of independent inputs.

    >>> mean_score("mine", np.array([1.0, 3.0]))
    Score(value=2.0, error=1.0)
    """
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise InputError(f"quality: {name} is {values[row]} for input {row} of its sample; finite numbers are needed")
    return Score(float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values)))


def adapt(measure: Any) -> Measure | None:
    """A measure as it is, another object with its methods by way of an adapter; None for anything else."""
    if isinstance(measure, Measure):
        return measure
    fits = hasattr(measure, "reference") and hasattr(measure, "describe") and not isinstance(measure, type)
    return ForeignMeasure(measure) if fits else None


class ForeignMeasure(Measure):
    """An object with describe() and reference(); other attributes of a measure are used if it has them."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.name = getattr(given, "name", type(given).__name__)
        borrow(given, self, keep=("describe", "reference"))

    def describe(self) -> Record:
        described: Record = self.given.describe()
        return described

    def reference(self, clean: Batch, model: Model | None, *, seed: int) -> Reference:
        made: Reference = self.given.reference(clean, model, seed=seed)
        return made
