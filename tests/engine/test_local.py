"""The executor against a brute force that builds every composite by itself and judges it alone."""

import gc
import logging
import threading
import weakref
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import testifai as ta
from testifai import data as datasets
from testifai import models, oracles
from testifai.engine.local import LocalExecutor
from testifai.engine.plan import Work
from testifai.engine.subject import Subject
from testifai.errors import InputError
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Outcomes, visiting_order
from testifai.space import Space

INPUTS = 45
RNG = np.random.default_rng(5)
ROWS = RNG.normal(size=(INPUTS, 3))
LABELS = RNG.integers(0, 3, INPUTS)
TEXTS = ["".join(RNG.choice(list("abcdef"), 4 + i % 5)) for i in range(INPUTS)]

SHIFT = Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.3, 0.9, 2.0])
SCALE = Perturbation("scale", lambda x, by, rng: x * by, [1.0, 0.5, -1.0])
NOISE = Perturbation("noise", lambda x, by, rng: x + by * rng.normal(3), [0.0, 0.5, 1.5])


def model(rows):
    return np.stack([rows[:, 0], rows[:, 1] + 0.2, -rows[:, 2]], axis=1)


def plain_space(**options) -> Space:
    return Space({"noise": NOISE, "scale": (SCALE, [0, 2]), "shift": (SHIFT, [0, 1, 3]), "again": NOISE}, **options)


def subject_of(space: Space, *, model=model, inputs=ROWS, labels=LABELS, oracle="label", seed=3, keep=()) -> Subject:
    data = datasets.from_arrays(inputs, labels)
    order = visiting_order(len(inputs), seed)
    adapter = models.wrap(model)
    return Subject(
        data, space, order, seed, model=adapter, oracle=oracles.resolve(oracle), labels=data.labels, keep=keep
    )


def measure(executor: LocalExecutor, work: Work, outcomes: Outcomes | None = None) -> Outcomes:
    outcomes = Outcomes(len(executor.subject.order)) if outcomes is None else outcomes
    executor.run(work, outcomes, lambda m: outcomes.record(m.configuration, m.places, m.passed, m.kept))
    return outcomes


def composite(space: Space, sigma, inputs, numbers, seed):
    """What `ta.apply` does, said again, with a number for each axis that shares its perturbation with others."""
    for axis, severity in space.steps(sigma):
        name = space.axes[axis].perturbation.name
        earlier = [other.perturbation.name for other in space.axes[:axis]].count(name)
        inputs = space.axes[axis].perturbation.apply(inputs, severity, seed=seed, indices=numbers, occurrence=earlier)
    return inputs


def brute_force(space: Space, seed: int = 3) -> dict[int, np.ndarray]:
    """Per configuration whether each input, in the data's order, is classified as labelled."""
    passed = {}
    for sigma in space.configurations():
        outputs = model(composite(space, sigma, ROWS, np.arange(INPUTS), seed))
        passed[space.id(sigma)] = outputs.argmax(axis=1) == LABELS
    return passed


def assert_equal_to_brute_force(outcomes: Outcomes, subject: Subject, wanted: dict[int, np.ndarray]) -> None:
    """`wanted`: the places to have been measured for each configuration."""
    truth = brute_force(subject.space, subject.seed)
    everywhere = np.arange(INPUTS)
    assert set(outcomes) == {configuration for configuration, places in wanted.items() if len(places)}
    for configuration in outcomes:
        attempted = outcomes.attempted(configuration, everywhere)
        assert np.flatnonzero(attempted).tolist() == sorted(set(wanted[configuration].tolist()))
        passed = outcomes.passed(configuration, everywhere)
        np.testing.assert_array_equal(passed, truth[configuration][subject.order] & attempted)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("batch_size", [1, 7, 100, None])
@pytest.mark.parametrize("order_sensitive", [False, True])
def test_every_outcome_equals_brute_force(workers, batch_size, order_sensitive):
    subject = subject_of(plain_space(order_sensitive=order_sensitive))
    ids = subject.space.ids_up_to(None if not order_sensitive else 2)
    executor = LocalExecutor(subject, batch_size=batch_size, workers=workers)
    executor.chunk = 20
    outcomes = measure(executor, Work(ids, np.arange(INPUTS)))
    assert_equal_to_brute_force(outcomes, subject, {int(i): np.arange(INPUTS) for i in ids})


