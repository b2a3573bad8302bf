"""Surrogates from elsewhere: any object with fit and predict."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from testifai.errors import InputError
from testifai.runs.trials import Trials
from testifai.surrogates.base import Floats, Surrogate, drawn_from
from testifai.surrogates.classifier import Classifier


def adapt(surrogate: Any, known: Iterable[str] = ()) -> Surrogate:
    """A surrogate as it is; a classifier, or another object with fit and predict, by way of an adapter."""
    if isinstance(surrogate, Surrogate):
        return surrogate
    if isinstance(surrogate, type) or not (hasattr(surrogate, "fit") and hasattr(surrogate, "predict")):
        raise InputError(f"surrogate: expected one of {', '.join(known)} or an object with fit and predict")
    if hasattr(surrogate, "predict_proba"):
        return Classifier(surrogate)
    return ForeignSurrogate(surrogate)


class ForeignSurrogate(Surrogate):
    """An object with fit and predict, and with whatever else of a surrogate it has; the rest is as usual."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.name = str(getattr(given, "name", type(given).__name__))
        self.pools = bool(getattr(given, "pools", False))
        self.wants_trials = bool(getattr(given, "wants_trials", False))
        self.takes_scores = bool(getattr(given, "takes_scores", False))
        self.plain_only = bool(getattr(given, "plain_only", False))
        self.relearns = bool(getattr(given, "relearns", not hasattr(given, "update")))

    def __copy__(self) -> ForeignSurrogate:
        return ForeignSurrogate(copy(self.given))

    def fit(self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike, *, single: Trials | None = None) -> Self:
        self.given.fit(features, passes, trials, **self._handed(single))
        return self

    def predict(self, features: ArrayLike) -> tuple[Floats, Floats | None]:
        mean, variance = self.given.predict(features)
        return np.asarray(mean, np.float64), None if variance is None else np.asarray(variance, np.float64)

    def update(
        self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike, *, single: Trials | None = None
    ) -> Self:
        if not hasattr(self.given, "update"):
            return super().update(features, passes, trials, single=single)
        self.given.update(features, passes, trials, **self._handed(single))
        return self

    def bounds(self, features: ArrayLike, confidence: float = 0.95) -> tuple[Floats, Floats]:
        own = getattr(self.given, "bounds", super().bounds)
        low, high = own(features, confidence)
        return low, high

    def region(
        self, features: ArrayLike, confidence: float = 0.95, of: int | None = None
    ) -> tuple[float, float, float]:
        if not hasattr(self.given, "region"):
            return super().region(features, confidence, of)
        estimate, low, high = self.given.region(features, confidence)
        return drawn_from(self.predict(features)[0], (estimate, low, high), of, confidence)

    def covariance(self, features: ArrayLike) -> Floats | None:
        found: Floats | None = getattr(self.given, "covariance", super().covariance)(features)
        return found

    def _handed(self, single: Trials | None) -> dict[str, Trials | None]:
        """One that does not want single outcomes need not have a parameter for them."""
        return {"single": single} if self.wants_trials else {}
