"""A session end to end: in memory, in a file, continued, refused."""

import subprocess
import sys

import cv2
import numpy as np
import pytest

import testifai as ta
from testifai.data.sample import demo_data, demo_model_path
from testifai.errors import InputError
from testifai.identity.run_identity import environment
from testifai.perturb import Perturbation
from testifai.runs.store import Store
from testifai.session.assembly import session_of
from testifai.space import Space
from testifai.support.progress import Step

SHIFT = Perturbation("shift", lambda rows, by, rng: rows + by, [0.0, 0.1, 0.25, 0.4])
SHAKE = Perturbation("shake", lambda rows, by, rng: rows + by * rng.normal(2), [0.0, 0.1, 0.3])
ROWS = np.random.default_rng(1).random((150, 2))


def decide(rows):
    return (rows[:, 0] + rows[:, 1] > 1).astype(int)


def other_model(rows):
    return (rows[:, 0] > 0.5).astype(int)


DATA = (ROWS, decide(ROWS))


def space() -> Space:
    return Space({"shift": SHIFT, "shake": (SHAKE, {"weak": 1, "strong": 2})})


def assert_same(one: ta.Tomogram, other: ta.Tomogram) -> None:
    assert one.space == other.space
    assert set(one.outcomes) == set(other.outcomes)
    for i in one.outcomes:
        for mine, theirs in zip(one.outcomes.bits(i), other.outcomes.bits(i), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    for name in ("estimate", "low", "high", "passes", "trials", "order", "labels"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.classes, one.settings) == (other.classes, other.settings)
    assert (one.base, one.inferences) == (other.base, other.inferences)
    assert one.by_class() == other.by_class()
    assert one.outcomes.kept_names() == other.outcomes.kept_names()
    for name in one.outcomes.kept_names():
        for i in one.outcomes:
            np.testing.assert_array_equal(one.outcomes.kept(i, name), other.outcomes.kept(i, name))


CASES = [
    {},
    {"strategy": "full", "keep": ("value", "predicted")},
    {"strategy": {"use": "ordered", "max_order": 1}},
    {"strategy": "random", "seed": 5},
    {"strategy": "full", "budget": 500},
    {"strategy": "full", "stopping": ta.stopping.Window(batch=20, delta=0.06, window=2)},
    {"stopping": "interval", "target": 0.2, "population": "future"},
    {"oracle": "consistency", "stopping": ta.stopping.Window(batch=20, delta=0.06, window=2)},
    {"oracle": {"use": "tolerance", "eps": 0}, "budget": 300},
]


@pytest.mark.parametrize("options", CASES)
def test_in_memory_in_a_file_and_reopened_are_the_same(options, tmp_path):
    kept = ta.scan(decide, DATA, space(), **options)
    stored = ta.scan(decide, DATA, space(), store=tmp_path / "run.db", **options)
    reopened = ta.open(tmp_path / "run.db")
    assert_same(kept, stored)
    assert_same(kept, reopened)
    assert reopened.provenance["environment"] == environment()
    again = ta.scan(decide, DATA, space(), store=tmp_path / "run.db", **options)
    assert_same(kept, again)


def test_a_finished_run_asks_the_model_nothing(tmp_path):
    ta.scan(decide, DATA, space(), store=tmp_path / "run.db")
    session = session_of(decide, DATA, space())
    session.subject.model = refuse
    assert session.run(tmp_path / "run.db").inferences == 12 * 150


def refuse(rows):
    raise AssertionError("the model was asked")


def test_rates_are_those_of_the_data():
    tomogram = ta.scan(decide, DATA, space(), strategy="full", seed=3)
    for sigma in space().configurations():
        changed = ta.apply({SHIFT: sigma[0], SHAKE: sigma[1]}, ROWS, seed=3)
        assert tomogram.estimate[space().index(sigma)] == (decide(changed) == DATA[1]).mean()
    assert tomogram.base == 1.0
    assert tomogram.inferences == 12 * 150


def changed_data():
    rows = ROWS.copy()
    rows[7, 1] += 1e-6
    return rows, DATA[1]


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"seed": 1}, "seed"),
        ({"model": other_model}, "model"),
        ({"data": changed_data()}, "data"),
        ({"data": (ROWS, 1 - DATA[1])}, "data"),
        ({"space": Space({"shift": SHIFT, "shake": SHAKE})}, "space"),
        ({"space": Space({"shift": (SHIFT, [0, 1, 3]), "shake": (SHAKE, {"weak": 1, "strong": 2})})}, "space"),
        ({"space": Space({"shake": (SHAKE, {"weak": 1, "strong": 2}), "shift": SHIFT})}, "space"),
        ({"stopping": None}, "stopping"),
        ({"stopping": {"use": "window", "batch": 21, "delta": 0.06}}, "stopping"),
        ({"oracle": "consistency"}, "oracle"),
        ({"strategy": "full"}, "strategy"),
        ({"population": "data"}, "population"),
        ({"surrogate": "none"}, "surrogate"),
        ({"keep": ["predicted"]}, "keep"),
    ],
)
def test_a_changed_run_is_refused_with_a_line_that_says_what_changed(changes, word, tmp_path):
    options = {
        "model": decide,
        "data": DATA,
        "space": space(),
        "strategy": "ordered",
        "stopping": {"use": "window", "batch": 20, "delta": 0.06},
    }
    before = ta.scan(**options, store=tmp_path / "run.db")
    with pytest.raises(InputError, match="belongs to another run") as caught:
        ta.scan(**{**options, **changes}, store=tmp_path / "run.db")
    message = str(caught.value)
    assert "\n" not in message
    assert f"another run: {word}" in message
    assert "run.db" in message
    assert_same(before, ta.open(tmp_path / "run.db"))


