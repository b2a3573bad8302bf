"""Steps taken together, whatever way the inputs came: the same composites from far fewer calls."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai import data as datasets
from testifai import models, oracles
from testifai.engine.local import LocalExecutor
from testifai.engine.plan import Work, prefix_tree
from testifai.engine.prefix_tree import TreePaths
from testifai.engine.subject import Subject
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Outcomes, visiting_order
from testifai.space import Space

INPUTS = 60
ROWS = np.random.default_rng(1).normal(size=(INPUTS, 2))


def noise(name: str, calls: Counter, sizes: list[int]) -> Perturbation:
    """Order matters, and every input and severity has draws of its own."""

    def function(batch, scale, rng):
        calls[name, scale] += 1
        sizes.append(len(batch))
        return 0.75 * batch + scale * rng.normal(2)

    return Perturbation(name, function, [0.0, 0.5, 1.0, 1.5])


def noisy_space(*, order_sensitive: bool = False) -> tuple[Space, Counter, list[int]]:
    calls, sizes = Counter(), []
    space = Space({name: noise(name, calls, sizes) for name in "abc"}, order_sensitive=order_sensitive)
    return space, calls, sizes


def subject_of(space: Space, inputs=ROWS, model=lambda rows: rows) -> Subject:
    labels = np.zeros(len(inputs), int)
    data = datasets.from_arrays(inputs, labels)
    order = visiting_order(len(inputs), 5)
    return Subject(
        data, space, order, 5, model=models.wrap(model), oracle=oracles.resolve("label"), labels=labels,
        keep=("value",),
    )  # fmt: skip


def scattered(space: Space, each: int, seed: int = 0) -> Work:
    random = np.random.default_rng(seed)
    return Work(np.arange(space.size), [random.permutation(INPUTS)[:each] for _ in range(space.size)])


def measured(subject: Subject, work: Work, chunk: int, workers: int = 1) -> tuple[Outcomes, int]:
    """What was measured, and in how many pieces it was handed over."""
    outcomes, pieces = Outcomes(len(subject.order)), 0
    executor = LocalExecutor(subject, workers=workers)
    executor.chunk = chunk

    def record(one):
        nonlocal pieces
        pieces += 1
        outcomes.record(one.configuration, one.places, one.passed, one.kept)

    executor.run(work, outcomes, record)
    return outcomes, pieces


@settings(max_examples=12, deadline=None)
@given(st.booleans(), st.integers(1, 200), st.integers(1, 6), st.integers(1, 2), st.integers(0, 9))
def test_every_trial_is_that_of_its_own_composite(order_sensitive, chunk, each, workers, seed):
    space, _, _ = noisy_space(order_sensitive=order_sensitive)
    subject, work = subject_of(space), scattered(space, each, seed)
    outcomes, _ = measured(subject, work, chunk, workers)
    assert outcomes.total() == each * space.size
    for test, places in zip(work.configurations.tolist()[::17], work.places[::17], strict=True):
        outputs = subject.infer(subject.composite(space.configuration(test), places), test)
        alone = subject.judge(outputs, np.zeros(each, int), None)
        np.testing.assert_array_equal(outcomes.kept(test, "value")[places], alone.value.astype(np.float32))
        np.testing.assert_array_equal(outcomes.passed(test, places), alone.passed)


def prefixes(space: Space, work: Work) -> int:
    """How many different (beginning of a path, input) the work has."""
    paths = space.paths(work.configurations)
    return len({
        (path[: end + 1], place)
        for path, places in zip(paths, work.places, strict=True)
        for end in range(len(path))
        for place in places.tolist()
    })  # fmt: skip


@pytest.mark.parametrize("order_sensitive", [False, True])
def test_a_step_is_taken_once_for_all_that_wait_for_it(order_sensitive):
    space, calls, sizes = noisy_space(order_sensitive=order_sensitive)
    work = scattered(space, each=2)
    measured(subject_of(space), work, chunk=10_000)
    assert sum(sizes) == prefixes(space, work)
    if order_sensitive:
        # Once more for each time that a way leads back to an earlier axis.
        assert max(calls.values()) <= 3
    else:
        assert calls == dict.fromkeys(calls, 1)
        assert len(calls) == 9


def test_what_is_in_memory_at_a_time_is_limited():
    space, _, sizes = noisy_space()
    work = scattered(space, each=20)
    measured(subject_of(space), work, chunk=100)
    assert max(sizes) <= 100
    # Still shared, and still in calls that are worth it.
    assert sum(sizes) == prefixes(space, work)
    assert len(sizes) < space.size


def test_a_gathering_holds_no_more_than_a_chunk_for_each_step_of_a_path():
    space, _, _ = noisy_space()
    tree = prefix_tree(space, np.arange(space.size))
    random = np.random.default_rng(0)
    tests, rows = random.integers(1, space.size, 50), random.integers(0, INPUTS, 50)
    gathering = TreePaths(tree).gather(tree, 0, tests, rows, INPUTS)
    made = len(gathering.rows) + sum(len(step.rows) for step in gathering.steps)
    assert made <= (1 + len(space.axes)) * len(tests)


def test_tests_of_few_inputs_are_handed_over_in_few_pieces():
    space, _, _ = noisy_space()
    work = scattered(space, each=2)
    _, pieces = measured(subject_of(space), work, chunk=INPUTS // 4)
    assert pieces < 1.5 * space.size


def test_texts_of_different_ways_are_perturbed_together():
    texts = [f"{number:03d}" for number in range(INPUTS)]
    calls = Counter()

    def tagged(name):
        def function(batch, tag, rng):
            calls[name] += 1
            return [f"{text}{tag}{int(9 * draw)}" for text, draw in zip(batch, rng.uniform(), strict=True)]

        return Perturbation(name, function, ["", f"{name}1", f"{name}2"])

    space = Space({name: tagged(name) for name in "xyz"})
    seen = []

    def reads(batch):
        seen.extend(batch)
        return np.zeros(len(batch), int)

    subject = subject_of(space, texts, reads)
    work = scattered(space, each=3)
    measured(subject, work, chunk=10_000)
    assert calls == {"x": 2, "y": 2, "z": 2}
    expected = [
        text
        for test, places in zip(work.configurations.tolist(), work.places, strict=True)
        for text in subject.composite(space.configuration(test), places)
    ]
    assert sorted(seen) == sorted(expected)
