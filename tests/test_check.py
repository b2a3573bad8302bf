import numpy as np
import pytest

from testifai.check import estimate
from testifai.data.sample import demo_data, demo_model_path
from testifai.perturb import Perturbation
from testifai.session import Session
from testifai.space import Space

SHIFT = Perturbation("shift", lambda rows, by, rng: rows + by, [0.0, 0.1, 0.25, 0.4, 0.5, 0.6])
ROWS = np.random.default_rng(1).random((3000, 2))


def decide(rows):
    return (rows[:, 0] + rows[:, 1] > 1).astype(int)


def session(**options) -> Session:
    space = Space({"a": SHIFT, "b": SHIFT, "c": SHIFT})
    return Session(decide, (ROWS, decide(ROWS)), space, **options)


@pytest.mark.parametrize(
    ("options", "run_tests", "inferences"),
    [
        ({"strategy": "full"}, 216, 216 * 3000),
        ({}, 216, 216 * 3000),
        ({"strategy": "ordered"}, 91, 91 * 3000),
        ({"strategy": {"use": "ordered", "max_order": 1}}, 16, 16 * 3000),
        ({"budget": 5000}, 216, 5000),
        ({"strategy": "ordered", "budget": 5000}, 91, 5000),
        ({"budget": 40}, 40, 40),
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
    found = estimate(Session(slow, data, space, batch_size=100))
    assert 2 * 400 * 50e-6 <= found.seconds < 10 * 2 * 400 * 50e-6
    assert found.batch_size == 100


def test_the_findings_are_plain_data():
    import json

    found = estimate(session())
    assert json.loads(json.dumps(found.as_dict()))["run_tests"] == 216


@pytest.mark.parametrize("keep", [(), ("value",), ("value", "predicted")])
def test_the_file_is_no_larger_than_said_and_not_a_tenth_of_it(tmp_path, keep):
    space = Space({"zoom": "mnist_c.zoom", "brightness": "mnist_c.brightness"})
    session = Session(str(demo_model_path()), demo_data(), space, strategy="full", keep=keep)
    said = estimate(session).file_bytes
    Session(str(demo_model_path()), demo_data(), space, strategy="full", keep=keep).run(tmp_path / "run.db")
    assert said / 10 < (tmp_path / "run.db").stat().st_size <= said
