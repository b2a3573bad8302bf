"""Answers against a brute force over configurations, and the promise of the intervals by simulation."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import testifai as ta
from testifai.errors import InputError
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Outcomes, visiting_order
from testifai.space import Space
from testifai.statistics.intervals import confidence_sequence, fixed_width, hypergeometric
from testifai.tomogram import EstimatorSettings, Tomogram

KEEP = Perturbation("keep", lambda batch, parameter, rng: batch, [0, 1, 2, 3, 4, 5])
INPUTS = 30
SPACES = {
    "chosen": Space({"zoom": (KEEP, [0, 1, 3, 5]), "blur": (KEEP, {"low": 1, "high": 4})}),
    "ordered": Space({"zoom": (KEEP, [0, 2, 5]), "blur": (KEEP, {"low": 1, "high": 4})}, order_sensitive=True),
    "three": Space({"zoom": (KEEP, [0, 1]), "blur": (KEEP, [0, 3, 4]), "fade": (KEEP, [0, 2])}),
}
QUERIES = {
    "zoom >= 3": lambda s: s["zoom"] >= 3,
    "zoom == 5 or blur == 4": lambda s: s["zoom"] == 5 or s["blur"] == 4,
    "not (0 < zoom <= 3) and blur != 0": lambda s: not 0 < s["zoom"] <= 3 and s["blur"] != 0,
    "order == 2": lambda s: sum(value > 0 for value in s.values()) == 2,
    "severity > 5": lambda s: sum(s.values()) > 5,
    "zoom in {0, 5} and blur not in {0}": lambda s: s["zoom"] in {0, 5} and s["blur"] != 0,
    "order >= 0": lambda s: True,
}
NAMED = {
    "blur = high ∨ zoom ≥ 2": lambda s: s["blur"] == 4 or s["zoom"] >= 2,
    "blur <= low & zoom != off": lambda s: s["blur"] <= 1 and s["zoom"] != 0,
}


def by_name(space: Space, sigma) -> dict[str, int]:
    return dict(zip(space.names, sigma, strict=False))


def tomogram_of(
    space: Space, passed: np.ndarray, attempted: np.ndarray, seed: int = 0, labels=None, classes=None, **settings
) -> Tomogram:
    """From tables (configuration, input in the data's order) of what passed and what was tried."""
    outcomes = Outcomes(passed.shape[1])
    order = visiting_order(passed.shape[1], seed)
    for i in range(len(passed)):
        places = np.flatnonzero(attempted[i][order])
        if len(places):
            outcomes.record(i, places, passed[i][order[places]])
    return Tomogram(space, outcomes, order, labels, classes, EstimatorSettings(seed=seed, **settings))


def tables(space: Space, seed: int, *, tried: float = 1.0, inputs: int = INPUTS) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    shape = (space.size, inputs)
    return generator.random(shape) < generator.random((space.size, 1)), generator.random(shape) < tried


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(list(SPACES)), st.integers(0, 2**32), st.sampled_from([0.2, 0.7, 1.0]), st.data())
def test_an_answer_is_the_mean_over_the_selected_tests(name, seed, tried, data):
    space = SPACES[name]
    queries = QUERIES if name == "three" else {**QUERIES, **NAMED}
    expression = data.draw(st.sampled_from(list(queries)))
    passed, attempted = tables(space, seed, tried=tried)
    attempted[:, 0] = True  # every test has a trial
    tomogram = tomogram_of(space, passed, attempted)
    rates = (passed & attempted).sum(axis=1) / attempted.sum(axis=1)
    chosen = [space.id(sigma) for sigma in space.configurations() if queries[expression](by_name(space, sigma))]
    if not chosen:
        with pytest.raises(InputError, match="selects no test"):
            tomogram.query(expression)
        return
    answer = tomogram.query(expression)
    assert answer.robustness == pytest.approx(rates[chosen].mean())
    assert answer.drop == pytest.approx(rates[chosen].mean() - rates[0])
    assert (answer.tests, answer.measured, answer.inferred) == (len(chosen), len(chosen), 0)
    assert answer.low - 1e-12 <= answer.robustness <= answer.high + 1e-12
    flat_low, flat_high = tomogram.low.reshape(-1), tomogram.high.reshape(-1)
    assert answer.low == pytest.approx(flat_low[chosen].mean())
    assert answer.high == pytest.approx(flat_high[chosen].mean())
    lowest = sorted(rates[chosen])[:5]
    assert [estimate for _, estimate, _, _ in answer.worst] == pytest.approx(lowest)
    for sigma, estimate, low, high in answer.worst:
        i = space.id(sigma)
        assert i in chosen
        assert (estimate, low, high) == (rates[i], flat_low[i], flat_high[i])
    assert len({sigma for sigma, *_ in answer.worst}) == min(5, len(chosen))