def test_budget_batch_size_workers_and_target_may_change(tmp_path):
    path = tmp_path / "run.db"
    small = ta.scan(decide, DATA, space(), strategy="full", budget=12 * 10, batch_size=3, store=path)
    assert small.inferences == 120
    grown = ta.scan(decide, DATA, space(), strategy="full", budget=12 * 40, batch_size=50, workers=2, store=path)
    assert_same(grown, ta.scan(decide, DATA, space(), strategy="full", budget=12 * 40))
    whole = ta.scan(decide, DATA, space(), strategy="full", store=path)
    assert_same(whole, ta.scan(decide, DATA, space(), strategy="full"))
    less = ta.scan(decide, DATA, space(), strategy="full", budget=5, store=path)  # nothing is taken back
    assert less.inferences == whole.inferences
    path = tmp_path / "other.db"
    options = {"stopping": "interval", "strategy": "full"}
    ta.scan(decide, DATA, space(), **options, target=0.3, store=path)
    finer = ta.scan(decide, DATA, space(), **options, target=0.15, store=path)
    assert_same(finer, ta.scan(decide, DATA, space(), **options, target=0.15))


def test_parts_together_are_the_whole(tmp_path):
    whole = ta.scan(decide, DATA, space(), strategy="full")
    for own in (1, 2, 3):
        part = session_of(decide, DATA, space(), strategy="full", part=(own, 3)).run(tmp_path / f"{own}.db")
        assert set(part.trials.reshape(-1).tolist()) == {50}
    ta.merge([tmp_path / f"{own}.db" for own in (1, 2, 3)], tmp_path / "whole.db")
    assert_same(whole, ta.open(tmp_path / "whole.db"))
    assert_same(whole, ta.scan(decide, DATA, space(), strategy="full", store=tmp_path / "whole.db"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seed": -1}, "seed: must be a whole number, at least 0, got -1"),
        ({"seed": 1.5}, "seed"),
        ({"seed": None}, "seed"),
        ({"seed": True}, "seed"),
        ({"seed": 2**63}, "seed"),
        ({"batch_size": 0}, "batch_size: must be a whole number, at least 1, got 0"),
        ({"batch_size": "8"}, "batch_size"),
        ({"workers": 0}, "workers"),
        ({"workers": 1.0}, "workers"),
        ({"budget": 0}, "budget: must be a whole number, at least 2, got 0"),
        ({"budget": 1e5}, "budget"),
        ({"target": 0}, "target: must be a number, above 0 and below 1, got 0"),
        ({"target": 2}, "target"),
        ({"population": "all"}, "population: must be one of data, future, got 'all'"),
        ({"keep": ["values"]}, "keep: must be one of value, predicted, detections, got 'values'"),
        ({"strategy": "orderd"}, "did you mean 'ordered'"),
        ({"surrogate": "forrest"}, "did you mean 'forest'"),
        ({"surrogate": 3}, "surrogate: must be a name or a table with 'use', got 3"),
        ({"stopping": "windw"}, "did you mean 'window'"),
        ({"oracle": "labels"}, "did you mean 'label'"),
        ({"oracle": "tolerance"}, "eps"),
        ({"space": {"shift": SHIFT}}, "space: expected a testifai.Space, got dict"),
        ({"model": 3}, "model: int is not accepted"),
        ({"model": "model.pt"}, "ends in .onnx"),
        ({"data": (ROWS, [1, 2])}, "labels: 2 labels for 150 inputs"),
        ({"data": ROWS}, "oracle label: needs labels"),
        ({"data": (ROWS, DATA[1] - 1)}, "labels: -1 "),
        ({"part": (0, 2)}, "part: expected I/N with I from 1 to N, got 0/2"),
        ({"part": (3, 2)}, "got 3/2"),
        ({"part": (1, 2), "stopping": "window"}, "part: a stopping rule needs all outcomes"),
    ],
)
def test_mistakes_are_one_line(options, words):
    with pytest.raises(InputError) as caught:
        session_of(**{"model": decide, "data": DATA, "space": space(), **options})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_population_decides_what_the_intervals_are_for():
    data, future = (ta.scan(decide, DATA, space(), strategy="full", population=p) for p in ("data", "future"))
    np.testing.assert_array_equal(data.estimate, future.estimate)
    np.testing.assert_array_equal(data.low, data.high)
    assert (future.high - future.low > 0.02).all()


