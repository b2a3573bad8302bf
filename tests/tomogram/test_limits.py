"""Limits on quality: what each leaves in, and tests to look at near a value."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.tomogram.limits import limits, nearest_tests, scores_of, usual_values


@dataclass
class StandIn:
    """Scores of every test, as a tomogram holds them."""

    space: object
    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    name: str = "kid"
    higher_is_better: bool = False
    measured: tuple[int, ...] = (0, 1, 2)
    sign: str = "<="


@pytest.fixture
def scored(full):
    """Three axes; the score of a test is the sum of its severities."""
    total = np.broadcast_to(full.space.columns()["severity"], full.space.shape).astype(float)
    return replace(full, quality=StandIn(full.space, total, total, total))


def test_a_limit_answers_the_query_it_stands_for(scored):
    found = limits(scored, [2.0, 5.0])
    assert [one.value for one in found] == [2.0, 5.0]
    for one in found:
        assert one.inside.tests == int((scored.quality.estimate <= one.value).sum())
        assert one.inside.robustness == scored.query(f"severity <= {one.value:g}").robustness


def test_a_limit_that_leaves_nothing_in_has_no_answer(scored):
    assert limits(scored, [-1.0])[0].inside is None


def test_usual_values_go_from_good_to_bad(scored):
    values = usual_values(scored.quality)
    assert values == sorted(values)
    assert 0 < values[0] < values[-1] < scored.quality.estimate.max()
    better = replace(scored.quality, higher_is_better=True)
    assert usual_values(better) == values[::-1]


def test_tests_near_a_value_are_the_mildest_and_the_severest_of_them(scored):
    for one in nearest_tests(scored.quality, [3.0]):
        assert one.quality == 3.0
        assert one.configuration != 0


def test_a_run_without_scores_is_told_how_to_get_them(full):
    with pytest.raises(InputError, match="quality: this run did not measure any"):
        scores_of(full)
