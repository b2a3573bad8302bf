import itertools

import numpy as np
import pytest

import testifai as ta
from testifai.errors import InputError
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Outcomes
from testifai.space import Space
from testifai.surrogates import Surrogate
from testifai.tomogram import EstimatorSettings, Tomogram
from testifai.tomogram import profile as weighted
from testifai.tomogram.profile import expected
from testifai.tomogram.profile_parser import Profile

FADE = Perturbation("fade", lambda batch, parameter, rng: batch, (0, 1, 2))
STATED = {
    "weather": {"clear": 0.7, "foul": 0.3},
    "a": {"given": "weather", "clear": {0: 0.9, 1: 0.1}, "foul": {1: 0.4, 2: 0.6}},
    "b": {"given": "a", 0: {0: 1.0}, 1: {0: 0.5, 1: 0.5}, 2: {1: 0.2, 2: 0.8}},
}


def weights_by_hand():
    made = np.zeros((3, 3))
    for w, a, b in itertools.product(STATED["weather"], range(3), range(3)):
        made[a, b] += STATED["weather"][w] * STATED["a"][w].get(a, 0) * STATED["b"][a].get(b, 0)
    return made


def tomogram(trials=50, inputs=100, seed=0, surrogate=None, axes="ab", ids=None):
    """Rates that fall with the severities, tried on a random part of the inputs."""
    space, outcomes, rng = Space(dict.fromkeys(axes, FADE)), Outcomes(inputs), np.random.default_rng(seed)
    difficulty = rng.random(inputs)
    for i in range(space.size) if ids is None else ids:
        places = np.sort(rng.permutation(inputs)[:trials])
        rate = 0.95 * 0.85 ** sum(space.configuration(int(i)))
        outcomes.record(int(i), places, difficulty[places] < rate)
    return Tomogram(space, outcomes, np.arange(inputs), settings=EstimatorSettings(surrogate=surrogate))


def test_the_expected_rate_is_the_weighted_mean_of_the_tests():
    made = tomogram()
    answer = expected(made, STATED)
    weights = weights_by_hand()
    assert answer.robustness == pytest.approx((weights * made.estimate).sum(), abs=1e-12)
    assert answer.low == pytest.approx((weights * made.low).sum(), abs=1e-12)
    assert answer.high == pytest.approx((weights * made.high).sum(), abs=1e-12)
    assert answer.drop == pytest.approx(answer.robustness - made.base)
    assert answer.tests == (weights > 0).sum() == answer.measured
    flat = np.zeros(9)
    flat[answer.ids] = answer.weights
    np.testing.assert_allclose(flat, weights.reshape(-1), atol=1e-12)
    # The same as an array, and stated together.
    together = Profile.together("ab", {at: p for at, p in np.ndenumerate(weights) if p})
    for other in (weights, together):
        again = expected(made, other)
        assert again.robustness == pytest.approx(answer.robustness, abs=1e-12)
        assert again.low == pytest.approx(answer.low, abs=1e-12)


def test_a_uniform_profile_is_a_query_over_everything():
    made = tomogram()
    answer, query = expected(made, np.full((3, 3), 1 / 9)), made.query("order >= 0")
    for name in ("robustness", "low", "high", "drop", "tests", "measured"):
        assert getattr(answer, name) == pytest.approx(getattr(query, name), abs=1e-12)


def test_given_a_context_only_its_part_counts():
    made = tomogram()
    parts = {w: expected(made, STATED, {"weather": w}).robustness for w in STATED["weather"]}
    whole = sum(p * parts[w] for w, p in STATED["weather"].items())
    assert expected(made, STATED).robustness == pytest.approx(whole, abs=1e-12)
    assert parts["clear"] > parts["foul"]
    assert expected(made, STATED, {"a": 2, "b": 2}).robustness == pytest.approx(made.estimate[2, 2])


def test_the_costliest_tests_are_those_that_lose_most():
    made = tomogram()
    answer = expected(made, STATED)
    lost = weights_by_hand() * (1 - made.estimate)
    for sigma, probability, estimate, share in answer.costliest:
        assert estimate == made.estimate[sigma]
        assert probability == pytest.approx(weights_by_hand()[sigma])
        assert share == pytest.approx(lost[sigma] / lost.sum())
    assert len(answer.costliest) == 5
    assert answer.costliest[0][0] == np.unravel_index(lost.argmax(), lost.shape)


def test_intervals_cover_the_rate_on_all_inputs():
    """The mean of bounds is conservative: tests share inputs."""
    hits = []
    for seed in range(60):
        truth = (weights_by_hand() * tomogram(100, seed=seed).estimate).sum()
        answer = expected(tomogram(30, seed=seed), STATED)
        hits.append(answer.low <= truth <= answer.high)
    assert np.mean(hits) >= 0.95 - 2 * np.sqrt(0.95 * 0.05 / 60)


def test_a_pooling_surrogate_gives_narrower_bounds_that_still_cover(monkeypatch):
    weights, widths, hits = weights_by_hand(), [], []
    for seed in range(12):
        truth = (weights * tomogram(400, 400, seed=seed).estimate).sum()
        made = tomogram(40, 400, seed, "process")
        answer = expected(made, weights)
        widths.append((answer.high - answer.low) / (weights * (made.high - made.low)).sum())
        hits.append(answer.low <= truth <= answer.high)
        assert answer.measured == 0
        assert answer.robustness == pytest.approx((weights * made.estimate).sum(), abs=1e-12)
    assert max(widths) < 1
    assert sum(hits) >= 9  # of 12 at 95 %, fewer than 9 happen once in 450 times
    # With room for the covariance of some tests only, the others add their half-widths: wider, never narrower.
    monkeypatch.setattr(weighted, "MOST_JOINT", 3)
    some = expected(made, weights)
    assert answer.high - answer.low < some.high - some.low <= (weights * (made.high - made.low)).sum() + 1e-9


