"""Sentence BLEU: against sacrebleu, and by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.quality.text_measures import bleu

words = st.lists(st.sampled_from("abcde"), min_size=1, max_size=12).map(" ".join)


@settings(max_examples=300, deadline=None)
@given(words, words)
def test_it_equals_sacrebleu(clean, perturbed):
    metrics = pytest.importorskip("sacrebleu.metrics.bleu")
    expected = metrics.BLEU(effective_order=True, tokenize="none", smooth_method="exp")
    assert bleu(clean, perturbed) == pytest.approx(expected.sentence_score(perturbed, [clean]).score / 100, abs=1e-9)


def test_it_is_the_formula():
    # 5 of 6 words, 3 of 5 pairs, 2 of 4 triples and 1 of 3 quadruples match; the lengths are equal.
    expected = (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** (1 / 4)
    assert bleu("the cat sat on the mat", "the cat sat on a mat") == pytest.approx(expected)
    # No triple of 2 and no quadruple of 1 matches: they count as half and a quarter of a match.
    expected = (3 / 4 * 1 / 3 * (1 / 2) / 2 * (1 / 4) / 1) ** (1 / 4)
    assert bleu("a b x d", "a b y d") == pytest.approx(expected)
    # Three of four words: a penalty for shortness.
    assert bleu("a b c d", "a b c") == pytest.approx(math.exp(1 - 4 / 3))
    # A word counts as often as the clean text has it.
    assert bleu("a b", "a a a") == pytest.approx((1 / 3 * (1 / 2) / 2 * (1 / 4) / 1) ** (1 / 3))


def test_words_and_marks_are_told_apart_and_white_space_is_not():
    assert bleu("What's this?", "What ' s this ?") == pytest.approx(1)
    assert bleu("one  two", "one\ttwo\n") == pytest.approx(1)
    assert 0 < bleu("one two.", "one two!") < 1
    assert bleu("naïve café 日本 😀", "naïve café 日本 😀 ") == pytest.approx(1)


@settings(max_examples=200, deadline=None)
@given(st.text(), st.text())
def test_any_texts_have_a_value_from_0_to_1(clean, perturbed):
    assert 0 <= bleu(clean, perturbed) <= 1 + 1e-9
    assert bleu(clean, clean) == pytest.approx(1)


def test_texts_without_words():
    assert bleu("", "") == bleu(" ", "\n") == 1
    assert bleu("", "a") == bleu("a", "") == bleu("a b", "c d") == 0


def test_long_texts_are_quick():
    text = "word " * 20_000
    assert 0.99 < bleu(text, text[:-5] + "other") < 1
