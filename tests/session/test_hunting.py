"""A hunt finds failures with fewer inferences than chance, and leaves the run it started from alone."""

from __future__ import annotations

import numpy as np
import pytest

import testifai as ta
from testifai.data.sample import demo_data, demo_model_path

BUDGET = 400


@pytest.fixture(scope="module")
def subject():
    space = ta.Space({"zoom": "mnist_c.zoom", "brightness": "mnist_c.brightness"})
    model, data = str(demo_model_path()), demo_data()
    pair = (data.inputs[:400], np.asarray(data.labels)[:400])
    return model, pair, space, ta.scan(model, pair, space, budget=1500)


def test_most_trials_of_a_hunt_fail(subject):
    model, data, space, run = subject
    mild = "zoom <= 3 and brightness <= 3"
    rate = 1 - run.query(mild).robustness
    found = ta.hunt(run, model, data, BUDGET, mild)
    assert found.inferences == BUDGET
    assert len(found.tests) > 3 * rate * BUDGET
    assert (space.matrix(found.tests) <= 3).all()
    assert [point[0] for point in found.curve][-1] == BUDGET
    assert found.curve[-1][1:] == (len(found.tests), len(found.failing_inputs))
    # They fail indeed.
    test, number = int(found.tests[0]), int(found.inputs[0])
    names = dict(zip(("mnist_c.zoom", "mnist_c.brightness"), space.configuration(test), strict=True))
    answer = ta.models.load("onnx", model)(ta.apply(names, data[0][[number]], indices=[number])).argmax()
    assert answer != data[1][number]


def test_the_run_stays_as_it_is(subject):
    model, data, _, run = subject
    before, estimate = run.inferences, run.query("zoom <= 3").robustness
    ta.hunt(run, model, data, 50)
    assert run.inferences == before
    assert run.query("zoom <= 3").robustness == estimate


def test_once_leaves_inputs_alone_that_have_failed(subject):
    model, data, _, run = subject
    found = ta.hunt(run, model, data, BUDGET, "zoom <= 3", once=True)
    assert len(found.failing_inputs) == len(found.inputs)


def test_a_hunt_ends_where_nothing_is_left(subject):
    model, data, _, run = subject
    found = ta.hunt(run, model, data, 10**6, "zoom == 1 and brightness == 1")
    assert found.inferences == 400 - run.trials[1, 1]


def test_a_hunt_against_the_clean_answer(subject):
    model, data, space, _ = subject
    run = ta.scan(model, data[0], space, budget=600, oracle="consistency")
    found = ta.hunt(run, model, data[0], 100, oracle="consistency")
    assert found.inferences >= 100  # the clean answers of its inputs among them
    assert len(found.tests) > 30


def test_an_interrupted_hunt_keeps_what_it_found(subject):
    from testifai.session.hunting import hunted

    run = subject[-1]
    rounds = iter(range(3))

    def measure(work, found):
        if next(rounds) == 2:
            raise KeyboardInterrupt
        for test, places in zip(work.configurations.tolist(), work.places, strict=True):
            found.record(test, places, np.zeros(len(places), bool))

    found = hunted(run, measure, BUDGET)
    assert found.inferences == len(found.tests) == 2 * BUDGET // 20


def test_mistakes_are_one_line(subject):
    model, data, _, run = subject
    with pytest.raises(ta.InputError, match="budget"):
        ta.hunt(run, model, data, 0)
    with pytest.raises(ta.InputError, match="inputs"):
        ta.hunt(run, model, (data[0][:10], data[1][:10]), 5)