def test_a_uniform_profile_has_bounds_as_wide_as_the_surrogates_region():
    made = tomogram(40, 400, 1, "process")
    answer, region = expected(made, np.full((3, 3), 1 / 9)), made.query("order >= 0")
    assert answer.robustness == pytest.approx(region.robustness, abs=1e-9)
    # Those of the region are skewed.
    assert answer.high - answer.low == pytest.approx(region.high - region.low, rel=0.05)


def test_what_has_no_interval_says_so():
    made = tomogram(100, surrogate="forest", ids=[0, 1, 2, 3, 6])
    answer = expected(made, STATED)
    assert np.isnan(answer.low)
    assert answer.inferred == 3
    assert answer.as_dict()["low"] is None
    assert answer.as_dict()["costliest"][0]["configuration"]
    assert not np.isnan(expected(made, {"a": {0: 0.5, 2: 0.5}}).low)  # measured tests only


def test_axes_that_are_not_stated_are_off_however_many_there_are():
    space = Space({f"axis_{i}": FADE for i in range(30)})
    outcomes = Outcomes(10)
    for sigma, passes in (((0,) * 30, 10), ((1, *[0] * 29), 6)):
        outcomes.record(space.id(sigma), np.arange(10), np.arange(10) < passes)
    answer = expected(
        Tomogram(space, outcomes, np.arange(10), settings=EstimatorSettings(surrogate=None)),
        {"axis_0": {0: 0.5, 1: 0.5}},
    )
    assert (answer.robustness, answer.tests) == (pytest.approx(0.8), 2)


def test_applied_in_axis_order_where_the_order_counts():
    space, outcomes = Space({"a": FADE, "b": FADE}, order_sensitive=True), Outcomes(10)
    for places, passes in (((1, 2), 7), ((2, 1), 3)):
        outcomes.record(space.id((1, 1, *places)), np.arange(10), np.arange(10) < passes)
    answer = expected(
        Tomogram(space, outcomes, np.arange(10), settings=EstimatorSettings(surrogate=None)),
        {"a": {1: 1.0}, "b": {1: 1.0}},
    )
    assert answer.robustness == pytest.approx(0.7)


def test_level_names_may_be_used():
    levels = ta.Space({"a": (FADE, {"low": 1, "high": 2})})
    outcomes = Outcomes(10)
    for i, passes in enumerate((10, 8, 4)):
        outcomes.record(i, np.arange(10), np.arange(10) < passes)
    made = Tomogram(levels, outcomes, np.arange(10), settings=EstimatorSettings(surrogate=None))
    assert expected(made, {"a": {"off": 0.5, "high": 0.5}}).robustness == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("profile", "given", "line"),
    [
        (np.ones((3, 2)) / 6, None, r"profile: float64 of shape \(3, 2\); accepted: numbers of shape \(3, 3\)"),
        (np.ones((3, 3)), None, "profile: an array that adds up to 9"),
        (np.full((3, 3), np.nan), None, "profile: an array that adds up to nan"),
        (np.full((3, 3), 1 / 9), {"a": 1}, "given: a profile that is an array has no variables"),
        ({"class": {"x": 1.0}}, None, "profile: 'class' is stated"),
        ({"c": {0: 1.0}}, None, "profile: 'c' is no property"),
        (STATED, {"wether": "clear"}, "given: no variable 'wether'; did you mean 'weather'"),
        (STATED, {"weather": "snow"}, "given: weather = 'snow'; accepted: clear, foul"),
        (STATED, {"weather": "clear", "a": 2}, "has probability 0"),
    ],
)
def test_mistakes_are_told_in_one_line(profile, given, line):
    with pytest.raises(InputError, match=line):
        expected(tomogram(), profile, given)


def test_very_many_configurations_are_drawn_by_their_probability():
    """Rates fall by a hundredth for each level: the mean is known."""
    space = Space({f"axis_{i}": FADE for i in range(20)})
    outcomes = Outcomes(2)
    outcomes.record(0, np.arange(2), np.ones(2, bool))
    third = {0: 0.5, 1: 0.25, 2: 0.25}

    class Falling(Surrogate):
        name = "falling"

        def fit(self, features, passes, trials, *, single=None):
            return self

        def predict(self, features):
            rates = 1 - np.asarray(features).sum(axis=1) / 100
            return rates, np.zeros(len(rates))

    tomogram = Tomogram(space, outcomes, np.arange(2), settings=EstimatorSettings(surrogate=Falling()))
    found = expected(tomogram, dict.fromkeys(space.names, third))
    assert found.tests == 3**20
    assert found.low < 1 - 20 * 0.75 / 100 < found.high
    assert 0 < found.high - found.low < 0.01
    weather = {"weather": {"good": 0.9, "bad": 0.1}}
    worse = {name: {"given": "weather", "good": third, "bad": {2: 1.0}} for name in space.names[:1]}
    asked = {**dict.fromkeys(space.names, third), **weather, **worse}
    bad = expected(tomogram, asked, {"weather": "bad"})
    assert bad.low < 1 - (2 + 19 * 0.75) / 100 < bad.high
    without = expected(
        Tomogram(space, outcomes, np.arange(2), settings=EstimatorSettings(surrogate=None)),
        dict.fromkeys(space.names, third),
    )
    assert np.isnan(without.robustness)
