import math

from testifai.tomogram import Answer


def answer(**changes) -> Answer:
    found = {
        "robustness": 0.8,
        "low": 0.75,
        "high": 0.85,
        "drop": -0.19,
        "tests": 1296,
        "measured": 6,
        "inferred": 1290,
    }
    return Answer(**{**found, "worst": (), **changes})


def test_an_answer_is_a_line():
    assert (
        repr(answer()) == "<Answer 0.800 (0.750 … 0.850), drop -0.190, over 1,296 tests: 6 measured, 1,290 predicted>"
    )
    assert "0.800 (no interval)" in repr(answer(low=math.nan, high=math.nan))