def test_arrays_have_the_shape_of_the_space_and_the_index_of_a_configuration():
    space = SPACES["chosen"]
    passed, attempted = tables(space, 1, tried=0.5)
    tomogram = tomogram_of(space, passed, attempted)
    assert tomogram.estimate.shape == tomogram.trials.shape == tomogram.low.shape == (4, 3)
    for sigma in space.configurations():
        i = space.id(sigma)
        assert tomogram.trials[space.index(sigma)] == attempted[i].sum()
        assert tomogram.passes[space.index(sigma)] == (passed[i] & attempted[i]).sum()
    assert tomogram.inferences == attempted.sum()
    assert tomogram.base == tomogram.estimate[0, 0]
    assert tomogram.estimator.rests_on_own_trials.all()
    estimate, low, high = tomogram.predict([(5, 4), (0, 1)])
    assert estimate.tolist() == [tomogram.estimate[3, 2], tomogram.estimate[0, 1]]
    assert low.tolist() == [tomogram.low[3, 2], tomogram.low[0, 1]]
    assert high.tolist() == [tomogram.high[3, 2], tomogram.high[0, 1]]


def low_order_only(space: Space, seed: int = 2, **options) -> Tomogram:
    passed, attempted = tables(space, seed)
    attempted &= np.array([space.order(space.configuration(i)) <= 1 for i in range(space.size)])[:, None]
    return tomogram_of(space, passed, attempted, **options)


def test_predicted_tests_are_counted_and_leave_no_bounds():
    tomogram = low_order_only(SPACES["chosen"])
    answer = tomogram.query("zoom >= 3")
    assert (answer.tests, answer.measured, answer.inferred) == (6, 2, 4)
    assert np.isnan(answer.low)
    assert np.isnan(answer.high)
    assert not np.isnan(answer.robustness)
    assert not np.isnan(tomogram.query("zoom >= 3 and blur == 0").low)
    assert np.isnan(tomogram.low).sum() == np.isnan(tomogram.high).sum() == 6
    assert answer.as_dict()["low"] is None
    assert len(answer.worst) == 5


def test_predictions_are_the_surrogates():
    from testifai.surrogates import Forest

    space = SPACES["chosen"]
    tomogram = low_order_only(space)
    known = tomogram.estimator.measured_ids
    passes, trials = tomogram.outcomes.counts(known)
    forest = Forest(seed=0).fit([space.configuration(int(i)) for i in known], passes, trials)
    missing = [sigma for sigma in space.configurations() if space.order(sigma) == 2]
    expected, _ = forest.predict(missing)
    assert tomogram.predict(missing)[0] == pytest.approx(expected)


def test_without_a_surrogate_nothing_is_made_up():
    tomogram = low_order_only(SPACES["chosen"], surrogate=None)
    assert np.isnan(tomogram.estimate).sum() == 6
    answer = tomogram.query("zoom >= 3")
    assert np.isnan(answer.robustness)
    assert (answer.measured, answer.inferred) == (2, 4)
    assert answer.as_dict()["robustness"] is None
    assert not np.isnan([estimate for _, estimate, _, _ in answer.worst][:2]).any()


class Constant:
    """A surrogate with a variance."""

    name = "constant"

    def fit(self, features, passes, trials):
        self.mean_ = passes.sum() / trials.sum()
        return self

    def predict(self, features):
        return np.full(len(features), self.mean_), np.full(len(features), 0.01)


def test_a_surrogates_variance_becomes_bounds_at_the_asked_confidence():
    tomogram = low_order_only(SPACES["chosen"], surrogate=Constant())
    answer = tomogram.query("order == 2")
    assert answer.high - answer.low == pytest.approx(2 * 1.959964 * 0.1, abs=1e-5)
    assert answer.inferred == 6
    wider = tomogram.query("order == 2", confidence=0.99)
    assert wider.high - wider.low == pytest.approx(2 * 2.575829 * 0.1, abs=1e-5)
    shared = tomogram.query_engine.bound("order == 2", looks=5)
    assert shared.high - shared.low == pytest.approx(2 * 2.575829 * 0.1, abs=1e-5)


