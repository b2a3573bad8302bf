"""Tables of one property at a time, their draws, and the intervals that a network makes of these."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest

import testifai as ta
from testifai.errors import InputError
from testifai.locality import Network
from testifai.locality.learning import Tables, learn, learn_single, resampled
from testifai.locality.local import Local
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Outcomes
from testifai.space import Space
from testifai.tomogram import EstimatorSettings, Tomogram

from .synthetic import confusions, drawn_table, expected_table

FADE = Perturbation("fade", lambda batch, parameter, rng: batch, (0, 1, 2))
CLASSES = ("0", "1", "2")


def local(seed=0, trials=50, among="correct"):
    """Counts of 3 classes (and an answer that is none of them) under fog at 1 and 2, and snow at 1."""
    rng = np.random.default_rng(seed)
    confusion = np.zeros((2, 2, 3, 4), int)
    for which, level, c in itertools.product(range(2), range(2), range(3)):
        if (which, level) != (1, 1):
            confusion[which, level, c] = rng.multinomial(trials, rng.dirichlet([1, 1, 1, 1]))
    outputs = [*CLASSES, "none"]
    return Local.from_counts(CLASSES, ["fog", "snow"], [[1, 2], [1]], confusion, outputs=outputs, among=among)


def scan(answers, keep=True, inputs=300, names=("fog", "snow"), clean_wrong=0, most_order=None, classes=None):
    """A run over fog x snow that gives, under (fog, snow), the answer `answers(class, fog, snow, rng)`."""
    space, outcomes, rng = Space(dict.fromkeys(names, FADE)), Outcomes(inputs), np.random.default_rng(0)
    order, labels = rng.permutation(inputs), np.arange(inputs) % 3
    for sigma in space.configurations(most_order):
        given = np.array([answers(labels[order[place]], *sigma[:2], rng) for place in range(inputs)])
        if not any(sigma):
            given = labels[order].copy()
            given[:clean_wrong] = (given[:clean_wrong] + 1) % 3
        kept = {"predicted": given.astype(np.float32)} if keep else None
        outcomes.record(space.id(sigma), np.arange(inputs), given == labels[order], kept)
    return Tomogram(space, outcomes, order, labels, classes, settings=EstimatorSettings(surrogate=None))


def test_single_properties_are_the_mean_of_a_dirichlet_posterior():
    made = local()
    for prior in (0.0, 0.5, 2.0):
        tables = learn(made, prior=prior)
        for c, level in itertools.product(range(3), (1, 2)):
            pseudo = np.full(4, prior / 3)
            pseudo[c] = prior
            counts = made.confusion[0, level - 1, c] + pseudo
            np.testing.assert_allclose(tables.answers[c, level, 0], counts / counts.sum(), atol=1e-12)
            # Jeffreys' mean for the rate of right answers, however many answers there are.
            passes, trials = made.passes[c, 0, level - 1], made.trials[c, 0, level - 1]
            assert tables.answers[c, level, 0, c] == pytest.approx((passes + prior) / (trials + 2 * prior))
        np.testing.assert_allclose(tables.answers[:, 0, 0], np.eye(3, 4))


def test_combinations_are_assumed_to_be_survived_one_by_one():
    tables = learn(local(), prior=0)
    for c, fog in itertools.product(range(3), (1, 2)):
        one, other, both = tables.answers[c, fog, 0], tables.answers[c, 0, 1], tables.answers[c, fog, 1]
        assert both[c] == pytest.approx(one[c] * other[c])
        wrong = [o for o in range(4) if o != c]
        shares = (one + other)[wrong] / (one + other)[wrong].sum()
        np.testing.assert_allclose(both[wrong], shares * (1 - both[c]), atol=1e-12)
    assert "of 6 rows with several properties on 0 were measured, 6 are assumed: the product" in tables.notes[1]


def test_or_as_harmful_as_the_worst_of_them():
    tables = learn(local(), prior=0, together="worst")
    for c, fog in itertools.product(range(3), (1, 2)):
        rows = tables.answers[c, fog, 0], tables.answers[c, 0, 1]
        np.testing.assert_allclose(tables.answers[c, fog, 1], min(rows, key=lambda row: row[c]))
    single = learn(local(), prior=0)
    for at in ((0, 0), (1, 0), (2, 0), (0, 1)):
        np.testing.assert_allclose(tables.answers[:, *at], single.answers[:, *at])


def answers(c, fog, snow, rng):
    """Right half of the time with both on, else the next class."""
    return c if not (fog and snow) or rng.random() < 0.5 else (c + 1) % 3


@pytest.mark.parametrize("keep", [True, False])
def test_a_scan_tells_what_combinations_do(keep):
    made, run = local(), scan(answers, keep)
    assumed, tables = learn(made), learn(made, run)
    for c, fog in itertools.product(range(3), (1, 2)):
        i = run.space.id((fog, 1))
        mine = run.labels[run.order] == c
        passes = run.outcomes.passed(i, np.flatnonzero(mine)).sum()
        prior = assumed.answers[c, fog, 1]
        right = (passes + prior[c]) / (100 + 1)  # 100 inputs of each class, and one trial's weight of prior
        assert tables.answers[c, fog, 1, c] == pytest.approx(right)
        assert tables.trials[c, fog, 1] == 100
        if keep:
            wrong = (c + 1) % 3
            assert tables.answers[c, fog, 1, wrong] == pytest.approx((100 - passes + prior[wrong]) / 101)
        else:  # wrong answers as they were assumed
            others = [o for o in range(4) if o != c]
            shares = prior[others] / prior[others].sum()
            np.testing.assert_allclose(tables.answers[c, fog, 1, others], shares * (1 - right), atol=1e-12)
    # What was measured one property at a time stays.
    np.testing.assert_allclose(tables.answers[:, :, 0], assumed.answers[:, :, 0])
    assert "of 6 rows with several properties on 6 were measured" in tables.notes[1]


def test_only_inputs_that_are_right_when_clean_are_counted_like_in_local_robustness():
    run = scan(answers, clean_wrong=60)
    tables = learn(local(), run)
    assert tables.trials[:, 1, 1].sum() == 240
    everything = learn(local(among="all"), run)
    assert everything.trials[:, 1, 1].sum() == 300
    # And then the clean rate is the run's: Σ over classes of 100 inputs, 60 of them wrong.
    right = everything.answers[np.arange(3), 0, 0, np.arange(3)]
    assert (right * 101 - 1).sum() == pytest.approx(240)


def test_with_a_clean_rate_below_one_the_product_is_relative_to_it():
    run = scan(answers, clean_wrong=60, most_order=1)
    tables = learn(local(among="all"), run, prior=0.5)
    for c in range(3):
        clean, fog, snow, both = (tables.answers[c, *at, c] for at in ((0, 0), (1, 0), (0, 1), (1, 1)))
        assert both == pytest.approx(min(1, fog * snow / clean))


def test_further_axes_of_a_scan_are_off():
    run = scan(answers, names=("fog", "snow", "rain"), inputs=30)
    assert learn(local(), run).trials[:, 1, 1].tolist() == [10, 10, 10]


def test_names_of_classes_are_matched():
    named = Local.from_counts(["cat", "dog", "eel"], ["fog", "snow"], [[1], [1]], np.full((2, 1, 3, 3), 5))
    tables = learn(named, scan(answers, classes=("cat", "dog", "eel")))
    assert tables.row("dog", {"fog": 1, "snow": 1})["eel"] == pytest.approx(0.5, abs=0.2)
    assert tables.row("dog", {"fog": 1, "snow": 1})["cat"] < 0.01
    with pytest.raises(InputError, match="scan: labels"):
        learn(named, scan(answers))


def test_a_class_without_trials_is_the_priors_and_said_to_be():
    counts = np.array([[[[9, 1], [0, 0]]]])
    tables = learn(Local.from_counts(["a", "b"], ["fog"], [[1]], counts))
    assert tables.row("b", {"fog": 1}) == {"a": 0.5, "b": 0.5}
    assert any("1 rows of a class under one property have no trials" in note for note in tables.notes)
    with pytest.raises(InputError, match="prior: 0, but b has no trials under fog at severity 1"):
        learn(Local.from_counts(["a", "b"], ["fog"], [[1]], counts), prior=0)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"prior": -1}, "prior: must be a number, at least 0, got -1"),
        ({"prior": float("inf")}, "prior: must be a number, at least 0, got inf"),
        ({"prior": True}, "prior: must be a number, at least 0, got True"),
        ({"together": "prodct"}, "together: must be one of product, worst, got 'prodct'"),
    ],
)
def test_mistakes_are_told_in_one_line(options, line):
    with pytest.raises(InputError, match=line):
        learn(local(), **options)


def test_tables_that_are_none_are_refused():
    good = learn(local())
    with pytest.raises(InputError, match="answers: rows that are no probabilities"):
        Tables(good.classes, good.outputs, good.properties, good.severities, good.answers * 0.9, good.trials)
    with pytest.raises(InputError, match="answers: shape"):
        Tables(good.classes, good.outputs, good.properties, good.severities, good.answers[:2], good.trials)
    for call, line in (
        (lambda: good.row("7"), "class: no class '7'"),
        (lambda: good.row("0", {"fgo": 1}), "did you mean 'fog'"),
        (lambda: good.row("0", {"fog": 3}), "severities: fog = 3; accepted: 0, 1, 2"),
    ):
        with pytest.raises(InputError, match=line):
            call()


def test_a_table_that_would_be_too_large_is_refused():
    counts = np.ones((9, 5, 10, 10), int)
    with pytest.raises(InputError, match=r"properties: the table of answers has 1,007,769,600 numbers"):
        learn(Local.from_counts(list("0123456789"), list("abcdefghi"), [range(1, 6)] * 9, counts))


def test_a_scan_without_the_properties_or_labels_is_refused():
    with pytest.raises(InputError, match="scan: has no axis 'fog'"):
        learn(local(), scan(answers, names=("mist", "snow")))
    bare = replace(scan(answers), labels=None)
    with pytest.raises(InputError, match="scan: has no labels"):
        learn(local(), bare)


def test_a_real_scan_that_keeps_predictions():
    """Digits are their own inputs; fog adds 1 to one, snow to another, so both on make two answers wrong."""
    change = {"fog": ta.Perturbation("fog", lambda x, p, rng: np.where(x == 0, p, x), (0, 1))}
    change["snow"] = ta.Perturbation("snow", lambda x, p, rng: np.where(x == 2, p, x), (2, 1))
    labels = np.repeat([0, 1, 2], 10)
    run = ta.scan(
        lambda batch: batch.astype(int), (labels.astype(float), labels), ta.Space(change), strategy="full",
        keep=["predicted"],
    )  # fmt: skip
    confusion = np.zeros((2, 1, 3, 3), int)
    confusion[:, 0] = 10 * np.eye(3, dtype=int)
    confusion[0, 0, 0] = confusion[1, 0, 2] = [0, 10, 0]
    tables = learn(Local.from_counts(CLASSES, ["fog", "snow"], [[1], [1]], confusion), run, prior=0)
    np.testing.assert_allclose(tables.answers[:, 1, 1], [[0, 1, 0], [0, 1, 0], [0, 1, 0]])


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


@pytest.mark.simulation
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


@pytest.mark.simulation
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
