"""Edit similarity: against the table of distances, written out."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.quality import resolve
from testifai.quality.text_measures import edit_similarity


def distance(first, second):
    return round((1 - edit_similarity(first, second)) * max(len(first), len(second), 1))


def by_table(first, second):
    above = list(range(len(second) + 1))
    for row, one in enumerate(first, 1):
        here = [row]
        for column, other in enumerate(second, 1):
            here.append(min(above[column] + 1, here[-1] + 1, above[column - 1] + (one != other)))
        above = here
    return above[-1]


few_letters = st.text("abc", max_size=25)


@settings(max_examples=300, deadline=None)
@given(few_letters, few_letters)
def test_distances_are_those_of_the_table(first, second):
    expected = by_table(first, second)
    assert distance(first, second) == distance(second, first) == expected


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=30), st.text(max_size=30))
def test_any_texts_have_a_value_from_0_to_1(first, second):
    value = edit_similarity(first, second)
    assert 0 <= value <= 1
    assert value == edit_similarity(second, first)
    longer = max(len(first), len(second))
    assert value == pytest.approx(1 - by_table(first, second) / longer if longer else 1)


def test_known_values():
    assert edit_similarity("kitten", "sitting") == pytest.approx(1 - 3 / 7)
    assert edit_similarity("", "") == edit_similarity("same", "same") == 1
    assert edit_similarity("", "abc") == edit_similarity("abc", "xyz") == 0
    assert edit_similarity("a😀b", "a🙂b") == pytest.approx(2 / 3)
    assert edit_similarity("שלום", "שלו") == pytest.approx(3 / 4)
    assert edit_similarity("a\ud800", "a") == 0.5


def test_long_texts_with_few_edits_take_next_to_no_time():
    letters = random.Random(0)
    text = "".join(letters.choices("abcdefgh ", k=100_000))
    changed = list(text)
    for place in range(500, 100_000, 5_000):
        changed[place] = "X"
    changed.insert(50_001, "Y")
    del changed[70_003]
    start = time.process_time()
    assert distance(text, "".join(changed)) == 22
    assert time.process_time() - start < 1


def test_long_texts_that_differ_everywhere_are_measured_too():
    letters = random.Random(1)
    first, second = ("".join(letters.choices("abcd", k=600)) for _ in range(2))
    assert distance(first, second) == by_table(first, second) > 200


def test_texts_beyond_the_limit_are_refused_at_once():
    texts = ["a", "b" * 100_001]
    with pytest.raises(InputError, match="up to 100,000 characters; one has 100,001"):
        resolve("edit_similarity").reference(texts, None, seed=0)
    pairs = [("a", "b"), ("b" * 100_001, "a")]
    with pytest.raises(InputError, match="100,001"):
        resolve("edit_similarity").reference(pairs, None, seed=0)
    assert len(resolve({"use": "edit_similarity", "side": "second"}).reference(pairs, None, seed=0).rows) == 2