def test_bounds_are_exact_once_all_inputs_were_tried():
    passed, everything = tables(SPACES["chosen"], 3)
    tomogram = tomogram_of(SPACES["chosen"], passed, everything)
    np.testing.assert_array_equal(tomogram.low, tomogram.estimate)
    np.testing.assert_array_equal(tomogram.high, tomogram.estimate)
    answer = tomogram.query("zoom > 0")
    assert answer.low == answer.robustness == answer.high
    stopped = tomogram_of(SPACES["chosen"], passed, everything, stopped_early=True)
    np.testing.assert_allclose(stopped.low, stopped.estimate)
    np.testing.assert_allclose(stopped.high, stopped.estimate)


def test_bounds_for_future_inputs_are_wilsons_and_exact_for_the_clean_test():
    passed, attempted = tables(SPACES["chosen"], 4, tried=0.6)
    for tried in (attempted, np.ones_like(attempted)):
        tomogram = tomogram_of(SPACES["chosen"], passed, tried, population="future")
        for i in range(12):
            wins, trials = int((passed[i] & tried[i]).sum()), int(tried[i].sum())
            expected = stats.binomtest(wins, trials).proportion_ci(method="wilson" if i else "exact")
            found = tomogram.low.reshape(-1)[i], tomogram.high.reshape(-1)[i]
            assert found == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("population", ["data", "future"])
def test_bounds_after_a_stopping_rule_are_confidence_sequences(population):
    passed, attempted = tables(SPACES["chosen"], 5, tried=0.6)
    tomogram = tomogram_of(SPACES["chosen"], passed, attempted, population=population, stopped_early=True)
    wins, trials = (passed & attempted).sum(axis=1), attempted.sum(axis=1)
    low, high = confidence_sequence(wins, trials, INPUTS if population == "data" else None)
    assert tomogram.low.reshape(-1) == pytest.approx(low)
    assert tomogram.high.reshape(-1) == pytest.approx(high)
    usual = tomogram_of(SPACES["chosen"], passed, attempted, population=population)
    decided = usual.query_engine.bound("order >= 0", looks=4)
    low, high = confidence_sequence(wins, trials, INPUTS if population == "data" else None, 1 - 0.05 / 4)
    assert (decided.low, decided.high) == pytest.approx((low.mean(), high.mean()))


def test_bounds_are_narrower_where_a_rule_looked_at_widths_alone():
    passed, attempted = tables(SPACES["chosen"], 5, tried=0.6)
    options = {"stopped_early": True, "ended_by_width": True}
    tomogram = tomogram_of(SPACES["chosen"], passed, attempted, **options)
    low, high = fixed_width((passed & attempted).sum(axis=1), attempted.sum(axis=1), INPUTS)
    assert tomogram.low.reshape(-1) == pytest.approx(low)
    assert tomogram.high.reshape(-1) == pytest.approx(high)
    any_rule = tomogram_of(SPACES["chosen"], passed, attempted, stopped_early=True)
    assert (tomogram.high - tomogram.low < any_rule.high - any_rule.low).all()
    assert tomogram.query_engine.bound("order >= 0").low == any_rule.query_engine.bound("order >= 0").low


LABELS = np.random.default_rng(8).permutation(np.arange(INPUTS) % 4)
CLASSES = ("cat", "dog", "big bird", "emu")


@pytest.mark.parametrize(
    ("inputs", "members"),
    [
        ("label in {1, 3}", {1, 3}),
        ("label == 2", {2}),
        ("label != 0 and label < 3", {1, 2}),
        ("label in {dog, emu}", {1, 3}),
        ('label == "big bird" or label = cat', {0, 2}),
    ],
)
@pytest.mark.parametrize("tried", [1.0, 0.5])
def test_an_answer_for_a_part_of_the_inputs_equals_recomputing_on_them(inputs, members, tried):
    space = SPACES["chosen"]
    passed, attempted = tables(space, 6, tried=tried)
    part = np.isin(LABELS, list(members))
    tomogram = tomogram_of(space, passed, attempted, labels=LABELS, classes=CLASSES)
    alone = tomogram_of(space, passed[:, part], attempted[:, part])
    for expression in ("zoom >= 3", "order <= 1 and zoom == 0"):
        found, expected = tomogram.query(expression, inputs=inputs), alone.query(expression)
        assert found.drop == pytest.approx(expected.drop)
        assert found.robustness == pytest.approx(expected.robustness)
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
        assert (found.tests, found.measured, found.inferred) == (expected.tests, expected.measured, expected.inferred)
        assert [sigma for sigma, *_ in found.worst] == [sigma for sigma, *_ in expected.worst]


