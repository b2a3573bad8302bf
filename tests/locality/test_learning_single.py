"""Tables of one property at a time, their draws, and the intervals that a network makes of these."""

from __future__ import annotations

import re

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.locality import Local, Network, learn
from testifai.locality.learning import learn_single, resampled

from .synthetic import confusions, drawn_table, expected_table

pytest.importorskip("pyagrum", reason="the Bayesian network needs pyAgrum: pip install 'testifai[bayes]'")

RUNS = 60
UNEVEN = Local.from_counts(
    ["a", "b"],
    ["fog", "snow"],
    [[1, 3], [2]],
    [[[[18, 2], [4, 16]], [[9, 11], [5, 15]]], [[[12, 8], [1, 19]], [[0, 0], [0, 0]]]],
)


def covered(truth, ask, *, first=0, runs=RUNS, trials=60, alike=0.6, singles=True, **options):
    """How often the interval of a network's answer holds what the network of the true tables says."""
    wanted = ask(Network.of(expected_table(truth), prior=0, **options).posterior)
    held = []
    for seed in range(first, first + runs):
        network = Network.of(drawn_table(truth, trials, seed, alike=alike, singles=singles), **options)
        name, given, state = ask.__defaults__
        (found,) = network.beliefs(name, given=given, draws=60, seed=seed)
        held.append(bool(found.rates.low[state] <= wanted <= found.rates.high[state]))
    return float(np.mean(held))


def question(name, given, state):
    def ask(posterior, name=name, given=given, state=state):
        return posterior(name, given=given).probabilities[state]

    return ask


def test_the_two_structures_of_one_property_at_a_time_say_the_same():
    """The network over all severities at once, which the small one replaces where no profile is given."""
    large, small = Network(learn(UNEVEN)), Network.of(UNEVEN)
    for names, given in [
        (["correct"], {}),
        (["class", "property"], {"correct": False}),
        (["fog"], {"predicted": "b"}),
        (["snow", "predicted"], {"class": "a", "fog": 0}),
    ]:
        old, new = (network.posterior(*names, given=given) for network in (large, small))
        wanted = {tuple(words.values()): p for words, p in old.ranked()}
        assert {tuple(words.values()): p for words, p in new.ranked()} == pytest.approx(wanted, abs=1e-12)
    for arity in (2, 3):
        combine = lambda *labels: "".join(labels)  # noqa: E731
        both = [
            network.diagnose({"output": "b" * arity})
            for network in (
                Network(learn(UNEVEN), combine=combine, arity=arity),
                Network.of(UNEVEN, combine=combine, arity=arity),
            )
        ]
        key = lambda cause: (cause.part, cause.true_class, cause.property, cause.severity)  # noqa: E731
        old, new = ({key(one): one.probability for one in causes} for causes in both)
        assert new == pytest.approx(old, abs=1e-12)


def test_severity_is_a_variable_and_a_property_that_lacks_one_is_ruled_out():
    network = Network.of(UNEVEN)
    found = network.posterior("property", given={"severity": 2})
    assert found.ranked() == [({"property": "snow"}, pytest.approx(1))]
    assert network.names == ("property", "severity", "class", "predicted", "correct")
    with pytest.raises(InputError, match="probability 0"):
        network.posterior("class", given={"severity": 2, "property": "fog"})


def test_many_classes_and_properties_make_a_small_table():
    counts = np.broadcast_to(np.eye(43, dtype=int) * 5, (5, 5, 43, 43))
    local = Local.from_counts([f"c{one}" for one in range(43)], "abcde", [range(1, 6)] * 5, counts)
    with pytest.raises(InputError, match="numbers"):
        learn(local)
    assert Network.of(local).predict({"class": "c7"}) == pytest.approx(5.5 / 6)


