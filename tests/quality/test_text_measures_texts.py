"""What measures of texts share: sides of pairs, unchanged texts, and texts that come again."""

from __future__ import annotations

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.quality import text_measures as module
from testifai.quality.text_measures import TextCompare, sides_of


class Counting:
    """Scores a change by the share of its length that is left; it remembers what it was asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, changes):
        self.asked += changes
        return [len(perturbed) / len(clean) for clean, perturbed in changes]


def test_unchanged_texts_are_1_and_are_not_looked_at():
    score = Counting()
    compare = TextCompare("mine", ["abcd", "abcd", ""], "both", score)
    assert compare(["abcd", "ab", ""]).tolist() == [1.0, 0.5, 1.0]
    assert score.asked == [("abcd", "ab")]


def test_a_change_is_scored_once_however_often_it_comes():
    score = Counting()
    compare = TextCompare("mine", ["abcd"] * 3, "both", score)
    assert compare(["ab", "ab", "a"]).tolist() == [0.5, 0.5, 0.25]
    assert compare(["a", "ab", "abc"]).tolist() == [0.25, 0.5, 0.75]
    assert len(score.asked) == len(set(score.asked)) == 3


def test_memory_is_bounded_and_forgetting_changes_nothing(monkeypatch):
    monkeypatch.setattr(module, "_REMEMBERED", 2)
    score = Counting()
    compare = TextCompare("mine", ["abcd"] * 3, "both", score)
    for _ in range(2):
        assert compare(["a", "ab", "abc"]).tolist() == [0.25, 0.5, 0.75]
        assert compare(["abc", "abcde", "a"]).tolist() == [0.75, 1.25, 0.25]
    assert len(score.asked) < 12


@pytest.mark.parametrize(("side", "expected"), [("first", 0.5), ("second", 0.25), ("both", 0.375)])
def test_pairs_have_the_mean_of_the_sides_that_are_perturbed(side, expected):
    compare = TextCompare("mine", [("abcd", "efgh")], side, Counting())
    assert compare([("ab", "e")]).tolist() == [expected]


def test_single_texts_have_no_sides():
    assert sides_of("mine", ["a", "b"], "second") == [["a", "b"]]


def test_texts_may_come_in_an_array_of_objects():
    compare = TextCompare("mine", np.array(["ab", "cd"], object), "both", Counting())
    assert compare(np.array(["a", "cd"], object)).tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (np.zeros((3, 4)), r"float64 of shape \(3, 4\) \(ssim and kid compare images\)"),
        ("text", "these inputs are str"),
        (["a", 3], "one of these inputs is a int"),
        (["a", ("a", "b")], "one of these inputs is a tuple"),
        ([("a", "b"), "a"], "no pairs of texts"),
        ([("a", "b", "c")], "no pairs of texts"),
        ([("a", 3)], "no pairs of texts"),
    ],
)
def test_what_is_no_text_is_refused(batch, words):
    with pytest.raises(InputError, match=f"^quality: mine compares texts; .*{words}"):
        sides_of("mine", batch, "both")


def test_texts_and_pairs_are_not_mixed():
    with pytest.raises(InputError, match="both be texts, or both pairs"):
        TextCompare("mine", ["a"], "both", Counting())([("a", "b")])
