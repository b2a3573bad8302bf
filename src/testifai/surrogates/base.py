"""What a surrogate is: it predicts pass rates of configurations from measured ones."""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.runs.trials import Trials

Floats = NDArray[np.float64]


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
