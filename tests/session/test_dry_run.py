"""What a dry run forecasts, and that it changes nothing."""

import json

import numpy as np
import pytest

from testifai import data
from testifai.data.sample import demo_data, demo_model_path
from testifai.perturb import Perturbation
from testifai.session import dry_run
from testifai.session.assembly import session_of
from testifai.session.dry_run import Room, estimate
from testifai.session.session import Session
from testifai.space import Space

SHIFT = Perturbation("shift", lambda rows, by, rng: rows + by, [0.0, 0.1, 0.25, 0.4, 0.5, 0.6])
ROWS = np.random.default_rng(1).random((3000, 2))


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """Spend less on timing and planning than for people who wait for a real run."""
    monkeypatch.setattr(dry_run, "SECONDS", 0.2)
    monkeypatch.setattr(dry_run, "PLAYED", 0.5)


def decide(rows):
    return (rows[:, 0] + rows[:, 1] > 1).astype(int)


def session(**options) -> Session:
    space = Space({"a": SHIFT, "b": SHIFT, "c": SHIFT})
    return session_of(decide, (ROWS, decide(ROWS)), space, **options)


@pytest.mark.parametrize(
    ("options", "run_tests", "inferences"),
    [
        ({"strategy": "full"}, 216, 216 * 3000),
        ({}, 216, 216 * 3000),
        ({"strategy": "ordered"}, 91, 91 * 3000),
        ({"budget": 5000}, 216, 5000),
        ({"budget": 40}, 3, 40),  # half of it for the clean test, ten inputs for each of two others
        ({"stopping": "window"}, 91, 91 * 3000),
        ({"strategy": "ordered", "oracle": "consistency"}, 91, 91 * 3000),
    ],
)
def test_counts_are_those_of_the_run(options, run_tests, inferences):
    made = session(**options)
    found = estimate(made)
    assert (found.tests, found.run_tests, found.inputs) == (216, run_tests, 3000)
    assert found.inferences == inferences
    assert found.clean_accuracy == 1.0
    assert found.seconds > 0
    assert found.workers == 1
    assert made.outcomes.total() == 0, "a dry run keeps nothing"


def test_no_run_takes_more_inferences_or_a_larger_file_than_announced(tmp_path):
    for name, options in {"full": {"strategy": "full"}, "stopped": {"stopping": "interval", "target": 0.2}}.items():
        announced = estimate(session(**options))
        tomogram = session(**options).run(tmp_path / f"{name}.db")
        assert tomogram.inferences <= announced.inferences
        assert (tmp_path / f"{name}.db").stat().st_size <= announced.file_bytes
    assert announced.file_bytes < 0.5e6 * announced.inferences / 1e6 + 100_000


def test_a_dry_run_does_not_change_what_follows():
    kept = session(strategy="full", budget=2000, oracle="consistency")
    estimate(kept)
    after = kept.run()
    fresh = session(strategy="full", budget=2000, oracle="consistency").run()
    np.testing.assert_array_equal(after.passes, fresh.passes)
    np.testing.assert_array_equal(after.trials, fresh.trials)


def test_the_time_follows_the_model():
    """A model that takes 5 ms more per batch of 100 makes the estimate 50 µs per inference longer."""
    import time

    def slow(rows):
        time.sleep(0.005)
        return decide(rows)

    data = (ROWS[:400], decide(ROWS[:400]))
    space = Space({"a": (SHIFT, [0, 1])})
    found = estimate(session_of(slow, data, space, batch_size=100))
    assert 2 * 400 * 50e-6 <= found.seconds < 10 * 2 * 400 * 50e-6
    assert found.batch_size == 100


@pytest.mark.parametrize("keep", [(), ("value", "predicted")])
def test_the_file_is_no_larger_than_said_and_not_a_tenth_of_it(tmp_path, keep):
    space = Space({"zoom": "mnist_c.zoom", "brightness": "mnist_c.brightness"})
    session = session_of(str(demo_model_path()), demo_data(), space, strategy="full", keep=keep)
    said = estimate(session).file_bytes
    session_of(str(demo_model_path()), demo_data(), space, strategy="full", keep=keep).run(tmp_path / "run.db")
    assert said / 10 < (tmp_path / "run.db").stat().st_size <= said


def test_the_file_is_no_larger_than_said_where_values_fill_half_a_page(tmp_path):
    for inputs in (200, 250, 600):
        data = (ROWS[:inputs], decide(ROWS[:inputs]))
        sessions = [
            session_of(
                lambda rows: np.stack([1 - rows.mean(1), rows.mean(1)], 1), data, Space({"a": SHIFT, "b": SHIFT})
            )
            for _ in range(2)
        ]
        said = estimate(sessions[0]).file_bytes
        sessions[1].run(tmp_path / f"{inputs}.db")
        assert said / 10 < (tmp_path / f"{inputs}.db").stat().st_size <= said


def test_texts_without_a_place_are_counted():
    texts = ["What is it?", "I don't know what is wrong.", "Hello", ""] * 5
    pairs = [(text, "Hello") for text in texts]
    for inputs in (texts, data.from_arrays(pairs, side="first"), data.from_arrays(pairs)):
        own = Perturbation("own", lambda batch, by, rng: [text.upper() for text in batch], [0, 1])
        space = Space({"short": ("text.contraction", [0, 2]), "typo": "text.typo", "own": own})
        found = estimate(session_of(lambda batch: np.zeros(len(batch)), inputs, space, oracle="consistency"))
        assert set(found.room) == {"short", "typo"}
        both = isinstance(inputs, data.Data) and inputs.side == "both"
        assert found.room["short"] == Room(20, 2, 20 if both else 15, 10)
        assert found.room["typo"].untouched == (0 if both else 5)
        assert found.as_dict()["room"]["short"]["untouched"] == 10
    less = "of 20 inputs, 10 have no place for an edit, 10 have some, but fewer than 2"
    assert found.notes()[0] == f"short: {less}"


def test_other_inputs_have_no_places_and_findings_are_plain_data():
    found = estimate(session(strategy="full", population="data"))
    assert found.room == {}
    assert found.notes() == []
    assert json.loads(json.dumps(found.as_dict()))["run_tests"] == 216
    assert (found.foreseen, found.fitting) == (216 * 3000, 0.0)  # a run that predicts nothing needs no fits


def test_inferences_until_a_target_holds_are_forecast_roughly():
    """One run in six may need several times more; `benchmarks/foretold.py` holds forecasts against real models."""
    noise = Perturbation(
        "noise", lambda rows, by, rng: rows + by * rng.normal(size=rows.shape[1:]), [0.0, 0.2, 0.4, 0.6]
    )
    ratios = []
    for seed in range(3):
        planned, real = (
            session_of(decide, (ROWS, decide(ROWS)), Space({"a": noise, "b": noise}), target=0.1, seed=seed)
            for _ in range(2)
        )
        found = estimate(planned)
        ratios.append(found.foreseen / real.run().inferences)
        assert found.inferences == 16 * 3000, "at most"
        assert 0 < found.fitting < found.seconds
    assert 0.5 < np.median(ratios) < 2
