"""The published auxiliary model: a random forest on severity vectors."""

from __future__ import annotations

from typing import Any

from testifai.surrogates.adapter import Classifier


class Forest(Classifier):
    """100 trees, no bootstrap, all features at each split, log loss (TestifAI, section 4.3).

    A forest gives no variance, and it never predicts below its lowest training leaf.
    """

    name = "forest"

    def __init__(self, trees: int = 100, seed: int = 0) -> None:
        self.trees = trees
        self.seed = seed

    def unfitted(self) -> Any:
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(
            self.trees, criterion="log_loss", bootstrap=False, max_features=None, random_state=self.seed % 2**32
        )
