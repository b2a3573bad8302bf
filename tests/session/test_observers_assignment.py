"""Classes numbered otherwise than outputs: found where there are, not where there are none."""

import numpy as np
import pytest

from testifai.session.observers import class_index_mismatch


def answers(generator, truth, classes, accuracy):
    """A model that is right so often, and else answers anything."""
    return np.where(generator.random(len(truth)) < accuracy, truth, generator.integers(0, classes, len(truth)))


@pytest.mark.parametrize("classes", [2, 10, 43])
@pytest.mark.parametrize("accuracy", [0.0, 0.3, 0.6, 0.95])
def test_a_right_numbering_is_hardly_ever_doubted(classes, accuracy):
    found = 0
    for seed in range(60):
        generator = np.random.default_rng(seed)
        truth = generator.integers(0, classes, 500)
        found += class_index_mismatch(truth, answers(generator, truth, classes, accuracy), None, classes) is not None
    assert found <= 1


@pytest.mark.parametrize("classes", [3, 10, 43])
def test_a_wrong_one_is_found_and_said(classes):
    names = [f"class {number}" for number in range(classes)]
    for seed in range(20):
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
