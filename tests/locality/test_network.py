import itertools
import sys
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.locality.compose import compose
from testifai.locality.learning import Tables, learn
from testifai.locality.local import Local
from testifai.locality.network import Network
from testifai.tomogram.profile_parser import Profile

pytest.importorskip("pyagrum", reason="the Bayesian network needs pyAgrum: pip install 'testifai[bayes]'")

WEATHER = {"clear": 0.7, "foul": 0.3}
FOG = {"clear": {0: 0.9, 1: 0.1}, "foul": {0: 0.2, 1: 0.3, 2: 0.5}}
NOISE = {0: {0: 0.6, 1: 0.4}, 1: {0: 0.5, 1: 0.5}, 2: {0: 0.1, 1: 0.9}}
CLASSES = {"0": 0.5, "1": 0.2, "2": 0.3}
PROFILE = {
    "weather": WEATHER,
    "fog": {"given": "weather", **FOG},
    "noise": {"given": "fog", **NOISE},
    "class": CLASSES,
}


def true_tables(seed=0, extra=0):
    """Any answers to 3 classes under 3 x 2 severities; `extra` answers are of no class."""
    outputs = tuple(map(str, range(3 + extra)))
    answers = np.random.default_rng(seed).dirichlet(np.ones(3 + extra), size=(3, 3, 2))
    return Tables(("0", "1", "2"), outputs, ("fog", "noise"), ((0, 1, 2), (0, 1)), answers, np.zeros((3, 3, 2)))


def one_part(tables, weather):
    """Every world of one part in this weather: (class, fog, noise, answer) and its probability."""
    for (c, pc), (fog, pf) in itertools.product(CLASSES.items(), FOG[weather].items()):
        for noise, pn in NOISE[fog].items():
            for place, answer in enumerate(tables.outputs):
                yield (c, fog, noise, answer), pc * pf * pn * tables.answers[int(c), fog, noise, place]


def worlds(tables, arity, combine):
    """Every world of a system whose parts share the weather, as variables, and its probability."""
    for weather, pw in WEATHER.items():
        for parts in itertools.product(list(one_part(tables, weather)), repeat=arity):
            world, probability = {"weather": weather}, pw
            for number, ((c, fog, noise, answer), p) in enumerate(parts, start=1):
                end = f"_{number}" if combine else ""
                names = ("class", "fog", "noise", "predicted", "correct")
                world |= dict(zip((name + end for name in names), (c, fog, noise, answer, c == answer), strict=True))
                probability *= p
            if combine:
                world["expected"] = combine(*(int(part[0][0]) for part in parts))
                world["output"] = combine(*(int(part[0][3]) for part in parts))
                world["composed"] = world["expected"] == world["output"]
            yield world, probability


def enumerate_posterior(everything, names, given):
    """By adding up all worlds that agree with what is given."""
    found = defaultdict(float)
    for world, probability in everything:
        if all(world[name] in (state if isinstance(state, list) else [state]) for name, state in given.items()):
            found[tuple(world[name] for name in names)] += probability
    total = sum(found.values())
    return {states: p / total for states, p in found.items()}


def agree(network, everything, names, given):
    wanted = enumerate_posterior(everything, names, given)
    found = network.posterior(*names, given=given)
    for at in itertools.product(*(range(len(states)) for states in found.states)):
        states = tuple(states[i] for states, i in zip(found.states, at, strict=True))
        assert found.probabilities[at] == pytest.approx(wanted.get(states, 0.0), abs=1e-9), (names, given, states)
    assert {tuple(words.values()): p for words, p in found.ranked()} == pytest.approx(
        {states: p for states, p in wanted.items() if p > 0}, abs=1e-9
    )


QUESTIONS = [
    (["correct"], {}),
    (["correct"], {"class": "1", "fog": 2, "noise": 1}),
    (["correct"], {"weather": "foul"}),
    (["class", "fog"], {"correct": False}),
    (["class", "noise", "predicted"], {"correct": False, "weather": "clear"}),
    (["weather"], {"correct": False, "class": "2"}),
    (["weather", "fog"], {"predicted": "0", "class": ["1", "2"]}),
    (["predicted"], {"fog": [1, 2]}),
]


