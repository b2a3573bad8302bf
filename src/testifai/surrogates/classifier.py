"""Classifiers of scikit-learn's kind as surrogates: they learn from single outcomes, merged to weighted rows."""

from __future__ import annotations

import inspect
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.errors import InputError
from testifai.runs.trials import Trials
from testifai.surrogates.base import Floats, Surrogate


class Classifier(Surrogate):
    """The probability of a pass, by any classifier that takes sample weights; it gives no variance.

    Rows of equal (configuration, outcome) are merged with their number as weight: the same model, thousands of times
    less work.

    >>> from sklearn.linear_model import LogisticRegression
    >>> logistic = Classifier(LogisticRegression(C=1e6)).fit([[0], [1]], passes=[90, 20], trials=[100, 100])
    >>> mean, variance = logistic.predict([[0], [1]])
    >>> mean.round(2).tolist(), variance
    ([0.9, 0.2], None)
    """

    def __init__(self, given: Any) -> None:
        if "sample_weight" not in inspect.signature(given.fit).parameters:
            raise InputError(
                f"surrogate: {type(given).__name__} takes no sample_weight; accepted: a classifier whose fit does, "
                "such as GradientBoostingClassifier"
            )
        self.given = given
        self.name = type(given).__name__

    def unfitted(self) -> Any:
        """What a fit trains."""
        return copy(self.given)

    def fit(self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike, *, single: Trials | None = None) -> Self:
        rows, outcomes, weights = weighted_rows(features, passes, trials)
        # Of one class alone there is nothing to learn, and some refuse to.
        self.always_ = float(outcomes[0]) if len(set(outcomes.tolist())) == 1 else None
        if self.always_ is None:
            self.classifier_ = self.unfitted()
            self.classifier_.fit(rows, outcomes, sample_weight=weights)
        return self

    def predict(self, features: ArrayLike) -> tuple[Floats, None]:
        """The pass rate of each configuration, and no variance."""
        rows = np.asarray(features)
        if self.always_ is not None:
            return np.full(len(rows), self.always_), None
        rates = self.classifier_.predict_proba(rows)[:, list(self.classifier_.classes_).index(1)]
        return np.asarray(rates, np.float64), None


def weighted_rows(
    features: ArrayLike, passes: ArrayLike, trials: ArrayLike
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[Any]]:
    """Configurations with their outcome, 1 or 0, and how often it was seen.

    >>> [array.tolist() for array in weighted_rows([[0], [1]], passes=[9, 10], trials=[10, 10])]
    [[[0], [1], [0]], [1, 1, 0], [9, 10, 1]]
    """
    rows, won, tried = np.asarray(features), np.asarray(passes), np.asarray(trials)
    weights = np.concatenate([won, tried - won])
    seen = weights > 0
    return np.concatenate([rows, rows])[seen], np.repeat([1, 0], len(rows))[seen], weights[seen]