def test_draws_of_a_row_are_its_dirichlet_posterior_and_share_inputs():
    truth = confusions(0)
    local = drawn_table(truth, 50, 0, alike=1.0)
    draws = np.array([one.answers for one in resampled(local, count=600)])
    assert np.allclose(draws.sum(axis=-1), 1)
    mean = learn_single(local).answers
    total = 50 + 1
    assert np.abs(draws.mean(axis=0) - mean).max() < 5 * np.sqrt(0.25 / total / 600)
    spread = np.sqrt(mean * (1 - mean) / (total + 1))
    assert draws.std(axis=0) == pytest.approx(spread, rel=0.2, abs=2e-3)
    # Inputs that are right or wrong everywhere move all rows of their class together.
    right = draws[:, 0, :, :, 0].reshape(600, -1)
    assert np.corrcoef(right.T).min() > 0.5
    apart = [one.answers[0, :, :, 0].ravel() for one in resampled(drawn_table(truth, 50, 0), count=300)]
    assert abs(np.corrcoef(np.array(apart).T)[0, 1]) < 0.5


def test_draws_are_the_same_for_a_seed():
    local = drawn_table(confusions(1), 20, 0)
    first, again, other = (Network.of(local).beliefs("correct", draws=20, seed=seed)[0].as_dict() for seed in (0, 0, 1))
    assert first == again != other


QUESTIONS = [
    question("correct", {"class": "0", "property": "p1"}, 0),
    question("class", {"predicted": "1"}, 0),
    question("property", {"correct": False}, 1),
]


@pytest.mark.slow
def test_intervals_hold():
    """Of a model and of a system, from conditions to answers and back, inputs failing together or each by itself."""
    system = question("composed", {"class_1": "0", "class_2": "2"}, 0)
    asked = [(ask, alike) for ask in QUESTIONS for alike in (0.0, 0.9)]
    # Tables of its own for each question: whether intervals of one table hold hangs together.
    held = [
        covered(confusions(2), ask, first=1000 * number, alike=alike)
        for number, (ask, alike) in enumerate(asked, start=1)
    ]
    held.append(covered(confusions(3), system, arity=2))
    assert np.mean(held) > 0.95 - 3 * np.sqrt(0.05 * 0.95 / RUNS / len(held))
    assert min(held) > 0.95 - 4 * np.sqrt(0.05 * 0.95 / RUNS)


@pytest.mark.slow
@pytest.mark.parametrize("alike", [0.0, 1.0])
def test_counts_alone_give_intervals_that_hold_whatever_hangs_together(alike):
    ask = question("correct", {"class": "1"}, 0)
    assert covered(confusions(4), ask, alike=alike, singles=False) > 0.95 - 3 * np.sqrt(0.05 * 0.95 / RUNS)


def test_an_interval_holds_most_times():
    assert covered(confusions(2), QUESTIONS[0], runs=20) > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 20)


def test_what_the_tables_do_not_decide_is_exact():
    found = {one.name: one for one in Network.of(UNEVEN).beliefs(given={"property": "fog"}, draws=20)}
    assert found["severity"].ranked() == [(1, 0.5, 0.5, 0.5), (3, 0.5, 0.5, 0.5)]
    assert found["correct"].rates.low[0] < found["correct"].rates.rate[0] < found["correct"].rates.high[0]
    assert set(found) == {"severity", "class", "predicted", "correct"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"given": {"clas": "a"}}, "no variable 'clas'; did you mean 'class'"),
        ({"given": {"property": "fgo"}}, "property = 'fgo'; did you mean 'fog'? (accepted: fog, snow)"),
        ({"draws": 1}, "draws"),
        ({"confidence": 1.0}, "confidence"),
    ],
)
def test_mistakes_are_one_line(options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        Network.of(UNEVEN).beliefs(**options)


def test_a_network_with_a_profile_has_no_intervals():
    with pytest.raises(InputError, match="without a profile"):
        Network.of(UNEVEN, {"fog": {1: 1.0}}).beliefs()
