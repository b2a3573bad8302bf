from __future__ import annotations

import numpy as np
import pytest

from testifai.operational.base import Frame, Sample, Technique, conclude, draw


class Doubling:
    """Labels example 0, then as many more as a later batch asks for, following the outcomes sent back."""

    name = "doubling"

    def plan(self, frame, tests, rng):
        first = yield np.array([0])
        second = yield np.array([1, 2]) if first[0] else np.array([3, 4])
        return {"early": np.concatenate([first, second])}

    def estimate(self, frame, sample):
        return float(1 - sample.failed.mean()), 0.0, 1.0


@pytest.mark.parametrize("wrong", [True, False])
def test_a_plan_is_sent_the_outcomes_of_what_it_asked_for(wrong):
    outcomes = np.array([wrong, True, False, False, True])
    sample = draw(Doubling(), Frame(5), 3, np.random.default_rng(0), outcomes.__getitem__)
    assert sample.selected.tolist() == ([0, 1, 2] if wrong else [0, 3, 4])
    assert sample.failed.tolist() == outcomes[sample.selected].tolist() == sample.facts["early"].tolist()


def test_an_error_of_the_labeller_is_not_taken_for_the_end_of_the_plan():
    answers = iter([np.array([True])])
    with pytest.raises(StopIteration):
        draw(Doubling(), Frame(5), 3, np.random.default_rng(0), lambda batch: next(answers))


def test_the_first_part_of_a_sample_keeps_its_facts():
    sample = Sample(np.array([4, 2, 0]), np.array([True, False, True]), {"chance": np.array([0.1, 0.2, 0.3])})
    part = sample.first(2)
    assert part.selected.tolist() == [4, 2]
    assert part.failed.tolist() == [True, False]
    assert part.facts["chance"].tolist() == [0.1, 0.2]


def test_an_example_drawn_twice_is_one_label_and_one_failure():
    sample = Sample(np.array([7, 3, 7, 1]), np.array([True, True, True, False]))
    answer = conclude(Doubling(), Frame(10), sample)
    assert (answer.failures, answer.labels, answer.failing.tolist()) == (2, 3, [7, 3])
    assert (answer.technique, answer.size) == ("doubling", 10)


def test_a_technique_is_told_by_its_shape():
    assert isinstance(Doubling(), Technique)
    assert not isinstance(object(), Technique)
