from __future__ import annotations

import itertools

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.locality.compose import adder, build, values

DIGITS = ["0", "1", "2"]


def test_the_adder_knows_every_combination_that_makes_it_right():
    system = build(DIGITS, DIGITS, None, 3, None)
    for classes in itertools.product(range(3), repeat=3):
        wanted = {one for one in itertools.product(range(3), repeat=3) if sum(one) == sum(classes)}
        assert {tuple(row) for row in system.answers_right(classes).tolist()} == wanted


def test_an_expected_answer_may_be_told_by_function_or_mapping():
    table = {(a, b): max(a, b) for a, b in itertools.product(range(3), repeat=2)}
    by_function = build(DIGITS, DIGITS, lambda a, b: min(2, a + b), 2, max)
    by_mapping = build(DIGITS, DIGITS, lambda a, b: min(2, a + b), 2, table)
    np.testing.assert_array_equal(by_function.right, by_mapping.right)
    assert by_function.answers_right((1, 1)).tolist() == [[0, 1], [1, 0]]


def test_an_answer_never_given_is_never_right():
    assert len(build(DIGITS, DIGITS, None, 2, lambda a, b: "nine").answers_right((0, 0))) == 0


def test_whether_parts_may_change_places():
    assert build(DIGITS, DIGITS, None, 3, None).symmetric
    assert not build(DIGITS, DIGITS, lambda a, b: a - b, 2, None).symmetric
    assert not build(DIGITS, DIGITS, adder, 2, lambda a, b: a).symmetric


def test_tuples_are_all_once_or_those_given():
    system = build(DIGITS, DIGITS, None, 2, None)
    assert system.tuples(None, interchangeable=True) == [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    assert len(system.tuples(None, interchangeable=False)) == 9
    assert system.tuples([(2, "0")], interchangeable=True) == [(2, 0)]


def test_labels_are_numbers_where_all_names_are():
    assert values(["0", "-3", "12"]) == (0, -3, 12)
    assert values(["0", "007"]) == ("0", "007")


def test_answers_may_be_anything_that_can_be_compared():
    system = build(["cat", "dog"], ["cat", "dog"], lambda *labels: frozenset(labels), 2, None)
    assert system.symmetric
    assert system.answers_right((0, 1)).tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"combine": lambda a, b: [a, b]}, r"combine: returned list for the labels \(0, 0\), which cannot be compared"),
        ({"combine": lambda a, b: np.array([a])}, "combine: returned ndarray"),
        ({"combine": lambda a, b: a // b}, r"combine: raised ZeroDivisionError: .* for the labels \(0, 0\)"),
        ({"combine": lambda a: a}, "combine: raised TypeError"),
        ({"combine": "sum"}, "combine: str cannot be called"),
        ({"expected": lambda a, b: {}}, "expected: returned dict"),
        ({"expected": {(0, 0): 0}}, r"expected: no entry for the labels \(0, 1\)"),
        ({"arity": 0}, "arity: must be a whole number, at least 1, got 0"),
        ({"arity": 40}, "arity: 40 parts with 3 answers each"),
        ({"names": ["cat", "dog"]}, "combine: the adder needs classes that are whole numbers, got 'cat'"),
    ],
)
def test_mistakes_are_one_line(options, message):
    names = options.get("names", DIGITS)
    with pytest.raises(InputError, match=message) as caught:
        build(names, names, options.get("combine"), options.get("arity", 2), options.get("expected"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("wrong", [[("0",)], [("0", "7")], [7], []])
def test_tuples_of_other_classes_are_refused(wrong):
    with pytest.raises((InputError), match="tuples"):
        build(DIGITS, DIGITS, None, 2, None).tuples(wrong, interchangeable=True)
