"""Measures that give each perturbed input a value of its own: their mean, and its standard error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.quality.base import Score, draw
from testifai.support.batches import Batch, take

Floats = NDArray[np.float64]
# Enough for a standard error of 0.01 where values differ by 0.16 from input to input.
SAMPLE = 250
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