@pytest.mark.parametrize("extra", [0, 2])
@pytest.mark.parametrize(("names", "given"), QUESTIONS)
def test_every_posterior_of_one_model_equals_enumeration(names, given, extra):
    tables = true_tables(1, extra)
    agree(Network(tables, PROFILE), list(worlds(tables, 1, None)), names, given)


SYSTEM_QUESTIONS = [
    (["composed"], {}),
    (["composed"], {"class_1": "2", "fog_1": 1, "class_2": "0", "fog_2": 2, "noise_1": 0, "noise_2": 1}),
    (["correct_1", "correct_2"], {"composed": False}),
    (["correct_1", "correct_2"], {"composed": False, "output": 3, "weather": "foul"}),
    (["class_2", "fog_2", "predicted_2"], {"composed": False, "class_1": "0"}),
    (["weather", "output"], {"class_1": "1", "class_2": "1"}),
    (["correct_1", "correct_2"], {"composed": True}),
]


@pytest.mark.parametrize("combine", [lambda a, b: a + b, lambda a, b: max(a, b), lambda a, b: (a, b)])
def test_every_posterior_of_a_system_of_two_equals_enumeration(combine):
    tables = true_tables(2)
    everything = list(worlds(tables, 2, combine))
    network = Network(tables, PROFILE, combine=combine, share="context")
    for names, given in SYSTEM_QUESTIONS:
        if "output" not in given or given["output"] == combine(2, 1):
            agree(network, everything, names, given)


def test_a_system_of_three_parts_equals_the_sum_over_all_answers():
    """Errors that cancel included, by one formula over all classes and answers, parts in the same weather."""
    tables = true_tables(3)
    network = Network(tables, PROFILE, arity=3, share="context")
    labels = np.arange(3)
    sums = labels[:, None, None] + labels[:, None] + labels
    right = sums[:, :, :, None, None, None] == sums[None, None, None]
    total = wrong_first = 0.0
    for weather, pw in WEATHER.items():
        joint = np.zeros((3, 3))  # class, answer
        for (c, _, _, answer), p in one_part(tables, weather):
            joint[int(c), int(answer)] += p
        cube = np.einsum("ax,by,cz->abcxyz", joint, joint, joint) * pw
        total += cube[right].sum()
        first_wrong = labels[:, None, None, None, None, None] != labels[None, None, None, :, None, None]
        wrong_first += cube[~right & first_wrong].sum()
    assert network.predict() == pytest.approx(total, abs=1e-9)
    blamed = network.blame()
    assert sum(p for parts, p in blamed.items() if 1 in parts) == pytest.approx(wrong_first / (1 - total), abs=1e-9)
    assert sum(blamed.values()) == pytest.approx(1, abs=1e-9)


@settings(max_examples=15, deadline=None)
@examples(st.integers(0, 10_000), st.sampled_from(["nothing", "context", "severities"]))
def test_what_parts_share(seed, share):
    """P(both right) by enumeration, with weather and severities drawn once or for each part."""
    tables = true_tables(seed)
    right = {  # P(right | weather, fog, noise)
        (fog, noise): sum(p * tables.answers[int(c), fog, noise, int(c)] for c, p in CLASSES.items())
        for fog in range(3)
        for noise in range(2)
    }
    by_weather = {}
    square = 0.0
    for weather, pw in WEATHER.items():
        chances = {(f, n): pf * pn for f, pf in FOG[weather].items() for n, pn in NOISE[f].items()}
        by_weather[weather] = sum(p * right[at] for at, p in chances.items())
        square += pw * sum(p * right[at] ** 2 for at, p in chances.items())
    wanted = {
        "nothing": sum(pw * by_weather[w] for w, pw in WEATHER.items()) ** 2,
        "context": sum(pw * by_weather[w] ** 2 for w, pw in WEATHER.items()),
        "severities": square,
    }[share]
    network = Network(tables, PROFILE, combine=lambda a, b: (a, b), share=share)
    assert network.predict() == pytest.approx(wanted, abs=1e-9)


