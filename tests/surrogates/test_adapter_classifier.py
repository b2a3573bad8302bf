"""Classifiers of scikit-learn as surrogates."""

from copy import copy

import numpy as np
import pytest
from replay import Grid, replay
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from testifai.errors import InputError
from testifai.surrogates import resolve
from testifai.testing import check_surrogate


def test_merged_rows_train_the_model_that_single_outcomes_do():
    sigmas, passes, trials = np.array([[0, 0], [1, 0], [0, 1], [2, 2]]), [30, 21, 12, 0], [30] * 4
    outcomes = np.concatenate([np.r_[np.ones(p), np.zeros(30 - p)] for p in passes])
    single = GradientBoostingClassifier(random_state=0).fit(np.repeat(sigmas, 30, axis=0), outcomes)
    merged, variance = resolve(GradientBoostingClassifier(random_state=0)).fit(sigmas, passes, trials).predict(sigmas)
    np.testing.assert_allclose(merged, single.predict_proba(sigmas)[:, 1], atol=1e-9)
    assert variance is None


def test_it_keeps_the_contract():
    check_surrogate(lambda: resolve(LogisticRegression()))


@pytest.mark.parametrize("passes", [0, 10])
def test_of_one_outcome_alone_nothing_is_learned(passes):
    mean, _ = resolve(GradientBoostingClassifier()).fit([[0], [1]], [passes] * 2, [10, 10]).predict([[0], [2]])
    assert mean.tolist() == [passes / 10] * 2


def test_what_was_given_stays_as_it_was_and_copies_learn_apart():
    given = LogisticRegression()
    one = resolve(given).fit([[0], [1]], [9, 2], [10, 10])
    other = copy(one).fit([[0], [1]], [2, 9], [10, 10])
    assert one.predict([[0]])[0] > 0.5 > other.predict([[0]])[0]
    assert not hasattr(given, "classes_")


def test_a_replay_takes_one():
    passes = np.packbits(np.arange(8) < np.array([[8], [6], [2]]), axis=-1)
    found = replay(Grid(("fade",), 8, passes), "ordered", LogisticRegression(), budget=16)
    assert 1 >= found.estimate[0] > found.estimate[1] > found.estimate[2] > 0


def test_one_that_takes_no_weights_is_refused_in_a_line():
    with pytest.raises(InputError, match="KNeighborsClassifier takes no sample_weight; accepted: a classifier whose"):
        resolve(KNeighborsClassifier())


def test_no_classifier_is_taken_as_before():
    assert resolve(LinearRegression()).name == "LinearRegression"