def test_a_scikit_learn_estimator_is_a_model():
    from sklearn.linear_model import LogisticRegression

    words = np.array(["low", "high"])[DATA[1]]
    estimator = LogisticRegression().fit(ROWS, words)
    tomogram = ta.scan(estimator, (ROWS, words), space(), strategy="full", workers=2)
    for sigma in space().configurations():
        changed = ta.apply({SHIFT: sigma[0], SHAKE: sigma[1]}, ROWS)
        assert tomogram.estimate[space().index(sigma)] == (estimator.predict(changed) == words).mean()
    assert tomogram.classes == ("high", "low")
    assert set(tomogram.by_class()) == {"high", "low"}
    assert tomogram.query("order >= 0", "label == high") == tomogram.by_class()["high"]


def test_an_onnx_path_is_a_model():
    data = demo_data()
    digits, labels = data.inputs[:200], data.labels[:200]
    tomogram = ta.scan(demo_model_path(), (digits, labels), Space({"zoom": ("mnist_c.zoom", [0, 3])}))
    model = ta.models.load("onnx", demo_model_path())
    for level, severity in enumerate((0, 3)):
        outputs = model(ta.apply({"mnist_c.zoom": severity}, digits))
        assert tomogram.estimate[level] == (outputs.argmax(axis=1) == labels).mean()
    assert tomogram.base > 0.9


