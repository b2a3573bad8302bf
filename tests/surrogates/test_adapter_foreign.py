"""Surrogates from elsewhere."""

from copy import copy

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.surrogates import resolve
from testifai.surrogates.base import takes_single


class Half:
    def fit(self, features, passes, trials):
        self.fitted = len(features)
        return self

    def predict(self, features):
        return [0.5] * len(features), [0.01] * len(features)


class Rich(Half):
    name, pools = "rich", True

    def fit(self, features, passes, trials, *, single):
        self.single = single
        return self

    def bounds(self, features, confidence=0.95):
        return np.full(len(features), 0.25), np.full(len(features), 0.75)

    def region(self, features, confidence=0.95, of=None):
        return 0.5, 0.375, 0.625

    def covariance(self, features):
        return np.eye(len(features))


def test_an_object_with_fit_and_predict_gets_the_rest():
    surrogate = resolve(Half())
    assert (surrogate.name, surrogate.pools, takes_single(surrogate)) == ("Half", False, False)
    surrogate.fit([[0]], [1], [2])
    low, high = surrogate.bounds([[0], [1]])
    np.testing.assert_allclose([low[0], high[1]], [0.5 - 0.195996, 0.5 + 0.195996], atol=1e-6)
    assert surrogate.region([[0], [1]]) == pytest.approx((0.5, 0.5 - 0.195996, 0.5 + 0.195996), abs=1e-6)
    assert surrogate.covariance([[0]]) is None


def test_what_it_has_of_its_own_is_used():
    given = Rich()
    surrogate = resolve(given)
    assert (surrogate.name, surrogate.pools, takes_single(surrogate)) == ("rich", True, True)
    surrogate.fit([[0]], [1], [2], single="everything")
    assert given.single == "everything"
    assert surrogate.bounds([[0]])[0].tolist() == [0.25]
    assert surrogate.region([[0]])[1:] == (0.375, 0.625)
    assert surrogate.covariance([[0]]).tolist() == [[1]]


def test_a_copy_learns_by_itself():
    surrogate = resolve(Half()).fit([[0]], [1], [2])
    copy(surrogate).fit([[0], [1]], [1, 1], [2, 2])
    assert surrogate.given.fitted == 1


def test_options_and_context_by_name():
    assert resolve({"use": "forest", "trees": 7}, seed=3).trees == 7
    process = resolve("process", levels=[[0, 1]], finite=False)
    assert (process.levels, process.population) == ([[0, 1]], False)


@pytest.mark.parametrize("wrong", [3, Half, object()])
def test_anything_else_is_refused(wrong):
    with pytest.raises(InputError, match=r"expected one of bayes_net, forest, .* or an object with fit and predict"):
        resolve(wrong)