def test_the_composite_of_a_configuration_is_that_of_apply():
    space = Space({"shift": SHIFT, "scale": SCALE, "noise": NOISE})
    subject = subject_of(space, seed=9)
    places = np.array([4, 0, 30])
    sigma = (2, 1, 2)
    direct = ta.apply({SHIFT: 2, SCALE: 1, NOISE: 2}, ROWS[subject.order[places]], 9, subject.order[places])
    np.testing.assert_array_equal(subject.composite(sigma, places), direct)
    backwards = subject_of(Space({"shift": SHIFT, "scale": SCALE, "noise": NOISE}, order_sensitive=True), seed=9)
    direct = ta.apply({NOISE: 2, SCALE: 1, SHIFT: 2}, ROWS[subject.order[places]], 9, subject.order[places])
    np.testing.assert_array_equal(backwards.composite((*sigma, 3, 2, 1), places), direct)


places_lists = st.lists(st.lists(st.integers(0, INPUTS - 1), unique=True, max_size=INPUTS), min_size=1, max_size=8)


@settings(max_examples=16, deadline=None)
@given(places_lists, st.integers(1, 50), st.integers(1, 60), st.randoms(use_true_random=False))
def test_inputs_per_configuration_equal_brute_force(listed, batch_size, chunk, random):
    subject = subject_of(plain_space())
    ids = np.array(random.sample(range(subject.space.size), len(listed)), np.int64)
    executor = LocalExecutor(subject, batch_size=batch_size, workers=1)
    executor.chunk = chunk
    places = [np.array(own, np.intp) for own in listed]
    outcomes = measure(executor, Work(ids, places))
    assert_equal_to_brute_force(outcomes, subject, dict(zip(ids.tolist(), places, strict=True)))


def test_two_axes_with_one_perturbation_draw_their_own_numbers():
    space = Space({"first": NOISE, "second": NOISE})
    subject = subject_of(space)
    places = np.arange(INPUTS)
    first = subject.composite((1, 0), places) - subject.batch(places)
    second = subject.composite((0, 1), places) - subject.batch(places)
    both = subject.composite((1, 1), places) - subject.batch(places)
    assert not np.isclose(first, second).any()
    np.testing.assert_allclose(both, first + second)
    other_seed = subject_of(space, seed=4)
    assert set(subject.order) == set(other_seed.order)
    assert not np.isclose(first[np.argsort(subject.order)], (
        other_seed.composite((1, 0), places) - other_seed.batch(places)
    )[np.argsort(other_seed.order)]).any()  # fmt: skip


class Counting:
    """A model that remembers which rows it saw."""

    def __init__(self, function=model) -> None:
        self.function = function
        self.sizes: list[int] = []

    def __call__(self, batch):
        self.sizes.append(len(batch))
        return self.function(batch)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_model_never_sees_one_input_more_than_needed(workers):
    counting = Counting()
    subject = subject_of(plain_space(), model=counting)
    executor = LocalExecutor(subject, batch_size=8, workers=workers)
    ids = subject.space.ids_up_to(2)
    outcomes = measure(executor, Work(ids[:10], np.arange(20)))
    assert sum(counting.sizes) == 10 * 20
    counting.sizes.clear()
    measure(executor, Work(ids, np.arange(10, 30)), outcomes)
    assert sum(counting.sizes) == len(ids) * 20 - 10 * 10
    counting.sizes.clear()
    measure(executor, Work(ids, np.arange(10, 30)), outcomes)
    assert counting.sizes == []
    scattered = [np.array([i, 44]) for i in range(len(ids))]
    attempted = sum(outcomes.attempted(int(i), own).sum() for i, own in zip(ids, scattered, strict=True))
    measure(executor, Work(ids, scattered), outcomes)
    assert sum(counting.sizes) == 2 * len(ids) - attempted


def test_batches_are_full_up_to_the_last():
    counting = Counting()
    subject = subject_of(plain_space(), model=counting)
    measure(LocalExecutor(subject, batch_size=16, workers=1), Work(subject.space.ids_up_to(2), np.arange(INPUTS)))
    assert set(counting.sizes[:-1]) == {16}
    assert counting.sizes[-1] <= 16


def counted(name: str, calls: Counter, alive: set, most: list[int]) -> Perturbation:
    def function(batch, parameter, rng):
        calls[name, parameter] += 1
        most.append(len(alive))
        made = batch + parameter
        number = sum(calls.values())
        alive.add(number)
        weakref.finalize(made, alive.discard, number)
        return made

    return Perturbation(name, function, [0, 1, 2, 3])


def prefixes(space: Space, ids) -> Counter:
    """Every distinct non-empty beginning of a path, by the step it ends with."""
    nodes = {path[: i + 1] for path in space.paths(ids) for i in range(len(path))}
    return Counter((space.axes[node[-1][0]].name, node[-1][1]) for node in nodes)