def test_texts_are_data(tmp_path):
    texts = ["good day", "bad luck", "a good one", "so bad", "good", "bad"] * 5
    labels = ["plus" if "good" in text else "minus" for text in texts]
    typo = Perturbation("typo", lambda t, n, rng: [text.replace("oo", "o", n) for text in t], [0, 1])
    tomogram = ta.scan(
        lambda batch: np.array([int("good" in text) for text in batch]), (texts, labels), Space({"typo": typo}),
        store=tmp_path / "run.db",
    )  # fmt: skip
    assert tomogram.estimate.tolist() == [1.0, 0.5]
    assert ta.open(tmp_path / "run.db").query("typo == 1", "label == plus").robustness == 0.0


def test_consistency_needs_no_labels(tmp_path):
    tomogram = ta.scan(decide, ROWS, space(), oracle="consistency", store=tmp_path / "run.db")
    assert tomogram.base == 1.0
    assert tomogram.by_class() == {}
    labelled = ta.scan(decide, DATA, space())  # the labels are what the model says of clean inputs
    np.testing.assert_array_equal(tomogram.estimate, labelled.estimate)
    assert ta.open(tmp_path / "run.db").labels is None


def test_an_own_function_is_an_oracle():
    def never_one(outputs, expected, clean):
        return outputs != 1

    tomogram = ta.scan(decide, DATA, space(), oracle=never_one, strategy="full")
    assert tomogram.base == (decide(ROWS) != 1).mean()


def test_progress_tells_how_far_a_session_is():
    steps: list[Step] = []
    ta.scan(decide, DATA, space(), strategy="full", progress=steps.append, batch_size=25)
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    assert steps[-1] == Step(1800, 1800, 12)


def test_a_bar_leaves_standard_output_alone(capsys):
    ta.scan(decide, DATA, space(), progress=True)
    assert capsys.readouterr().out == ""


def test_an_impossible_plan_makes_no_file(tmp_path):
    large = Space({f"a{i}": SHIFT for i in range(15)})
    with pytest.raises(InputError, match="full would run"):
        ta.scan(decide, DATA, large, strategy="full", store=tmp_path / "run.db")
    assert list(tmp_path.iterdir()) == []


def test_a_large_space_is_scanned_and_predicted(tmp_path):
    large = Space({f"a{i:02}": (SHAKE, [0, 1, 2]) for i in range(15)})
    tomogram = ta.scan(decide, (ROWS[:20], DATA[1][:20]), large, strategy={"use": "ordered", "max_order": 1},
                       store=tmp_path / "run.db")  # fmt: skip
    reopened = ta.open(tmp_path / "run.db")
    sigmas = [(0,) * 15, (2,) * 15, (1,) + (0,) * 14]
    np.testing.assert_array_equal(tomogram.predict(sigmas), reopened.predict(sigmas))


def test_a_file_without_a_run_is_said_to_be_one(tmp_path):
    Store.create_or_open(tmp_path / "run.db").close()
    with pytest.raises(InputError, match="holds no run yet"):
        ta.open(tmp_path / "run.db")
    with pytest.raises(InputError, match="does not exist"):
        ta.open(tmp_path / "nothing.db")


def test_a_target_may_come_and_go_and_its_stops_are_remembered(tmp_path):
    import testifai as ta

    rows = np.random.default_rng(0).normal(size=(600, 2))
    jitter = ta.Perturbation("jitter", lambda x, s, rng: x + s * rng.normal(x.shape[1:]), [0.0, 0.5, 1.0])

    def model(x):
        return (x.sum(axis=1) > 0).astype(int)

    def scan(**options):
        space = ta.Space({"jitter": jitter})
        return ta.scan(model, (rows, model(rows)), space, strategy="full", store=tmp_path / "run.db", **options)

    first = scan(target=0.1)
    assert 0 < first.inferences < 3 * 600
    closer = scan(target=0.05)
    assert first.inferences < closer.inferences < 3 * 600
    assert ((closer.high - closer.low) / 2 <= 0.05).all()
    reopened = ta.open(tmp_path / "run.db")
    np.testing.assert_array_equal(reopened.low, closer.low)
    assert reopened.settings.stopped_early
    assert reopened.settings.ended_by_width
    assert scan().inferences == 3 * 600


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "adaptive"),
        ({"surrogate": "process"}, "adaptive"),
        ({"stopping": "none"}, "adaptive"),
        ({"surrogate": "forest"}, "ordered"),
        ({"stopping": {"use": "window"}}, "ordered"),
        ({"part": (1, 2)}, "ordered"),
        ({"strategy": "full"}, "full"),
    ],
)
def test_adaptive_is_the_default_where_it_can_do_what_is_asked(options, name):
    rows = np.zeros((4, 2))
    made = session_of(lambda batch: np.zeros(len(batch), int), (rows, np.zeros(4, int)), Space({"a": SHIFT}), **options)
    assert made.strategy.name == name