def test_diagnosis_lists_every_cause_with_its_probability_and_lift():
    tables = true_tables(4)
    everything = list(worlds(tables, 1, None))
    before = enumerate_posterior(everything, ["class", "fog"], {})
    after = enumerate_posterior(everything, ["class", "fog"], {"correct": False})
    causes = Network(tables, PROFILE).diagnose()
    assert [cause.probability for cause in causes] == sorted((c.probability for c in causes), reverse=True)
    fog = {(cause.true_class, cause.severity): cause for cause in causes if cause.property == "fog"}
    assert set(fog) == {(c, s) for c in "012" for s in (1, 2)}
    for at, cause in fog.items():
        assert cause.probability == pytest.approx(after[at], abs=1e-9)
        assert cause.lift == pytest.approx(after[at] / before[at], abs=1e-9)


def test_diagnosis_of_a_system_asks_that_the_part_itself_was_wrong():
    tables = true_tables(5)
    everything = list(worlds(tables, 2, lambda a, b: a + b))
    wanted = enumerate_posterior(everything, ["class_2", "noise_2", "correct_2"], {"composed": False, "class_1": "0"})
    causes = Network(tables, PROFILE, arity=2, share="context").diagnose({"class_1": "0"})
    second = {(c.true_class, c.severity): c for c in causes if c.part == 2 and c.property == "noise"}
    before = enumerate_posterior(everything, ["class_2", "noise_2"], {"class_1": "0"})
    for at, cause in second.items():
        assert cause.lift == pytest.approx((wanted[*at, True] + wanted[*at, False]) / before[at], abs=1e-9)
    found = {at: cause.probability for at, cause in second.items()}
    assert found == pytest.approx({(c, 1): wanted[c, 1, False] for c in "012"}, abs=1e-9)


# -- learned from outcomes ------------------------------------------------------------------------------------------


def worked_example(scale=100):
    """5 + 0 under noise and rotation: LR 85, 78, 90 and 88 %; 5 is read as 6 under noise, 0 as 8."""
    confusion = np.zeros((2, 1, 3, 5))  # property, severity, class 0, 5 or 6, output 0, 5, 6, 8 or 3
    for which, (zero, five) in enumerate([(0.90, 0.85), (0.88, 0.78)]):
        confusion[which, 0, 0, [0, 3]] = zero, 1 - zero
        confusion[which, 0, 1, [1, 2 if which == 0 else 4]] = five, 1 - five
        confusion[which, 0, 2, 2] = 1
    return Local.from_counts(
        ["0", "5", "6"], ["noise", "rotation"], [[1], [1]], scale * confusion, outputs=["0", "5", "6", "8", "3"]
    )


def test_the_published_example_names_class_5_noise_and_the_confusion_with_6():
    network = Network(learn(worked_example(), prior=0), arity=2, share="context")
    known = {"class_1": "5", "class_2": "0", "property": "noise"}
    assert network.predict(known) == pytest.approx(0.85 * 0.90, abs=1e-9)
    # The sum is 6: only 5 read as 6 and 0 right makes that.
    assert network.blame({**known, "output": 6}) == pytest.approx({(1,): 1.0})
    unknown = {"class_1": "5", "class_2": "0", "output": 6}
    first = network.diagnose(unknown)[0]
    assert (first.part, first.true_class, first.property, first.severity) == (1, "5", "noise", 1)
    assert first.probability == pytest.approx(1, abs=1e-9)
    assert first.lift == pytest.approx(2, abs=1e-9)  # noise and rotation were equally probable
    answers = network.posterior("predicted_1", given={**unknown, "composed": False}).ranked()
    assert answers == [({"predicted_1": "6"}, pytest.approx(1))]
    # Nothing but a wrong sum under noise: Bayes by hand.
    wrong = 1 - 0.85 * 0.9
    assert network.blame(known) == pytest.approx(
        {(1,): 0.15 * 0.9 / wrong, (2,): 0.85 * 0.1 / wrong, (1, 2): 0.15 * 0.1 / wrong}
    )