@pytest.mark.parametrize(("order_sensitive", "ids"), [(False, None), (True, None), (False, [5, 21, 22, 63])])
def test_a_perturbation_is_applied_once_per_tree_node_and_chunk(order_sensitive, ids):
    calls, alive, most = Counter(), set(), []
    space = Space({n: counted(n, calls, alive, most) for n in "abc"}, order_sensitive=order_sensitive)
    ids = space.ids_up_to(None) if ids is None else np.array(ids)
    executor = LocalExecutor(subject_of(space), batch_size=32, workers=1)
    for chunks, size in [(1, INPUTS), (3, 15)]:
        calls.clear()
        executor.chunk = size
        measure(executor, Work(ids, np.arange(INPUTS)))
        assert calls == Counter({step: chunks * count for step, count in prefixes(space, ids).items()})


@pytest.mark.parametrize("axes", [2, 4])
def test_at_most_a_batch_per_depth_is_alive(axes):
    calls, alive, most = Counter(), set(), []
    space = Space({f"a{i}": counted(f"a{i}", calls, alive, most) for i in range(axes)})
    executor = LocalExecutor(subject_of(space), batch_size=8, workers=1)
    measure(executor, Work(space.ids_up_to(None), np.arange(INPUTS)))
    # One per depth, the one being replaced, and one whose last rows wait for the next batch of the model.
    assert max(most) <= axes + 1
    gc.collect()
    assert not alive


def test_texts_go_through_the_same_engine():
    double = Perturbation("double", lambda texts, times, rng: [text * times for text in texts], [1, 2, 3])
    cut = Perturbation(
        "cut", lambda texts, letters, rng: [
            text[int(start * letters) :] for text, start in zip(texts, rng.uniform(), strict=True)
        ], [0, 2, 4],
    )  # fmt: skip
    space = Space({"cut": cut, "double": double})

    def reads(texts):
        return np.array([len(text) % 3 for text in texts])

    labels = reads(TEXTS)
    subject = subject_of(space, model=reads, inputs=TEXTS, labels=labels)
    for batch_size in (1, 7, None):
        work = Work(space.ids_up_to(None), np.arange(INPUTS))
        outcomes = measure(LocalExecutor(subject, batch_size=batch_size), work)
        for sigma in space.configurations():
            changed = composite(space, sigma, list(TEXTS), np.arange(INPUTS), 3)
            expected = (reads(changed) == labels)[subject.order]
            np.testing.assert_array_equal(outcomes.passed(space.id(sigma), np.arange(INPUTS)), expected)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("oracle", ["consistency", {"use": "tolerance", "eps": 0.4}])
def test_comparing_oracles_judge_against_the_clean_output_of_the_same_input(oracle, workers):
    space = plain_space()
    subject = subject_of(space, oracle=oracle)
    executor = LocalExecutor(subject, batch_size=7, workers=workers)
    # No clean test is asked for; and a second round has to use what the first remembered.
    ids = space.ids_up_to(2)[1:]
    outcomes = measure(executor, Work(ids, np.arange(0, 30)))
    measure(executor, Work(ids, np.arange(20, INPUTS)), outcomes)
    clean = model(ROWS)
    assert outcomes.passed(0, np.arange(INPUTS)).all()
    for i in ids:
        outputs = model(composite(space, space.configuration(int(i)), ROWS, np.arange(INPUTS), 3))
        if oracle == "consistency":
            expected = outputs.argmax(axis=1) == clean.argmax(axis=1)
        else:
            expected = np.abs(outputs - clean).max(axis=1) <= 0.4
        np.testing.assert_array_equal(outcomes.passed(int(i), np.arange(INPUTS)), expected[subject.order])


def test_values_and_predictions_are_kept_where_asked_for():
    space = plain_space()
    ids = space.ids_up_to(1)
    subject = subject_of(space, keep=("value", "predicted"))
    outcomes = measure(LocalExecutor(subject, batch_size=9), Work(ids, np.arange(5, INPUTS)))
    assert outcomes.kept_names() == ("predicted", "value")
    for i in ids:
        outputs = model(composite(space, space.configuration(int(i)), ROWS, np.arange(INPUTS), 3))[subject.order]
        labels = LABELS[subject.order]
        own = outputs[np.arange(INPUTS), labels]
        best_other = np.where(np.eye(3, dtype=bool)[labels], -np.inf, outputs).max(axis=1)
        value = outcomes.kept(int(i), "value")
        assert np.isnan(value[:5]).all()
        np.testing.assert_allclose(value[5:], (own - best_other)[5:], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(outcomes.kept(int(i), "predicted")[5:], outputs.argmax(axis=1)[5:])
    assert measure(LocalExecutor(subject_of(space)), Work(ids, np.arange(5))).kept_names() == ()


def running_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("testifai")]


