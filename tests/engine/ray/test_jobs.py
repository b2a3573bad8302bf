"""Work becomes tasks: all of it, once, of the size asked for, neighbours together; results come back as they were."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.engine.base import BatchOutcome
from testifai.engine.plan import Work
from testifai.engine.ray.jobs import FEWEST_INPUTS, Measured, TaskPace, TaskSplitter, TrialTask
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Outcomes
from testifai.space import Space

FADE = Perturbation("fade", lambda batch, by, rng: batch, (0, 1, 2, 3))
SPACE = Space(dict.fromkeys("abc", FADE))
INPUTS = 600


def tasks_of(work: Work, outcomes: Outcomes, trials: int, most_inputs: int = INPUTS) -> list[TrialTask]:
    splitter = TaskSplitter(SPACE, work, outcomes, most_inputs=most_inputs)
    found = []
    while (task := splitter.next(trials)) is not None:
        found.append(task)
    assert splitter.left() == 0
    return found


def record(tasks: list[TrialTask], outcomes: Outcomes) -> None:
    """As if every trial passed; one that is in two tasks, or was made before, is an error."""
    for task in tasks:
        for configuration, row in zip(task.configurations.tolist(), task.table(), strict=True):
            places = task.places[row]
            assert len(places)
            assert not outcomes.attempted(configuration, places).any()
            outcomes.record(configuration, places, np.ones(len(places), bool))


@settings(max_examples=24, deadline=None)
@given(
    st.lists(st.integers(0, SPACE.size - 1), unique=True, min_size=1, max_size=30),
    st.integers(1, 5000),
    st.integers(1, INPUTS),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_every_missing_trial_is_in_one_task(ids, trials, most_inputs, seed, shared):
    random = np.random.default_rng(seed)

    def some() -> np.ndarray:
        return np.sort(random.permutation(INPUTS)[: random.integers(1, INPUTS)])

    work = Work(np.array(ids, np.int64), some() if shared else [some() for _ in ids])
    outcomes = Outcomes(INPUTS)
    for configuration in ids[::3]:
        places = some()
        outcomes.record(configuration, places, np.ones(len(places), bool))
    before = {configuration: outcomes.attempted(configuration, np.arange(INPUTS)) for configuration in ids}
    record(tasks_of(work, outcomes, trials, most_inputs), outcomes)
    for row, configuration in enumerate(ids):
        asked = np.isin(np.arange(INPUTS), work.places if shared else work.places[row])
        assert np.array_equal(outcomes.attempted(configuration, np.arange(INPUTS)), asked | before[configuration])


def steps(configurations: np.ndarray) -> int:
    """How many times a perturbation is applied for these tests."""
    return len({path[:end] for path in SPACE.paths(configurations) for end in range(1, len(path) + 1)})


def test_inputs_are_cut_before_tests_and_tests_in_the_order_of_the_tree():
    work = Work(np.random.default_rng(0).permutation(SPACE.size), np.arange(INPUTS))
    by_inputs = tasks_of(work, Outcomes(INPUTS), 200 * SPACE.size)
    assert [len(task.places) for task in by_inputs] == [200, 200, 200]
    assert all(len(task.configurations) == SPACE.size for task in by_inputs)
    by_tests = tasks_of(work, Outcomes(INPUTS), FEWEST_INPUTS * 16, most_inputs=FEWEST_INPUTS)
    first = [task for task in by_tests if task.places[0] == 0]
    assert [len(task.configurations) for task in first] == [16, 16, 16, 16]
    # Of all that is done to inputs, a cut makes again what leads to the next test: two steps at the most.
    assert sum(steps(task.configurations) for task in first) <= steps(np.arange(SPACE.size)) + 2 * (len(first) - 1)


def test_tests_with_few_inputs_of_their_own_are_not_cut_to_crumbs():
    random = np.random.default_rng(0)
    work = Work(np.arange(SPACE.size), [np.sort(random.permutation(INPUTS)[:60]) for _ in range(SPACE.size)])
    for task in tasks_of(work, Outcomes(INPUTS), 500):
        assert len(task.places) > INPUTS / 2
        assert task.trials() < 1000


def test_a_task_lasts_about_a_second_and_less_towards_the_end():
    pace = TaskPace()
    assert pace.trials(10**6, 4) == TaskPace.FIRST
    pace.note(64, 0.01)
    assert pace.trials(10**6, 4) == 64 * TaskPace.GROWTH  # the first batches are not typical
    for _ in range(20):
        pace.note(5000, 0.5)
    assert pace.trials(10**6, 4) == pytest.approx(10_000, rel=0.01)
    assert pace.trials(20_000, 4) == 2500
    assert pace.trials(10, 4) == pytest.approx(1000, rel=0.01)  # handing it out costs as much
    for _ in range(20):
        pace.note(5000, 50)
    assert pace.trials(10**6, 4) == pytest.approx(100, rel=0.01)


@settings(max_examples=16, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 30), st.booleans())
def test_outcomes_come_back_as_they_were_measured(seed, tests, inputs, complete):
    random = np.random.default_rng(seed)
    table = np.ones((tests, inputs), bool) if complete else random.random((tests, inputs)) < 0.6
    table[0, 0] = True
    table = table[table.any(axis=1)]
    places = np.sort(random.permutation(100)[:inputs])
    task = TrialTask.of(np.arange(len(table)), places, table)
    whole = [
        BatchOutcome(
            row, places[own], random.random(own.sum()) < 0.5, {"value": random.random(own.sum()).astype(np.float32)},
            random.random((own.sum(), 2)) if row == 0 else None,
        )
        for row, own in enumerate(table)
    ]  # fmt: skip
    pieces = [piece for one in whole for piece in cut(one, random)]
    random.shuffle(pieces)
    for one, back in zip(whole, Measured.of(task, pieces, 1.0).outcomes(task), strict=True):
        assert back.configuration == one.configuration
        np.testing.assert_array_equal(back.places, one.places)
        np.testing.assert_array_equal(back.passed, one.passed)
        np.testing.assert_array_equal(back.kept["value"], one.kept["value"])
        assert (back.reference is None) == (one.reference is None)
        if one.reference is not None:
            np.testing.assert_array_equal(back.reference, one.reference)


def cut(one: BatchOutcome, random: np.random.Generator) -> list[BatchOutcome]:
    at = np.array_split(random.permutation(len(one.places)), 3)
    return [
        BatchOutcome(
            one.configuration, one.places[part], one.passed[part], {"value": one.kept["value"][part]},
            None if one.reference is None else one.reference[part],
        )
        for part in at
        if len(part)
    ]  # fmt: skip


def test_a_task_that_is_not_whole_is_not_handed_over():
    task = TrialTask.of(np.arange(2), np.arange(4), np.ones((2, 4), bool))
    half = BatchOutcome(0, np.arange(4), np.ones(4, bool), {})
    with pytest.raises(AssertionError):
        Measured.of(task, [half], 1.0)


def test_boxes_of_trials_travel_with_them():
    places = np.array([4, 5, 9])
    task = TrialTask.of(np.array([0, 2]), places, np.ones((2, 3), bool))
    boxes = np.random.default_rng(0).random((6, 4, 6)).astype(np.float32)
    passed = np.array([True, False, True])
    pieces = [
        BatchOutcome(2, places[::-1], passed[::-1], {"detections": boxes[3:][::-1]}),
        BatchOutcome(0, places, passed, {"detections": boxes[:3]}),
    ]
    sent = list(Measured.of(task, pieces, 1.0).outcomes(task))
    assert np.array_equal(np.concatenate([one.kept["detections"] for one in sent]), boxes)
