"""Any object with fit and predict as a surrogate, and the published one: a random forest on severity vectors."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from testifai.errors import InputError
from testifai.runs.outcomes import Trials
from testifai.support.registry import borrow
from testifai.support.types import Floats
from testifai.surrogates.base import Surrogate, takes_single


class Classifier(Surrogate):
    """The probability of a pass by any classifier that supports sample weights, without variance."""

    def __init__(self, given: Any) -> None:
        if "sample_weight" not in inspect.signature(given.fit).parameters:
            raise InputError(
                f"surrogate: {type(given).__name__} takes no sample_weight; accepted: a classifier whose fit does, "
                "such as GradientBoostingClassifier"
            )
        self.given = given
        self.name = type(given).__name__

    def unfitted(self) -> Any:
        return copy(self.given)

    def fit(self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike) -> Self:
        configurations, won, tried = np.asarray(features), np.asarray(passes), np.asarray(trials)
        weights = np.concatenate([won, tried - won])
        seen = weights > 0
        rows, weights = np.concatenate([configurations] * 2)[seen], weights[seen]
        outcomes = np.repeat([1, 0], len(configurations))[seen]
        # Some classifiers raise on a single class.
        self.always_ = float(outcomes[0]) if len(set(outcomes.tolist())) == 1 else None
        if self.always_ is None:
            self.classifier_ = self.unfitted()
            self.classifier_.fit(rows, outcomes, sample_weight=weights)
        return self

    def predict(self, features: ArrayLike) -> tuple[Floats, None]:
        rows = np.asarray(features)
        if self.always_ is not None:
            return np.full(len(rows), self.always_), None
        rates = self.classifier_.predict_proba(rows)[:, list(self.classifier_.classes_).index(1)]
        return np.asarray(rates, np.float64), None


class Forest(Classifier):
    """100 trees, no bootstrap, all features at each split, log loss (TestifAI, section 4.3).

    A forest gives no variance, and it never predicts below its lowest training leaf.
    """

    name = "forest"

    def __init__(self, trees: int = 100, seed: int = 0) -> None:
        self.trees, self.seed = trees, seed

    def unfitted(self) -> Any:
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(
            self.trees, criterion="log_loss", bootstrap=False, max_features=None, random_state=self.seed % 2**32
        )


def adapt(surrogate: Any, known: Iterable[str] = ()) -> Surrogate:
    """Return a surrogate, or adapt a classifier or another object with fit and predict."""
    if isinstance(surrogate, Surrogate):
        return surrogate
    if isinstance(surrogate, type) or not (hasattr(surrogate, "fit") and hasattr(surrogate, "predict")):
        raise InputError(f"surrogate: expected one of {', '.join(known)} or an object with fit and predict")
    if hasattr(surrogate, "predict_proba"):
        return Classifier(surrogate)
    return ForeignSurrogate(surrogate)


class ForeignSurrogate(Surrogate):
    """An object with fit and predict, and any other attributes of a surrogate."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.name = type(given).__name__
        self._fit_takes_single = takes_single(given)
        borrow(given, self, keep=("fit", "predict"))

    def __copy__(self) -> ForeignSurrogate:
        return ForeignSurrogate(copy(self.given))

    def fit(self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike, *, single: Trials | None = None) -> Self:
        self.given.fit(features, passes, trials, **({"single": single} if self._fit_takes_single else {}))
        return self

    def predict(self, features: ArrayLike) -> tuple[Floats, Floats | None]:
        mean, variance = self.given.predict(features)
        return np.asarray(mean, np.float64), None if variance is None else np.asarray(variance, np.float64)