def test_predictions_agree_with_composition_from_the_same_tables():
    local = worked_example()
    network = Network(learn(local, prior=0), arity=2, share="severities")
    made = compose(local, None, 2, tuples=[("5", "0"), ("6", "5")])
    for i, (one, other) in enumerate(made.tuples):
        for j, name in enumerate(made.conditions):
            found = network.predict({"class_1": one, "class_2": other, name: 1})
            assert found == pytest.approx(made.rate[i, j, 0], abs=1e-9)


def two_severities(seed=0):
    """Two classes under two properties, each with a mild and a harmful severity."""
    rates = np.array([[[0.98, 0.9], [0.3, 0.45]], [[0.95, 0.99], [0.5, 0.2]]])  # property, severity, class
    right = np.eye(2)
    counts = rates[..., None] * right + (1 - rates[..., None]) * (1 - right)
    return Local.from_counts(["0", "1"], ["fog", "noise"], [[1, 2], [1, 2]], 1000 * counts)


@pytest.mark.parametrize("options", [{}, {"share": "severities"}, {"share": "context"}, {"share": "nothing"}])
@pytest.mark.parametrize("arity", [2, 3])
def test_network_and_composition_mean_the_same_by_global_robustness(options, arity):
    """By default and with any `share`, on the same table, over properties and severities that are equally probable."""
    local = two_severities()
    network = Network(learn(local, prior=0), arity=arity, **options)
    made = compose(local, None, arity, **options)
    for place, classes in enumerate(made.tuples):
        known = {f"class_{part}": name for part, name in enumerate(classes, start=1)}
        assert network.predict(known) == pytest.approx(float(made.mean.rate[place].mean()), abs=1e-9)


def test_by_default_all_parts_meet_one_severity():
    """As where real combinations are measured: two severities survived by all or by none are survived half the time."""
    counts = np.stack([np.eye(2), 1 - np.eye(2)])[None]  # one property: all right at severity 1, all wrong at 2
    local = Local.from_counts(["0", "1"], ["fog"], [[1, 2]], counts)
    known = {"class_1": "0", "class_2": "0"}
    for share, wanted in (("severities", 0.5), ("context", 0.25)):
        network = Network(learn(local, prior=0), arity=2, share=share)
        assert network.predict(known) == pytest.approx(wanted)
        assert compose(local, share=share).mean.rate[0, 0] == pytest.approx(wanted)
    assert Network(learn(local, prior=0), arity=2).predict(known) == pytest.approx(0.5)
    assert compose(local).mean.rate[0, 0] == pytest.approx(0.5)


def test_learned_posteriors_come_nearer_to_the_true_ones_as_trials_grow():
    truth = np.random.default_rng(0).dirichlet([0.5] * 3, size=(2, 2, 3))  # property, severity, class
    wanted = _diagnosed(Local.from_counts("abc", ["fog", "snow"], [[1, 2], [1, 2]], truth), 0)
    errors = []
    for trials in (30, 3_000, 300_000):
        rng = np.random.default_rng(trials)
        off = []
        for _ in range(8):
            counts = rng.multinomial(trials, truth)
            found = _diagnosed(Local.from_counts("abc", ["fog", "snow"], [[1, 2], [1, 2]], counts), 0.5)
            off.append(max(abs(found[at] - p) for at, p in wanted.items()))
        errors.append(np.mean(off))
    # Errors shrink with the root of the trials: tenfold each time, within a factor of two.
    assert errors[1] < errors[0] / 5
    assert errors[2] < errors[1] / 5
    assert errors[2] < 0.002