def test_by_class_order_and_severity_are_queries():
    space = SPACES["chosen"]
    passed, attempted = tables(space, 7, tried=0.5)
    tomogram = tomogram_of(space, passed, attempted, labels=LABELS, classes=CLASSES)
    assert list(tomogram.by_class()) == list(CLASSES)
    for number, name in enumerate(CLASSES):
        own = np.equal(LABELS, number)
        with np.errstate(invalid="ignore"):
            rates = (passed & attempted)[:, own].sum(axis=1) / attempted[:, own].sum(axis=1)
        assert not np.isnan(rates).any()
        assert tomogram.by_class()[name].robustness == pytest.approx(rates.mean())
        assert tomogram.by_class()[name] == tomogram.query("order >= 0", f"label == {number}")
    assert tomogram.by_order() == {t: tomogram.query(f"order == {t}") for t in range(3)}
    levels = {"zoom": [0, 1, 3, 5], "blur": [0, 1, 4]}
    expected = {name: {s: tomogram.query(f"{name} == {s}") for s in own} for name, own in levels.items()}
    assert tomogram.by_severity() == expected


def test_by_class_speaks_of_measured_tests_alone():
    tomogram = low_order_only(SPACES["chosen"], labels=LABELS)
    answers = tomogram.by_class()
    assert list(answers) == ["0", "1", "2", "3"]
    assert {(a.tests, a.measured, a.inferred) for a in answers.values()} == {(6, 6, 0)}
    assert not any(np.isnan(a.low) for a in answers.values())


def test_numbers_to_be_met_are_no_classes():
    assert low_order_only(SPACES["chosen"], labels=np.linspace(0, 1, INPUTS)).by_class() == {}
    assert low_order_only(SPACES["chosen"], labels=np.ones((INPUTS, 3), np.uint8)).by_class() == {}
    assert low_order_only(SPACES["chosen"]).by_class() == {}


def large(axes: int = 15) -> Tomogram:
    """Six levels to the power of 15; each axis that is on costs a twentieth."""
    space = Space({f"a{i:02}": KEEP for i in range(axes)})
    outcomes = Outcomes(100)
    for i in space.ids_up_to(1).tolist():
        order = space.order(space.configuration(i))
        outcomes.record(i, np.arange(100), np.arange(100) < 100 - 5 * order)
    return Tomogram(space, outcomes, visiting_order(100, 0))


def test_a_space_too_large_to_list_has_predictions_but_no_arrays():
    tomogram = large()
    assert tomogram.space.size == 6**15
    sigmas = [(0,) * 15, (0,) * 14 + (3,), (1,) * 15]
    estimate, low, high = tomogram.predict(sigmas)
    assert estimate[:2].tolist() == low[:2].tolist() == high[:2].tolist() == [1.0, 0.95]
    assert 0 < estimate[2] <= 1
    assert np.isnan(low[2])
    assert np.isnan(high[2])
    assert tomogram.base == 1.0
    assert "470,184,984,576 tests" in repr(tomogram)
    for ask in (
        lambda: tomogram.estimate,
        lambda: tomogram.trials,
        lambda: tomogram.estimator.rests_on_own_trials,
        lambda: tomogram.query_engine.select("a00 > 2"),
    ):
        with pytest.raises(InputError, match=r"an array over 470,184,984,576 tests.*predict\(.*query\("):
            ask()


