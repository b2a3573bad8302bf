"""Trials that count by their score: the same trials, in sums of values."""

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.runs.outcomes import Outcomes, ScoredOutcomes
from testifai.statistics.intervals import wilson
from testifai.statistics.means import Moments, mean_interval
from testifai.support.bits import pack

RANDOM = np.random.default_rng(0)


def outcomes(inputs=100, tests=4):
    made, scores = Outcomes(inputs), {}
    for test in range(tests):
        places = np.sort(RANDOM.permutation(inputs)[: 3 + 20 * test])  # a list of few, and bits of many
        scores[test] = places, RANDOM.random(len(places)).astype(np.float32)
        made.record(test, places, scores[test][1] > 0.5, {"value": scores[test][1]})
    return made, scores


def test_scores_add_up_where_passes_did():
    plain, scores = outcomes()
    scored = ScoredOutcomes.of(plain)
    total, trials = scored.counts([0, 1, 2, 3, 9])
    assert np.allclose(total, [*(values.sum() for _, values in scores.values()), 0])
    assert trials.tolist() == [3, 23, 43, 63, 0]
    among = np.arange(100) < 50
    total, trials = scored.counts([3], pack(among))
    places, values = scores[3]
    assert total[0] == pytest.approx(values[places < 50].sum())
    assert trials[0] == (places < 50).sum()


def test_single_trials_and_limits_are_those_of_the_scores():
    plain, scores = outcomes()
    scored = ScoredOutcomes.of(plain)
    single = scored.single(np.array([1, 2]), None, "value")
    assert single.graded
    assert single.value is None
    assert np.allclose(single.passed, np.concatenate([scores[1][1], scores[2][1]]))
    ids = np.array([1, 2])
    found = scored.limits(wilson, ids, scored.counts(ids), 100, 0.95)
    assert np.allclose(np.array(found)[:, 0], mean_interval(Moments.of(scores[1][1]), 100))
    assert np.allclose(plain.limits(wilson, ids, plain.counts(ids), 100, 0.95), wilson(*plain.counts(ids), 100))


def test_a_snapshot_is_scored_and_what_passed_is_still_known():
    plain, _ = outcomes()
    scored = ScoredOutcomes.of(plain)
    assert isinstance(scored.snapshot(), ScoredOutcomes)
    assert ScoredOutcomes.of(scored) is scored
    assert type(scored.plain()) is Outcomes
    assert scored.plain().counts([3])[0].tolist() == plain.counts([3])[0].tolist()
    plain.record(0, np.array([50]), np.array([True]))
    assert scored.total() + 1 == plain.total()


@pytest.mark.parametrize(
    ("value", "words"), [(np.nan, "trials of which no score was kept"), (1.5, "a score of 1.5; accepted: 0 to 1")]
)
def test_what_is_no_score_is_refused(value, words):
    made = Outcomes(10)
    made.record(7, np.arange(2), np.array([True, True]), {"value": np.array([0.5, value], np.float32)})
    with pytest.raises(InputError, match=f"score: configuration 7 has {words}"):
        ScoredOutcomes.of(made)
