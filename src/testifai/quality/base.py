"""What a quality measure is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from testifai.models.base import Model
from testifai.support.batches import Batch


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
    higher_is_better: bool  # whether a larger value means less damage (a similarity) or more (a distance)
    sample: int  # how many clean inputs it looks at; all, where there are fewer
    uses_model: bool = False  # hands inputs to the model under test:
    share: float = 1.0  # this part of the sample, perturbed, for each test
    clean_share: float = 1.0  # and this part as it is, once

    @abstractmethod
    def describe(self) -> dict[str, Any]:
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