@pytest.mark.parametrize(
    ("expression", "inputs", "words"),
    [
        ("zoom == 2", None, r'query: "zoom == 2" selects no test \(severities are zoom: 0, 1, 3, 5; blur: 0, 1, 4\)'),
        ("zoom > 5", None, "selects no test"),
        ("zom > 5", None, "did you mean 'zoom'"),
        ("blur == hgh", None, "did you mean 'high'"),
        ("label == 3", None, "unknown name 'label'"),
        ("zoom >", None, "unexpected end"),
        ("zoom > 2", "label == 9", r'inputs: "label == 9" selects no input \(labels are 0, 1, 2, 3\)'),
        ("zoom > 2", "label in {3, 99}", r"inputs: there is no label 99 \(labels are 0, 1, 2, 3\)"),
        ("zoom > 2", "label != 4", r"inputs: there is no label 4 \(labels are 0, 1, 2, 3\)"),
        ("zoom > 2", "label == cow", "inputs: .*unknown name 'cow'"),
        ("zoom > 2", "zoom == 1", "inputs: .*unknown name 'zoom'"),
        ("zoom > 2", "label", "inputs: .*not a condition"),
    ],
)
def test_mistakes_are_one_line(expression, inputs, words):
    tomogram = low_order_only(SPACES["chosen"], labels=LABELS, classes=CLASSES)
    for ask in (tomogram.query, tomogram.query_engine.bound):
        with pytest.raises(InputError, match=words) as caught:
            ask(expression, inputs)
        assert "\n" not in str(caught.value)


def test_inputs_cannot_be_chosen_by_labels_that_do_not_exist():
    for labels in (None, np.ones((INPUTS, 3), np.uint8)):
        with pytest.raises(InputError, match="no labels to choose inputs by"):
            low_order_only(SPACES["chosen"], labels=labels).query("zoom > 2", "label == 1")


def test_a_configuration_that_is_not_in_the_space_is_not_predicted():
    with pytest.raises(InputError, match="zoom = 2 is not a severity"):
        low_order_only(SPACES["chosen"]).predict([(0, 0), (2, 1)])


# -- coverage by simulation ---------------------------------------------------------------------------------------

SHIFT = Perturbation("shift", lambda rows, by, rng: rows + by, [0.0, 0.04, 0.12, 0.3])
SHAKE = Perturbation("shake", lambda rows, by, rng: rows + by * rng.normal(1), [0.0, 0.1, 0.4])
ROWS = np.random.default_rng(12).random((300, 1))


def decide(rows):
    return (rows[:, 0] > 0.5).astype(int)


@pytest.fixture(scope="module")
def truths():
    """The rates on all inputs: what the intervals are for. Draws belong to (seed, input), so each seed has its own."""
    known: dict[int, np.ndarray] = {}

    def truth(seed: int) -> np.ndarray:
        if seed not in known:
            space = simulated_space()
            rates = []
            for sigma in space.configurations():
                composite = {SHIFT: sigma[0], SHAKE: sigma[1]}
                rates.append((space.id(sigma), (decide(ta.apply(composite, ROWS, seed)) == decide(ROWS)).mean()))
            known[seed] = np.array([rate for _, rate in sorted(rates)]).reshape(space.shape)
        return known[seed]

    return truth


def simulated_space() -> Space:
    return Space({"shift": SHIFT, "shake": SHAKE})


@pytest.mark.parametrize("seeds", [20, pytest.param(300, marks=pytest.mark.simulation)])
@pytest.mark.parametrize(
    ("options", "promised"),
    [
        ({"budget": 12 * 60}, 0.95),
        ({"stopping": ta.stopping.Interval(target=0.12, batch=60)}, 0.95),
        ({"stopping": ta.stopping.Window(batch=60, delta=0.05, window=2)}, 0.95),
    ],
)
def test_intervals_cover_the_rate_on_the_data(options, promised, truths, seeds):
    inside, answered, shorter = [], 0, 0
    for seed in range(seeds):
        tomogram = ta.scan(decide, (ROWS, decide(ROWS)), simulated_space(), strategy="full", seed=seed, **options)
        truth = truths(seed)
        open_tests = tomogram.trials < len(ROWS)
        shorter += int(open_tests.sum())
        # Tests without a doubt (rates of 1) would only flatter the coverage.
        counted = open_tests & (truth < 1)
        inside.append(((tomogram.low <= truth + 1e-9) & (truth <= tomogram.high + 1e-9))[counted])
        answer = tomogram.query("order >= 0")
        answered += answer.low - 1e-9 <= truth.mean() <= answer.high + 1e-9
    assert shorter > seeds  # the rule or the budget did end tests
    outcomes = np.concatenate(inside)
    # Tests of a run share inputs, so the number of independent looks is at least the number of runs.
    tolerance = 2 * np.sqrt(promised * (1 - promised) / seeds)
    assert outcomes.mean() >= promised - min(0.02, tolerance)
    assert answered / seeds >= promised - tolerance