def test_a_rule_for_single_tests_is_refused_by_strategies_that_share_out_the_inputs():
    rows = np.zeros((4, 2))
    with pytest.raises(InputError, match=r"^stopping: strategy 'adaptive' decides itself"):
        session_of(decide, (rows, np.zeros(4, int)), Space({"a": SHIFT}), strategy="adaptive", stopping="window")


def test_adaptive_is_the_default_where_the_order_of_application_counts():
    space = Space({"a": SHIFT, "b": SHIFT}, order_sensitive=True)
    made = session_of(lambda batch: np.zeros(len(batch), int), (np.zeros((4, 2)), np.zeros(4, int)), space)
    assert made.strategy.name == "adaptive"


@pytest.mark.parametrize("surrogate", ["pairwise", "independence", "bayes_net"])
def test_surrogates_of_plain_spaces_are_refused_before_anything_is_spent(surrogate):
    calls = []
    ordered = Space({"a": SHIFT, "b": SHIFT}, order_sensitive=True)
    with pytest.raises(InputError, match="order of application counts; use surrogate = 'process', or"):
        ta.scan(lambda batch: calls.append(batch), DATA, ordered, budget=100, surrogate=surrogate)
    assert calls == []


@pytest.mark.parametrize("strategy", ["adaptive", "balanced"])
def test_strategies_that_choose_inputs_for_each_test_do_not_run_in_parts(strategy):
    with pytest.raises(InputError, match=f"part: strategy '{strategy}' gives every test inputs of its own"):
        session_of(decide, DATA, space(), strategy=strategy, budget=100, part=(1, 2))


def test_a_reader_in_another_process_leaves_the_log_of_a_run_over_files(tmp_path):
    (tmp_path / "images").mkdir()
    for number in range(6):
        cv2.imwrite(str(tmp_path / "images" / f"{number}.png"), np.full((8, 8), 40 * number, np.uint8))
    seen = []

    def model(batch):
        if len(seen) == 1:
            look = "import sys, testifai as ta; ta.open(sys.argv[1])"
            subprocess.run([sys.executable, "-c", look, str(tmp_path / "run.db")], check=True)
        seen.append((tmp_path / "run.db-wal").exists())
        return (batch.reshape(len(batch), -1).mean(axis=1) > 100).astype(int)

    fade = Perturbation("fade", lambda x, by, rng: x // by, [1, 2, 4])
    options = {"strategy": "full", "surrogate": "none", "oracle": "consistency", "workers": 1, "batch_size": 3}
    made = ta.scan(model, tmp_path / "images", Space({"fade": fade}), store=tmp_path / "run.db", **options)
    assert len(seen) > 2
    assert all(seen)
    assert ta.open(tmp_path / "run.db").inferences == made.inferences


def test_a_run_file_says_when_there_was_nothing_left_to_do(tmp_path):
    def interrupted(_):
        raise KeyboardInterrupt

    store = tmp_path / "run.db"
    with pytest.raises(KeyboardInterrupt):
        ta.scan(decide, DATA, space(), store=store, strategy="full", progress=interrupted)
    assert ta.open(store).provenance["finished"] is None
    done = ta.scan(decide, DATA, space(), store=store, strategy="full")
    assert ta.open(store).provenance["finished"] == done.outcomes.total()