@pytest.mark.parametrize("workers", [1, 3])
def test_a_failing_model_surfaces_in_the_caller_and_the_threads_end(workers):
    seen = []

    def breaks(rows):
        seen.append(len(rows))
        if len(seen) == 12:
            raise RuntimeError("out of\nluck")
        return model(rows)

    subject = subject_of(plain_space(), model=breaks)
    outcomes = Outcomes(INPUTS)
    with pytest.raises(InputError, match=r"model: raised RuntimeError: out of \(batch of 5 inputs, configuration"):
        measure(LocalExecutor(subject, batch_size=5, workers=workers), Work(np.arange(36), np.arange(INPUTS)), outcomes)
    assert running_threads() == []
    truth = brute_force(subject.space)
    for i in outcomes:  # what was handed over before is valid
        attempted = outcomes.attempted(i, np.arange(INPUTS))
        passed = outcomes.passed(i, np.arange(INPUTS))
        np.testing.assert_array_equal(passed, truth[i][subject.order] & attempted)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failing_perturbation_and_a_failing_caller_end_the_threads_too(workers):
    def breaks(x, by, rng):
        raise KeyError("what")

    space = Space({"shift": SHIFT, "bad": Perturbation("bad", breaks, [0, 1])})
    executor = LocalExecutor(subject_of(space), workers=workers)
    with pytest.raises(InputError, match=r"perturbation 'bad' failed at severity 1: KeyError: 'what'"):
        measure(executor, Work(space.ids_up_to(None), np.arange(INPUTS)))
    assert running_threads() == []

    def refuses(measured):
        raise OSError("disk full")

    good = LocalExecutor(subject_of(plain_space()), workers=workers, batch_size=3)
    with pytest.raises(OSError, match="disk full"):
        good.run(Work(np.arange(36), np.arange(INPUTS)), Outcomes(INPUTS), refuses)
    assert running_threads() == []


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_ends_the_run_after_what_is_in_flight(workers):
    subject = subject_of(plain_space())
    outcomes = Outcomes(INPUTS)
    executor = LocalExecutor(subject, workers=workers, batch_size=3, interrupted=lambda: outcomes.total() >= 30)
    with pytest.raises(KeyboardInterrupt):
        measure(executor, Work(np.arange(36), np.arange(INPUTS)), outcomes)
    # Several workers hand over a configuration's batches together.
    assert outcomes.total() == 30 if workers == 1 else 30 <= outcomes.total() < 36 * INPUTS
    assert running_threads() == []


def test_outcomes_are_handed_over_in_the_callers_thread():
    threads = set()
    subject = subject_of(plain_space())
    LocalExecutor(subject, workers=2, batch_size=3).run(
        Work(np.arange(36), np.arange(INPUTS)), Outcomes(INPUTS), lambda m: threads.add(threading.current_thread())
    )
    assert threads == {threading.current_thread()}


def test_a_clean_accuracy_near_chance_is_warned_about(caplog):
    labels = np.arange(200) % 4
    rows = np.arange(200.0)[:, None]
    space = Space({"shift": SHIFT})

    def guesses(x):
        return (x[:, 0].astype(int) * 7 // 5) % 4

    with caplog.at_level(logging.WARNING, logger="testifai"):
        ta.scan(guesses, (rows, labels), space)
    warned = [record.getMessage() for record in caplog.records]
    assert len(warned) == 1
    assert "not clearly above chance (0.250)" in warned[0]
    assert "preprocessing" in warned[0]
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="testifai"):
        ta.scan(lambda x: x[:, 0].astype(int) % 4, (rows, labels), space)
        ta.scan(guesses, (rows, labels), space, oracle="consistency")
        ta.scan(guesses, (rows[:40], labels[:40]), space)  # too few to tell
    assert caplog.records == []


def test_chance_is_the_share_of_the_largest_class(caplog):
    labels = (np.arange(200) % 10 == 0).astype(int)
    rows = np.arange(200.0)[:, None]
    with caplog.at_level(logging.WARNING, logger="testifai"):
        tomogram = ta.scan(lambda x: np.zeros(len(x), int), (rows, labels), Space({"shift": SHIFT}))
    assert tomogram.base == 0.9
    assert "not clearly above chance (0.900)" in caplog.text


def test_results_do_not_depend_on_batch_size_or_workers():
    def facts(**options):
        tomogram = ta.scan(model, (ROWS, LABELS), plain_space(), **options)
        return {i: tuple(bits.tobytes() for bits in tomogram.outcomes.bits(i)) for i in tomogram.outcomes}

    found = [facts(batch_size=b, workers=w) for b in (1, 7, 100) for w in (1, 2)]
    assert all(one == found[0] for one in found)