# -- surrogates that pool -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pooled():
    """A few inputs on every test of a smooth surface, and its true rates."""
    from testifai.strategies.balanced import Balanced
    from testifai.strategies.base import Progress

    keep = ta.Perturbation("keep", lambda batch, parameter, rng: batch, range(4))
    space, inputs = ta.Space({"a": keep, "b": keep}), 600
    strength = np.random.default_rng(0).normal(2.0, 1.0, inputs)
    passed = strength > 0.6 * space.matrix(np.arange(16)).sum(axis=1)[:, None]
    outcomes = Outcomes(inputs)
    work = Balanced().propose(Progress(space, outcomes, budget=16 * 60))
    for test, places in zip(work.configurations.tolist(), work.places, strict=True):
        outcomes.record(test, places, passed[test, places])
    labels = np.arange(inputs) % 2
    return ta.Tomogram(
        space, outcomes, np.arange(inputs), labels=labels, settings=EstimatorSettings(surrogate="process")
    ), passed


def test_a_pooling_surrogate_estimates_every_test(pooled):
    tomogram, passed = pooled
    rates = passed.mean(axis=1)
    own = tomogram.passes.ravel() / tomogram.trials.ravel()
    assert np.abs(tomogram.estimate.ravel() - rates).mean() < np.abs(own - rates).mean()
    assert (tomogram.low.ravel() <= rates).mean() > 0.85
    assert (tomogram.high.ravel() >= rates).mean() > 0.85
    assert tomogram.base == tomogram.estimate[0, 0]
    assert np.flatnonzero(tomogram.estimator.rests_on_own_trials).tolist() == [0]


def test_its_answers_stand_beside_what_the_trials_say_alone(pooled):
    tomogram, passed = pooled
    answer = tomogram.query("a >= 2")
    truth = passed.reshape(4, 4, -1)[2:].mean()
    assert (answer.measured, answer.inferred) == (0, 8)
    assert answer.low <= truth <= answer.high
    assert answer.high - answer.low < float((tomogram.high - tomogram.low)[2:].mean())
    estimate, low, high = answer.model_free
    assert low <= truth <= high
    assert estimate == pytest.approx((tomogram.passes / tomogram.trials)[2:].mean())
    assert not answer.disagrees
    assert set(answer.as_dict()["model_free"]) == {"robustness", "low", "high"}


class Sure:
    """A surrogate that pools, is sure, and is wrong."""

    pools = True

    def fit(self, features, passes, trials):
        pass

    def predict(self, features):
        return np.full(len(features), 0.95), np.full(len(features), 1e-6)


def test_trials_that_contradict_the_surrogate_are_the_answer(pooled):
    from dataclasses import replace

    tomogram, passed = pooled
    sure = replace(tomogram, settings=replace(tomogram.settings, surrogate=Sure()))
    answer = sure.query("a >= 2")
    assert answer.disagrees
    assert answer.modelled[0] == pytest.approx(0.95)
    assert (answer.robustness, answer.low, answer.high) == answer.model_free
    assert answer.low <= passed.reshape(4, 4, -1)[2:].mean() <= answer.high
    assert answer.drop == pytest.approx(answer.robustness - sure.base)
    assert answer.as_dict()["modelled"]["robustness"] == pytest.approx(0.95)


def test_in_a_large_space_a_part_is_fitted_by_itself(pooled, monkeypatch):
    from dataclasses import replace

    from testifai.surrogates.fitting import Evidence
    from testifai.tomogram import estimator

    monkeypatch.setattr(estimator, "DEVIATION_TESTS", 15)
    monkeypatch.delattr(Evidence, "deviate")
    answer = replace(pooled[0]).query("a >= 2", inputs="label == 0")
    assert answer.low < answer.robustness < answer.high