def _diagnosed(local, prior):
    causes = Network.of(local, prior=prior).diagnose()
    return {(cause.true_class, cause.property, cause.severity): cause.probability for cause in causes}


def test_classes_weigh_as_they_were_sampled_unless_the_profile_says_otherwise():
    counts = [[[[10, 0], [5, 5]]]]
    local = Local.from_counts(["a", "b"], ["fog"], [[1]], counts, weights=[0.9, 0.1])
    assert Network.of(local, prior=0).predict() == pytest.approx(0.9 + 0.1 * 0.5)
    stated = Network.of(local, {"fog": {1: 1.0}, "class": {"b": 1}}, prior=0)
    assert stated.predict() == pytest.approx(0.5)


# -- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"combine": lambda a, b: a / 0}, "combine: raised ZeroDivisionError"),
        ({"combine": lambda a, b: [a]}, "combine: returned list"),
        ({"arity": 0}, "arity: must be a whole number"),
        ({"arity": 2, "share": "everything"}, "share: must be one of severities, context, nothing, got 'everything'"),
        ({"arity": 2, "share": "severities", "profile": {**PROFILE, "noise": {"given": "class",
          **{c: {0: 1.0} for c in "012"}}}}, "share: noise is to be common"),
        ({"profile": {"predicted": {"a": 1.0}, "fog": {"given": "predicted", "a": {1: 1.0}}}}, "'predicted'"),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_one_line(options, line):
    with pytest.raises(InputError, match=line) as caught:
        Network(true_tables(), **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("names", "given", "line"),
    [
        (["corect"], {}, "did you mean 'correct'"),
        (["correct"], {"fog": 3}, "given: fog = 3; accepted: 0, 1, 2"),
        (["correct"], {"class": "7"}, "given: class = '7'"),
        (["correct"], {"fog": []}, "no state left"),
        (["correct"], {"weather": "clear", "fog": 2}, "probability 0"),
        ([], {}, "names: none"),
        (["fog", "fog"], {}, "names: fog, fog"),
    ],
)
def test_impossible_questions_are_refused(names, given, line):
    with pytest.raises(InputError, match=line):
        Network(true_tables(), PROFILE).posterior(*names, given=given)


def test_blame_needs_parts():
    with pytest.raises(InputError, match="blame: this network has no parts"):
        Network(true_tables(), PROFILE).blame()


def test_a_property_may_not_have_the_name_of_a_variable():
    tables = Tables(("a", "b"), ("a", "b"), ("class",), ((0, 1),), np.full((2, 2, 2), 0.5), np.zeros((2, 2)))
    with pytest.raises(InputError, match="properties: one is called 'class'"):
        Network(tables)


def test_answers_that_read_alike_stay_apart():
    """1 and "1" are different answers of a system."""
    tables = true_tables(6)
    network = Network(tables, PROFILE, combine=lambda a, b: 1 if a else "1")
    after = network.posterior("predicted_1", given={"output": "1"})
    assert after.probabilities.tolist() == pytest.approx([1, 0, 0])
    assert network.posterior("predicted_1", given={"output": 1}).probabilities[0] == pytest.approx(0)


def test_expected_answers_that_are_never_given_are_always_wrong():
    network = Network(true_tables(), PROFILE, arity=2, expected=lambda a, b: -1)
    assert network.predict() == 0
    assert () in network.blame()  # all parts right, and the system wrong


def test_one_at_a_time_is_the_default():
    network = Network(true_tables())
    assert network.posterior("fog", "noise").probabilities == pytest.approx(np.array([[0, 0.5], [0.25, 0], [0.25, 0]]))
    assert Profile.single({"fog": (1, 2), "noise": (1,)}).statements


def test_without_pyagrum_it_says_what_to_install(monkeypatch):
    network = Network(true_tables(), PROFILE)
    monkeypatch.setitem(sys.modules, "pyagrum", None)
    with pytest.raises(InputError, match=r"network: needs pyAgrum; install it with: pip install 'testifai\[bayes\]'"):
        network.predict()
