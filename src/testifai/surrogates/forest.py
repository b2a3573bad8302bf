"""The published auxiliary model: a random forest on severity vectors."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.runs.trials import Trials
from testifai.surrogates.base import Surrogate


class Forest(Surrogate):
    """100 trees, no bootstrap, all features at each split, log loss (TestifAI, section 4.3).

    Rows of equal (configuration, outcome) are merged with their number as weight: the same trees, thousands of times
    less work. A forest gives no variance, and it never predicts below its lowest training leaf.

    >>> forest = Forest().fit([[0], [1]], passes=[9, 2], trials=[10, 10])
    >>> mean, variance = forest.predict([[0], [1], [2]])
    >>> mean.round(3).tolist(), variance
    ([0.9, 0.2, 0.2], None)
    """

    name = "forest"

    def __init__(self, trees: int = 100, seed: int = 0) -> None:
        self.trees = trees
        self.seed = seed

    def fit(self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike, *, single: Trials | None = None) -> Self:
        from sklearn.ensemble import RandomForestClassifier

        x, won, tried = np.asarray(features), np.asarray(passes), np.asarray(trials)
        weights = np.concatenate([won, tried - won])
        outcomes = np.repeat([1, 0], len(x))
        used = weights > 0
        self.forest_: Any = RandomForestClassifier(
            self.trees, criterion="log_loss", bootstrap=False, max_features=None, random_state=self.seed % 2**32
        )
        self.forest_.fit(np.concatenate([x, x])[used], outcomes[used], sample_weight=weights[used])
        return self

    def predict(self, features: ArrayLike) -> tuple[NDArray[np.float64], None]:
        """The pass rate of each configuration, and no variance."""
        rates = self.forest_.predict_proba(np.asarray(features))
        column = list(self.forest_.classes_).index(1) if 1 in self.forest_.classes_ else None
        return (np.zeros(len(rates)) if column is None else rates[:, column]), None
