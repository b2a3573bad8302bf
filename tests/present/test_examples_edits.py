"""Edits of texts: nothing is lost, what is the same is the same on both sides, and long texts keep their edits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from testifai.present.examples import MOST_TEXT, PUT, SAME, TAKEN, edits, marked, thumb

SHORT = st.text(max_size=MOST_TEXT)


def joined(pieces, edited=None):
    return "".join(piece.text for piece in pieces if edited is None or piece.edited == edited)


@given(SHORT, SHORT)
def test_the_pieces_make_up_both_texts_and_agree_on_what_is_the_same(original, changed):
    old, new = marked(original, changed)
    assert (joined(old), joined(new)) == (original, changed)
    assert joined(old, edited=False) == joined(new, edited=False)
    if original == changed:
        assert not any(piece.edited for piece in (*old, *new))


@given(st.text(min_size=MOST_TEXT + 1, max_size=3000))
def test_long_texts_are_cut(text):
    for pieces in (thumb(text).pieces[0], *marked(text, text)):
        assert len(joined(pieces)) <= MOST_TEXT
        assert joined(pieces).startswith(text[: MOST_TEXT - 1])


def test_an_edit_deep_in_a_long_text_is_shown():
    words = ["word"] * 400
    old, new = marked(" ".join([*words, "cat", *words]), " ".join([*words, "bat", *words]))
    assert [piece.text for piece in old if piece.edited] == ["cat"]
    assert [piece.text for piece in new if piece.edited] == ["bat"]
    assert old[0].text.startswith(" … ")
    assert len(joined(old)) < MOST_TEXT


# -- one text with its edits in it

WORDS = st.lists(st.sampled_from(["dark", "night", " ", "  ", "a", ",", "é", "\n", "?!"]), max_size=30).map("".join)


@given(WORDS, WORDS)
def test_both_texts_can_be_read_off_the_edits(original, changed):
    pieces = edits(original, changed)
    assert "".join(words for kind, words in pieces if kind != PUT) == original
    assert "".join(words for kind, words in pieces if kind != TAKEN) == changed
    assert all(words for _, words in pieces)


def test_what_did_not_change_is_not_marked():
    assert edits("the same", "the same") == [(SAME, "the same")]
    assert edits("", "") == []


def test_a_long_text_is_cut():
    pieces = edits("word " * 5000, "word " * 5000)
    assert len("".join(words for _, words in pieces)) < 6000
    assert pieces[-1] == (SAME, " …")
