import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.tomogram.profile_parser import Profile

LEVELS = {"fog": (0, 1, 2), "noise": (0, 1), "blur": (0, 2, 5)}


def random_profile(seed):
    """Weather and time -> fog; fog -> noise; blur by itself."""
    rng = np.random.default_rng(seed)

    def row(states):
        return dict(zip(states, rng.dirichlet(np.ones(len(states))).tolist(), strict=True))

    fog = {w: {t: row(LEVELS["fog"]) for t in ("day", "night")} for w in ("clear", "foul")}
    noise = {level: row(LEVELS["noise"]) for level in LEVELS["fog"]}
    return {
        "weather": row(["clear", "foul"]),
        "time": {"given": "weather", "clear": row(["day", "night"]), "foul": row(["day", "night"])},
        "fog": {"given": ["weather", "time"], **fog},
        "noise": {"given": "fog", **noise},
        "blur": row(LEVELS["blur"]),
    }


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_joint_probabilities_equal_enumeration(seed):
    stated = random_profile(seed)
    known = Profile(stated).over(LEVELS)
    wanted = np.zeros((3, 2, 3))
    clear_only = np.zeros((3, 2, 3))
    for w, t in itertools.product(("clear", "foul"), ("day", "night")):
        p = stated["weather"][w] * stated["time"][w][t]
        for (i, f), (j, n), (k, b) in itertools.product(*(enumerate(LEVELS[name]) for name in LEVELS)):
            chance = p * stated["fog"][w][t][f] * stated["noise"][f][n] * stated["blur"][b]
            wanted[i, j, k] += chance
            clear_only[i, j, k] += chance * (w == "clear")
    np.testing.assert_allclose(known.joint(list(LEVELS)), wanted, atol=1e-12)
    np.testing.assert_allclose(known.joint(list(LEVELS), {"weather": "clear"}), clear_only, atol=1e-12)
    np.testing.assert_allclose(known.joint(["blur", "fog"]), wanted.sum(axis=1).T, atol=1e-12)
    assert known.context == ("weather", "time")


def test_keys_may_be_words_or_numbers_as_text():
    plain = Profile({"fog": {0: 0.5, 2: 0.5}}).over(LEVELS).joint(["fog"])
    text = Profile({"fog": {"0": 0.5, "2": 0.5}}).over(LEVELS).joint(["fog"])
    words = Profile({"fog": {"off": 0.5, "thick": 0.5}}).over(LEVELS, {"fog": {"off": 0, "thick": 2}}).joint(["fog"])
    assert plain.tolist() == text.tolist() == words.tolist() == [0.5, 0, 0.5]


def test_a_dependence_and_a_plain_statement_that_agree_are_taken_together():
    parts = [{"weather": {"clear": 0.8, "foul": 0.2}, "fog": {"given": "weather", "clear": {0: 1.0}, "foul": {1: 1.0}}}]
    assert Profile([*parts, {"fog": {0: 0.8, 1: 0.2}}]).over(LEVELS).joint(["fog"]).tolist() == [0.8, 0.2, 0]
    assert Profile([{"fog": {0: 0.8, 1: 0.2}}, *parts, *parts]).over(LEVELS).joint(["fog"]).tolist() == [0.8, 0.2, 0]


def test_rows_that_cannot_be_met_need_no_statement():
    profile = Profile({"fog": {0: 0.5, 1: 0.5}, "noise": {"given": "fog", 0: {0: 1.0}, 1: {1: 1.0}}})
    assert profile.over(LEVELS).joint(["fog", "noise"]).tolist() == [[0.5, 0], [0, 0.5], [0, 0]]


WEATHER = {"weather": {"clear": 0.8, "foul": 0.2}}


@pytest.mark.parametrize(
    ("statements", "line"),
    [
        ({"fog": {0: 0.5, 1: 0.4}}, "the probabilities of fog add up to 0.9; accepted: 1"),
        ({"fog": {0: 0.5, 3: 0.5}}, "fog has no state 3; accepted: 0, 1, 2"),
        ({"fog": {0: 1.5, 1: -0.5}}, "fog: 0 = 1.5; accepted: a probability from 0 to 1"),
        ({"fog": {0: float("nan"), 1: 1.0}}, "fog: 0 = nan"),
        ({"fog": {0: True}}, "fog: 0 = True"),
        ({"fog": {0: 0.5, "0": 0.5}}, "fog states 0 twice"),
        ({"fog": 0.5}, "fog = 0.5; accepted: state -> probability"),
        ({"fog": {}}, "fog = {}; accepted"),
        ({"fgo": {0: 1.0}}, "'fgo' is no property.*did you mean 'fog'"),
        ({"my fog": {0: 1.0}}, "the name 'my fog'"),
        ({"fog": {"given": "wether", "clear": {0: 1.0}}, **WEATHER}, "depends on 'wether'.*did you mean 'weather'"),
        (
            {"fog": {"given": "weather", "clear": {0: 1.0}}, **WEATHER},
            "nothing is stated about fog given weather = foul",
        ),
        ({"fog": {"given": "weather", "cler": {0: 1.0}}, **WEATHER}, "fog has no weather = 'cler'"),
        ({"fog": {"given": "weather", "clear": 1.0, "foul": {0: 1}}, **WEATHER}, "fog given weather = clear = 1.0"),
        ({"fog": {"given": ["weather", "weather"], "clear": {}}, **WEATHER}, "a list of different names"),
        ({"fog": {"given": 3, "clear": {}}, **WEATHER}, "fog given 3"),
        (
            {"fog": {"given": "noise", 0: {0: 1.0}, 1: {0: 1.0}}, "noise": {"given": "fog", 0: {0: 1.0}}},
            "fog -> noise -> fog depend on each other in a circle",
        ),
        ({"fog": {"given": "fog", 0: {0: 1.0}}}, "fog -> fog depend"),
        ([{"fog": {0: 1.0}}, {"fog": {1: 1.0}}], "fog is stated twice, with different probabilities"),
        (
            [WEATHER, {"fog": {"given": "weather", "clear": {0: 1.0}, "foul": {1: 1.0}}}, {"fog": {0: 0.5, 1: 0.5}}],
            "fog = 0 has probability 0.5 by one statement and 0.8 by what it depends on; these contradict each other",
        ),
        ("fog", "accepted: name -> state -> probability"),
        ([3], "accepted: name -> state -> probability"),
    ],
)
def test_mistakes_are_told_in_one_line(statements, line):
    with pytest.raises(InputError, match=line) as caught:
        Profile(statements).over(LEVELS)
    assert str(caught.value).startswith("profile: ")
    assert "\n" not in str(caught.value)


def test_a_table_that_would_be_too_large_is_refused():
    many = {f"p{i}": tuple(range(10)) for i in range(8)}
    plain = {f"p{i}": {0: 1.0} for i in range(7)}
    with pytest.raises(InputError, match=r"the table of p7 given p0, .* has 100,000,000 numbers"):
        Profile({**plain, "p7": {"given": [f"p{i}" for i in range(7)], 0: {}}}).over(many)


def test_together_needs_a_severity_for_each():
    with pytest.raises(InputError, match="one severity for each of fog, noise"):
        Profile.together(["fog", "noise"], {(0,): 1.0})
    with pytest.raises(InputError, match="blur has no severity but 0"):
        Profile.single({"fog": (0, 1), "blur": (0,)})
