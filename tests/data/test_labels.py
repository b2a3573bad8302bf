from __future__ import annotations

import numpy as np
import pytest

from testifai.data.labels import read_labels
from testifai.errors import InputError


def test_words_become_indexes_in_sorted_order():
    array, classes = read_labels(np.array(["dog", "cat", "dog"], dtype=object), 3)
    assert array.tolist() == [1, 0, 1]
    assert classes == ("cat", "dog")


def test_words_keep_the_order_of_given_classes():
    array, classes = read_labels(["dog", "cat"], 2, ["dog", "cow", "cat"])
    assert array.tolist() == [0, 2]
    assert classes == ("dog", "cow", "cat")


@pytest.mark.parametrize(
    "labels", [[2, 0], (2, 0), np.array([2, 0], np.uint8), np.array([[2], [0]]), np.array([2.0, 0.0])]
)
def test_whole_numbers_become_int64(labels):
    array, _ = read_labels(labels, 2)
    assert array.dtype == np.int64
    assert array.tolist() == [2, 0]


def test_truth_values_are_two_classes():
    assert read_labels([True, False], 2)[0].tolist() == [1, 0]


def test_fractions_are_kept_for_a_function():
    array, _ = read_labels([0.5, 2.0], 2)
    assert array.tolist() == [0.5, 2.0]


def test_sets_of_numbers_and_of_words():
    table, classes = read_labels([{0, 2}, set(), frozenset({1})], 3)
    assert table.tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
    assert classes is None
    table, classes = read_labels([{"sea", "boat"}, {"sea"}], 2)
    assert table.tolist() == [[1, 1], [0, 1]]
    assert classes == ("boat", "sea")
    assert read_labels([{0}, {1}], 2, ["a", "b", "c"])[0].shape == (2, 3)


def test_a_table_of_0_and_1_is_several_labels_per_input():
    table, _ = read_labels(np.array([[True, False], [True, True]]), 2)
    assert table.dtype == np.uint8
    assert table.tolist() == [[1, 0], [1, 1]]


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        ([0, 1, 2], None, "3 labels for 2 inputs"),
        ([{1}], None, "1 labels for 2 inputs"),
        ([0, 3], ["a", "b"], r"3 is not a class; accepted: 0 … 1 \(a, b\)"),
        ([0, -1], ["a", "b"], "-1 is not a class"),
        (["cat", "dgo"], ["cat", "dog"], "'dgo' is not one of the classes; did you mean 'dog'"),
        ([0.0, np.nan], None, "1 of 2 are NaN"),
        (np.zeros((2, 2, 2)), None, r"shape \(2, 2, 2\)"),
        ([[0, 2], [1, 0]], None, "only 0 and 1"),
        ([[0, 1], [1]], None, "list of sets"),
        (np.zeros((2, 3), int), ["a", "b"], "3 columns for 2 classes"),
        ([{1, "a"}, {2}], None, "class numbers from 0 or class names"),
        ([{1}, {5}], ["a", "b"], "5 is not a class"),
        (np.array([None, "a"]), None, "neither numbers nor words"),
        (np.array([1j, 0]), None, "dtype complex128"),
    ],
)
def test_labels_that_are_refused(labels, classes, message):
    with pytest.raises(InputError, match=message) as caught:
        read_labels(labels, 2, classes)
    assert "\n" not in str(caught.value)
