import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.statistics.multiplicity import confidence_each, holm


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_rejects_what_stepping_down_by_hand_does(p_values):
    adjusted = holm(np.array(p_values))
    for alpha in (0.01, 0.05, 0.3):
        rejected = set()
        for left, place in zip(
            range(len(p_values), 0, -1), sorted(range(len(p_values)), key=lambda i: p_values[i]), strict=True
        ):
            if p_values[place] * left > alpha:
                break
            rejected.add(place)
        assert set(np.flatnonzero(adjusted <= alpha)) == rejected


def test_holm_is_the_largest_step_so_far():
    p = np.random.default_rng(0).uniform(0, 0.2, 6)
    ranked = np.sort(p)
    expected = [min(1, max((6 - i) * ranked[i] for i in range(6) if ranked[i] <= value)) for value in p]
    np.testing.assert_allclose(holm(p), expected)


def test_what_was_not_asked_does_not_count():
    np.testing.assert_allclose(holm([0.01, np.nan, 0.02]), [0.02, np.nan, 0.02])
    assert holm([]).tolist() == []


def test_intervals_share_the_error():
    assert 10 * (1 - confidence_each(10)) == pytest.approx(0.05)
