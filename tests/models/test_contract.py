"""Models of several kinds keep the contract."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from testifai.models import PythonModel
from testifai.testing import check_model

ROWS = np.random.default_rng(0).normal(size=(12, 3))


def scores(rows):
    return np.stack([rows[:, 0], rows[:, 1]], axis=1)


def test_a_function():
    check_model(scores, ROWS)
    check_model(PythonModel(scores, outputs="scores", classes=2), ROWS)


def test_an_estimator():
    check_model(LogisticRegression().fit(ROWS, ROWS[:, 0] > 0), ROWS)
