"""What a surrogate is: it predicts pass rates of configurations from measured ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Trials:
    """Single outcomes, for surrogates that know that tests share inputs.

    Trial m ran the test in row `test[m]` of the features on the input at `place[m]`, from 0 to `inputs` - 1.
    """

    test: NDArray[np.intp]
    place: NDArray[np.intp]
    passed: NDArray[np.bool_]
    inputs: int  # how many inputs there are
    value: NDArray[np.float32] | None = None  # the oracle's value of each trial, such as a margin; NaN where unknown


class Surrogate(Protocol):
    """scikit-learn-shaped: fit on counts per configuration, predict rates and, where there are any, variances.

    Features are severities, one row per configuration (`space.matrix`). One that `wants_trials` is handed `single`
    too, and one that `takes_scores` makes use of its values; one that is `plain_only` cannot take spaces in which the
    order of application counts. One that `pools` estimates every test from all trials, also those that were tried
    themselves; it knows how its errors hang together and has `region(features, confidence) -> (estimate, low, high)`,
    the mean rate over configurations, and `bounds(features, confidence) -> (low, high)` for each.
    """

    name: str

    def fit(
        self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike, *, single: Trials | None = None
    ) -> Self: ...

    def predict(self, features: ArrayLike) -> tuple[Floats, Floats | None]: ...
