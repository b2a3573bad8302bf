"""What was measured, as surrogates want it."""

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.runs.outcomes import Outcomes
from testifai.surrogates import Forest
from testifai.surrogates.base import Surrogate
from testifai.surrogates.fitting import evidence


class Listening(Surrogate):
    """Remembers what it was handed."""

    name = "listening"

    def fit(self, features, passes, trials, *, single=None):
        self.heard = features, passes, trials, single
        return self

    def predict(self, features):
        return np.zeros(len(features)), None


@pytest.fixture
def outcomes():
    found = Outcomes(10)
    found.record(1, np.array([0, 3, 4]), np.array([True, False, True]), {"value": np.array([1.0, 2.0, 3.0])})
    found.record(2, np.array([9]), np.array([True]))
    return found


IDS, FEATURES = np.arange(3), np.array([[0], [1], [2]])


def test_tests_without_trials_are_left_out(outcomes):
    found = evidence(Listening(), outcomes, IDS, FEATURES)
    assert found.features.tolist() == [[1], [2]]
    assert (found.passes.tolist(), found.trials.tolist()) == ([2, 1], [3, 1])


def test_single_outcomes_come_with_their_values(outcomes):
    single = evidence(Listening(), outcomes, IDS, FEATURES).single
    assert single.test.tolist() == [0, 0, 0, 1]
    assert single.place.tolist() == [0, 3, 4, 9]
    assert single.passed.tolist() == [True, False, True, True]
    np.testing.assert_array_equal(single.value, [1, 2, 3, np.nan])


def test_who_does_not_want_them_gets_none(outcomes):
    assert evidence(Forest(), outcomes, IDS, FEATURES).single is None


@pytest.mark.parametrize(("most", "handed"), [(3, False), (4, True), (None, True)])
def test_of_very_many_outcomes_the_counts_are_enough(outcomes, most, handed):
    assert (evidence(Listening(), outcomes, IDS, FEATURES, most_single=most).single is not None) is handed


def test_a_part_of_the_inputs(outcomes):
    among = np.packbits(np.arange(10) >= 4)
    found = evidence(Listening(), outcomes, IDS, FEATURES, among=among)
    assert (found.passes.tolist(), found.trials.tolist(), found.single.inputs) == ([1, 1], [1, 1], 6)
    assert evidence(Listening(), outcomes, IDS, FEATURES, among=among, inputs=10).single.inputs == 10


def test_fit_passes_everything(outcomes):
    found = evidence(Listening(), outcomes, IDS, FEATURES)
    assert found.fit(Listening()).heard == (found.features, found.passes, found.trials, found.single)


def test_nothing_measured_is_refused():
    found = evidence(Listening(), Outcomes(10), IDS, FEATURES)
    assert len(found) == 0
    with pytest.raises(InputError, match="trials: no test has any"):
        found.fit(Listening())
