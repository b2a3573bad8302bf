"""Observers of a run, each without a run, and the warnings of a run."""

import logging

import numpy as np
import pytest

import testifai as ta
from testifai.engine.base import BatchOutcome, References
from testifai.identity.run_identity import environment
from testifai.runs import keys
from testifai.runs.outcomes import Outcomes
from testifai.runs.store import Store
from testifai.session.assembly import session_of
from testifai.session.dry_run import estimate
from testifai.session.observers import (
    CleanAccuracy,
    Environments,
    Repeatability,
    RunFile,
    check_repeatability,
    class_index_mismatch,
    near_chance,
    notes,
)

LABELS = np.arange(600) % 10
ROWS = LABELS[:, None].astype(float)
SPACE = ta.Space({"shift": ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1])})


def guesses(x):
    return np.zeros(len(x), int)


def knows(x):
    return np.round(x[:, 0]).astype(int)


@pytest.mark.parametrize(("passes", "trials", "warned"), [(100, 1000, True), (119, 1000, True), (121, 1000, False)])
def test_the_lower_end_of_the_exact_interval_decides(passes, trials, warned):
    assert (near_chance(passes, trials, LABELS, 10) is not None) == warned


def test_what_cannot_be_told_is_not_said():
    assert near_chance(0, 49, LABELS, 10) is None
    assert near_chance(0, 500, None, 10) is None
    assert near_chance(0, 500, LABELS, None) is None
    assert near_chance(0, 500, np.zeros((600, 3), int), 3) is None


def test_a_dry_run_warns_too():
    fed_wrongly = estimate(session_of(guesses, (ROWS, LABELS), SPACE))
    assert fed_wrongly.clean_inputs >= 500
    assert fed_wrongly.near_chance.startswith("clean accuracy is 0.1")
    assert estimate(session_of(knows, (ROWS, LABELS), SPACE)).near_chance is None


def test_a_run_warns_once_and_again_when_it_is_continued(tmp_path, caplog):
    for _ in range(2):
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="testifai"):
            ta.scan(guesses, (ROWS, LABELS), SPACE, store=tmp_path / "run.db")
        assert [record.message.startswith("clean accuracy is 0.1") for record in caplog.records].count(True) == 1


# -- class indices ----------------------------------------------------------------------------------------------------


def answers(generator, truth, classes, accuracy):
    """A model that is right so often, and else answers anything."""
    return np.where(generator.random(len(truth)) < accuracy, truth, generator.integers(0, classes, len(truth)))


@pytest.mark.parametrize(("classes", "accuracy"), [(2, 0.0), (10, 0.3), (10, 0.95), (43, 0.6)])
def test_a_right_numbering_is_hardly_ever_doubted(classes, accuracy):
    found = 0
    for seed in range(60):
        generator = np.random.default_rng(seed)
        truth = generator.integers(0, classes, 500)
        found += class_index_mismatch(truth, answers(generator, truth, classes, accuracy), None, classes) is not None
    assert found <= 1


@pytest.mark.parametrize("classes", [3, 43])
def test_a_wrong_one_is_found_and_said(classes):
    names = [f"class {number}" for number in range(classes)]
    for seed in range(5):
        generator = np.random.default_rng(seed)
        truth = generator.integers(0, classes, 500)
        shuffled = generator.permutation(classes)
        shuffled = np.roll(shuffled, 1) if (shuffled == np.arange(classes)).all() else shuffled
        found = class_index_mismatch(truth, shuffled[answers(generator, truth, classes, 0.9)], names, classes)
        assert found is not None
        assert found.otherwise > 0.75
        if classes <= 10:
            outputs = eval(found.line.removeprefix("classes = "))
            assert outputs == [names[int(np.flatnonzero(shuffled == output)[0])] for output in range(classes)]


def test_too_few_inputs_say_nothing():
    truth = np.arange(20) % 10
    assert class_index_mismatch(truth, (truth + 1) % 10, None, 10) is None


def test_a_model_with_more_outputs_gets_a_table():
    truth = np.arange(200) % 2
    found = class_index_mismatch(truth, np.array([7, 3])[truth], ["cat", "dog"], 10)
    assert found is not None
    assert found.line == 'classes = { "cat" = 7, "dog" = 3 }'


