import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.special import softmax

from testifai.errors import InputError
from testifai.oracles import confidence

SCORES = arrays.arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(2, 6)), elements=st.floats(-800, 800))


@given(SCORES)
def test_confidence_is_the_largest_softmax(scores):
    rows = scores - 801  # no probabilities
    np.testing.assert_allclose(confidence(rows), softmax(rows, axis=1).max(axis=1), rtol=1e-12)


def test_probabilities_are_taken_as_they_are():
    rows = np.random.default_rng(0).dirichlet(np.ones(4), 20)
    assert np.array_equal(confidence(rows), rows.max(axis=1))
    assert np.array_equal(confidence(rows.astype(np.float32)), rows.astype(np.float32).max(axis=1))


def test_a_row_is_a_distribution_or_scores_by_itself_whatever_the_batch():
    rows = np.array([[0.2, 0.8], [3.0, 1.0], [1.0, 0.0]])
    expected = [0.8, 1 / (1 + np.exp(-2)), 1.0]
    np.testing.assert_allclose(confidence(rows), expected, rtol=1e-6)
    for split in (1, 2):
        parts = [confidence(rows[start : start + split]) for start in range(0, 3, split)]
        assert np.array_equal(np.concatenate(parts), confidence(rows))


@pytest.mark.parametrize("scores", [np.ones(3), np.ones((3, 1)), np.array([[np.nan, 1.0]])])
def test_what_has_no_confidence(scores):
    with pytest.raises(InputError, match="scores"):
        confidence(scores)