def test_a_class_with_its_own_surface_is_fitted_as_one():
    """Simulated: a tenth of the inputs break down along an axis that does nothing to the others."""
    from dataclasses import replace

    from replay import Grid, replay

    from testifai.support.bits import pack

    first, second = np.indices((4, 4)).reshape(2, -1)
    rates = 0.95 * np.exp(-0.1 * first**1.5)
    odd = rates * (0.05 + 0.95 / (1 + np.exp(3 * (second - 1.7))))
    covered = []
    for seed in range(10):
        random = np.random.default_rng(seed)
        labels = random.permutation(np.arange(800) % 10)
        luck = np.sqrt(0.5) * (random.normal(size=800) + random.normal(size=(16, 800)))
        passed = luck < stats.norm.ppf(np.where(labels == 0, odd[:, None], rates[:, None]))
        grid = Grid(("a", "b"), 800, np.packbits(passed, axis=-1).reshape(4, 4, -1))
        tomogram = replace(replay(grid, "adaptive", budget=1_500, seed=seed), labels=labels)
        view = tomogram.estimator.rates(np.arange(tomogram.space.size), pack((labels == 0)[tomogram.order]))
        truth = passed[:, labels == 0].mean(axis=1)
        covered.append(np.mean((view.low <= truth) & (truth <= view.high)))
    assert np.mean(covered) > 0.88  # with the surface's own smoothness alone, 0.72 in the same runs


def test_questions_at_once_and_decisions_are_wider(pooled):
    tomogram, _ = pooled
    alone = tomogram.query("a >= 2")
    among_ten = tomogram.queries(["a >= 2", *["b >= 1"] * 9])[0]
    decided = tomogram.query_engine.bound("a >= 2")
    for wider in (among_ten, decided):
        assert wider.low < alone.low < alone.high < wider.high


def test_parts_of_the_inputs_and_classes(pooled):
    tomogram, passed = pooled
    even = tomogram.query("a >= 2", inputs="label == 0")
    assert even.low <= passed.reshape(4, 4, -1)[2:, :, ::2].mean() <= even.high
    classes = tomogram.by_class()
    assert set(classes) == {"0", "1"}
    assert classes["0"].low <= passed[:, ::2].mean() <= classes["0"].high


def test_new_inputs_are_less_certain_than_those_at_hand(pooled):
    tomogram, _ = pooled
    future = ta.Tomogram(
        tomogram.space,
        tomogram.outcomes,
        tomogram.order,
        settings=EstimatorSettings(population="future", surrogate="process"),
    )
    assert (future.high - future.low).mean() > (tomogram.high - tomogram.low).mean()


def test_a_clean_test_with_its_share_speaks_for_itself(pooled):
    tomogram, _ = pooled
    clean = tomogram.estimator.clean
    passes, trials = tomogram.passes[0, 0], tomogram.trials[0, 0]
    assert clean.alone
    assert (clean.trials, clean.estimate) == (trials, passes / trials)
    assert clean.estimate == tomogram.base == tomogram.estimate[0, 0]
    low, high = hypergeometric(int(passes), int(trials), clean.inputs, (0.025, 0.025))
    assert (clean.low, clean.high) == (low / clean.inputs, high / clean.inputs)
    assert (tomogram.low[0, 0], tomogram.high[0, 0]) == (clean.low, clean.high)
    asked = tomogram.query("order == 0")
    assert (asked.robustness, asked.low, asked.high, asked.drop) == (clean.estimate, clean.low, clean.high, 0)
    assert (asked.measured, asked.inferred, asked.model_free) == (1, 0, None)
    part = tomogram.query("order == 0", inputs="label in {1}")
    assert (part.measured, part.drop) == (1, 0)
    assert part.low <= part.robustness <= part.high


def test_a_region_with_the_clean_test_in_it_holds_its_own_estimate(pooled):
    tomogram, passed = pooled
    answer = tomogram.query("a == 0")
    assert (answer.tests, answer.measured) == (4, 1)
    assert answer.low <= answer.robustness <= answer.high
    assert answer.robustness == pytest.approx(tomogram.estimate[0].mean())
    assert answer.low <= passed.reshape(4, 4, -1)[0].mean() <= answer.high


def test_a_clean_test_with_few_trials_is_estimated_like_any_other(pooled):
    tomogram, _ = pooled
    few = Outcomes(tomogram.outcomes.inputs)
    for test in tomogram.outcomes:
        places = np.flatnonzero(tomogram.outcomes.attempted(test, np.arange(few.inputs)))[:30]
        few.record(test, places, tomogram.outcomes.passed(test, places))
    clean = replace(tomogram, outcomes=few).estimator.clean
    assert not clean.alone
    assert clean.trials == 30
