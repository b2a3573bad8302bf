"""What is protected, and what a word is."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testifai.perturb.text_edits import clusters, in_case_of, shadow_of, words


@pytest.mark.parametrize(
    "span",
    [
        "{name}",
        "{}",
        "{{ user.name }}",
        "${path}",
        "$name",
        "<b>",
        "</b>",
        '<a href="x">',
        "%s",
        "%(name)s",
        "%.2f",
        "%1$s",
        "[MASK]",
        "https://a.example/b?c=d#e",
        "ftp://x.example",
        "www.quora.com/some-page",
        "quora.com",
        "bbc.co.uk",
        "jane.doe+x@mail.example.org",
        "@someone",
        "#topic",
        '"two words, three"',
        "“two words”",
        "„zwei Wörter“",
        "«deux mots»",
        "`some code`",
        "‘one two’",
        "'don't go'",
    ],
)
def test_protected_spans(span):
    text = f"Do they see {span} now"
    assert shadow_of(text) == f"Do they see {'_' * len(span)} now"


@pytest.mark.parametrize(
    "text", ["don't you", "the dogs' bones", "3 < 5 and 6 > 4", "50% of it", "a {b", '5" wide', "i.e. so"]
)
def test_nothing_to_protect(text):
    assert shadow_of(text) == text


@given(st.text(st.characters()) | st.text("ab {}<>\"'%s@.\u0301\u200d❤\ufe0f"))
def test_the_shadow_has_the_texts_length_and_shows_what_is_not_covered(text):
    shadow = shadow_of(text)
    assert len(shadow) == len(text)
    for own, shown in zip(text, shadow, strict=True):
        assert shown in (own, "_", "ª")
    for start, end in words(shadow):
        # A word begins with a letter and holds nothing but letters, their marks, apostrophes and hyphens.
        assert text[start].isalnum()
        for character in text[start:end]:
            joins = unicodedata.category(character)[0] == "M" or character in "'’-\u200c\u200d"
            assert character.isalnum() or joins


@given(st.text(st.characters(), max_size=20))
def test_clusters_put_together_are_the_word(word):
    assert "".join(clusters(word)) == word


def test_words():
    text = "Why isn't the well-known 3rd B2B x_y नमस्ते here?"
    shadow = shadow_of(text)
    assert [text[a:b] for a, b in words(shadow)] == ["Why", "isn't", "the", "well-known", "नमस्ते", "here"]


def test_case_of_the_old_word():
    assert in_case_of("purchase", "buy") == "purchase"
    assert in_case_of("purchase", "Buy") == "Purchase"
    assert in_case_of("i am", "I'M") == "I AM"


@pytest.mark.parametrize(
    "piece",
    ["a", "a ", " ", "a-", "'a", "' ", "a.", "a@", "{", "<a ", '"', "%(", "[a", "“a", "‘a’", "\u0301", "two ", "I am "],
)
def test_long_texts_take_linear_time(piece):
    text = piece * (40_000 // len(piece))
    begin = time.process_time()
    shadow = shadow_of(text)
    words(shadow)
    # A search that is quadratic in the length would take minutes.
    assert time.process_time() - begin < 2
    assert len(shadow) == len(text)