# -- observers without a run ------------------------------------------------------------------------------------------


def clean_batch(passed):
    return BatchOutcome(0, np.arange(len(passed)), np.asarray(passed), {})


def test_clean_accuracy_reports_class_indices_that_do_not_match(tmp_path, caplog):
    subject = session_of(lambda x: (knows(x) + 3) % 10, (ROWS, LABELS), SPACE).subject
    observer, outcomes = CleanAccuracy(subject, check_indices=True), Outcomes(600)
    batch = clean_batch(np.zeros(40, bool))
    outcomes.record(0, batch.places, batch.passed)
    observer.recorded(batch, outcomes, None)
    assert observer.found is None  # more clean inputs may come
    with Store.create_or_open(tmp_path / "run.db") as store:
        observer.finish(outcomes, store)
        assert "but 1.000 with the classes numbered otherwise" in store.get(keys.CLEAN_WARNING)
    assert len(caplog.records) == 1
    assert notes(observer.provenance()) == [observer.found]
    unchecked = CleanAccuracy(subject, check_indices=False)
    assert unchecked.warning(outcomes) is None  # too few to compare with chance


def test_repeatability_shows_inputs_twice_once_per_run(tmp_path, caplog):
    answers = iter(range(100))
    subject = session_of(lambda x: np.full(len(x), next(answers) % 10), (ROWS, LABELS), SPACE).subject
    observer = Repeatability(subject, 4)
    assert observer.reserve == 12
    with Store.create_or_open(tmp_path / "run.db") as store:
        for _ in range(2):
            observer.before_work(store)
        assert store.get(keys.ASKED_TWICE) == {
            "inputs": 4,
            "differ": 4,
            "decisions": 4,
            "batch_differ": 0,
            "batch_flips": 0,
        }
        resumed = Repeatability(subject, 4)
        resumed.attach(store, resumed=True)
        resumed.before_work(store)
    assert next(answers) == 4  # one batch, two halves, the batch again
    assert ["not deterministic" in record.message for record in caplog.records] == [True]
    assert check_repeatability(session_of(knows, (ROWS, LABELS), SPACE).subject, 4)["differ"] == 0


def test_environments_are_noted_in_the_order_in_which_they_contribute(tmp_path, caplog):
    other = {**environment(), "numpy": "0.1"}
    batch = clean_batch([True])
    with Store.create_or_open(tmp_path / "run.db") as store:
        first = Environments()
        first.attach(store, resumed=False)
        store.put(**{keys.ENVIRONMENT: other})
        store.touch(0, batch.places)
        outcomes = Outcomes(600)
        outcomes.record(0, batch.places, batch.passed)
        store.put(**{keys.INPUTS: 600})
        store.save(outcomes)
        second = Environments()
        second.attach(store, resumed=True)
        assert second.seen == [other]  # opening a run contributes nothing
        second.measured(batch, store)
        assert store.get(keys.ENVIRONMENTS) == second.seen == [other, environment()]
    assert "resumed with different library versions" in caplog.text
    assert "made with different versions: numpy 0.1 and" in notes(second.provenance())[0]


def test_a_run_file_is_written_after_a_moment_and_on_request(tmp_path, monkeypatch):
    subject, outcomes, batch = session_of(knows, (ROWS, LABELS), SPACE).subject, Outcomes(600), clean_batch([True])
    observer = RunFile(subject, References(600))
    outcomes.record(0, batch.places, batch.passed)
    with Store.create_or_open(tmp_path / "run.db") as store:
        observer.attach(store, resumed=False)
        observer.measured(batch, store)
        observer.recorded(batch, outcomes, store)
        assert (store.get(keys.INPUTS), store.is_empty()) == (600, True)
        observer.close(outcomes, store)
        assert (store.load(600).total(), store.array_names("")) == (1, ["labels"])  # arrays: no hashes of inputs
        outcomes.record(0, np.array([1]), np.array([False]))
        monkeypatch.setattr("testifai.session.observers.SAVE_EVERY", 0)
        observer.measured(BatchOutcome(0, np.array([1]), np.array([False]), {}), store)
        observer.recorded(batch, outcomes, store)
        assert store.load(600).total() == 2
