import numpy as np

import testifai as ta
from testifai.runs.outcomes import Outcomes
from testifai.support.progress import heard, note


def test_what_is_being_done_is_told_to_who_listens_and_to_nobody_else():
    told = []
    note("nobody hears this")
    with heard(told.append):
        note("fitting")
    note("nor this")
    assert told == ["fitting"]


def test_a_tomogram_says_that_it_is_fitted_and_estimated():
    keep = ta.Perturbation("keep", lambda batch, parameter, rng: batch, range(4))
    space, outcomes = ta.Space({"a": keep, "b": keep}), Outcomes(50)
    for test in range(0, 16, 2):
        outcomes.record(test, np.arange(20), np.arange(20) >= test)
    told = []
    with heard(told.append):
        ta.Tomogram(space, outcomes, np.arange(50), surrogate="process").query("order >= 0")
    assert "fitting 8 tests" in told
    assert "estimating 16 tests" in told
