"""Which trials to run next: untried ones, the likeliest to fail first, and nothing of it in the estimates."""

from __future__ import annotations

import numpy as np
import pytest

import testifai as ta
from testifai.runs.outcomes import Outcomes
from testifai.tomogram import EstimatorSettings, Tomogram
from testifai.tomogram.priorities import Prioritiser, prioritised

INPUTS = 200


@pytest.fixture(scope="module")
def run():
    """Inputs from 0 to 99 fail everything hard, input 7 fails everything; tests get harder with their number."""
    fade = ta.Perturbation("fade", lambda batch, parameter, rng: batch, tuple(range(4)))
    space, outcomes = ta.Space({"a": fade, "b": fade}), Outcomes(INPUTS)
    random = np.random.default_rng(0)
    for test in range(space.size):
        places = random.choice(INPUTS, 60, replace=False)
        outcomes.record(test, places, ~failing(space, test)[places])
    return Tomogram(
        space, outcomes, np.random.default_rng(1).permutation(INPUTS), settings=EstimatorSettings(surrogate="none")
    )


def failing(space, test):
    a, b = space.configuration(test)
    return (np.arange(INPUTS) < 25 * (a + b - 2)) | (np.arange(INPUTS) == 7)


def test_untried_trials_come_likeliest_first(run):
    found = prioritised(run, 300)
    assert len(found) == 300
    assert (np.diff(found.probability) <= 0).all()
    assert len(set(zip(found.tests.tolist(), found.places.tolist(), strict=True))) == 300
    for test in np.unique(found.tests).tolist():
        assert not run.outcomes.attempted(test, found.places[found.tests == test]).any()
    assert (found.inputs == run.order[found.places]).all()
    hits = [failing(run.space, test)[place] for test, place in zip(found.tests.tolist(), found.places, strict=True)]
    assert np.mean(hits) > 0.9


def test_a_query_limits_the_tests(run):
    found = prioritised(run, 50, "a <= 1 and b <= 2")
    assert (run.space.matrix(found.tests) <= [1, 2]).all()


def test_once_gives_each_input_that_has_not_failed_one_trial(run):
    found = prioritised(run, INPUTS, "a <= 2", once=True)
    assert len(np.unique(found.places)) == len(found)
    tests = [test for test in range(run.space.size) if run.space.configuration(test)[0] <= 2]
    failed = {int(place) for test in tests for place, ok in zip(*run.outcomes.trials(test), strict=True) if not ok}
    assert not failed & set(found.places.tolist())


def test_what_was_found_since_counts_for_the_ranking_and_not_for_the_run(run):
    prioritiser, before = Prioritiser.of(run), run.estimate.copy()
    found = Outcomes(INPUTS)
    easy = 180
    for test in range(1, run.space.size):
        if not run.outcomes.attempted(test, np.array([easy]))[0]:
            found.record(test, np.array([easy]), np.array([False]))
    untold, told = (prioritiser.next(2000, some) for some in (None, found))
    assert easy in untold.places
    assert not any(found.attempted(int(t), np.array([p]))[0] for t, p in zip(told.tests, told.places, strict=True))
    assert (run.estimate == before).all()


def test_more_than_there_are_gives_what_there_is(run):
    found = prioritised(run, 10**6)
    assert len(found) == run.space.size * INPUTS - run.outcomes.total()


def test_mistakes_are_one_line(run):
    with pytest.raises(ta.InputError, match="n"):
        prioritised(run, 0)
    with pytest.raises(ta.InputError, match="no outcome yet"):
        prioritised(Tomogram(run.space, Outcomes(INPUTS), run.order), 5)
