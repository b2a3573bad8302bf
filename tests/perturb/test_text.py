"""The suite of edits of texts: exactly as many edits as asked for, of the one kind, and nowhere else."""

from __future__ import annotations

import difflib
import time
import unicodedata

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.perturb import get, text_edits
from testifai.perturb.text import KINDS, edits
from testifai.testing import check_perturbation

NAMES = [f"text.{kind}" for kind in KINDS]
# Every kind has at least five places in each.
TEXTS = [
    "I do not know what is wrong, but it's 5 or six or 7 or 8 or nine people: they are late, I can't buy, we won't!",
    "There is no help for 3 men who don't learn; you're 4 or 10 miles off, I'm 11, she isn't, twelve do not start.",
    "What is the answer: two or 3 big dogs, 4 cats, five cows, 6 hens? I have seen it's hard, we aren't, I don't.",
    "Where is the phone he cannot buy? You will pay 20, thirty, 40, 50 or sixty; I'd begin, they haven't, it's bad.",
]
TEXTS = [f"{text} Ask a doctor, improve the job, help the child and answer quickly." for text in TEXTS]
PIECES = [
    "What is the best way to learn?",
    "don't",
    "I am",
    "two",
    "7",
    "{name}",
    "{{ slot }}",
    "<b>bold</b>",
    "%s",
    "%(count)d",
    "https://a.example/x?y=1",
    "me@mail.example.org",
    "www.quora.com",
    '"a quoted span, two"',
    "“I am”",
    "'it is'",
    "@someone",
    "cafe\u0301",
    "\u0928\u092e\u0938\u094d\u0924\u0947",
    "שלום עולם",
    "مرحبا، كيف؟",
    "日本語。",
    "👩\u200d💻",
    "❤\ufe0f",
    "1\ufe0f\u20e3",
    "\ud800",
    "\udcff",
    "ß",
    "ŒUVRE",
    "x²",
    "½",
    "3.5",
    "\u0301",
    "\x00",
    "\n",
    "_",
    "that that",
    "the the",
    "twenty one",
]


def texts_strategy():
    """Pieces that mean something to some kind, random characters of all planes, and surrogates."""
    piece = st.sampled_from(PIECES) | st.text(st.characters(), max_size=8) | st.text("ab 'I\"{}<>%-.,?", max_size=10)
    return st.lists(piece, max_size=9).flatmap(
        lambda pieces: st.sampled_from([" ", "", "  ", ", "]).map(lambda joint: joint.join(pieces))
    )


def letters_of(text):
    return [c for c in text if not c.isspace()]


def others_of(text):
    """What is neither a letter nor a part of one."""
    return [c for c in text if not c.isalnum() and unicodedata.category(c) not in ("Mn", "Mc", "Me", "Cf")]


@pytest.mark.parametrize("name", NAMES)
def test_contract(name):
    check_perturbation(name, TEXTS * 3)
    check_perturbation(name, np.array(TEXTS, dtype=object), growing=False)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("severity", range(1, 6))
def test_where_there_are_places_the_number_of_edits_is_the_severity(name, severity):
    report = edits(name, TEXTS * 5, severity)
    assert report.counts.tolist() == [severity] * 20
    assert (report.short, report.untouched) == (0, 0)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(batch=st.lists(texts_strategy(), min_size=1, max_size=4), severity=st.integers(1, 5), seed=st.integers(0, 99))
def test_any_text(name, batch, severity, seed):
    subject = get(name)
    before = list(batch)
    changed = subject.apply(batch, severity, seed=seed)
    assert batch == before
    assert subject.apply(batch, severity, seed=seed) == changed
    alone = [subject.apply([text], severity, seed=seed, indices=[place])[0] for place, text in enumerate(batch)]
    assert alone == changed
    report = edits(name, batch, severity, seed=seed)
    most = edits(name, batch, 5, seed=seed).counts
    for text, new, made, places in zip(batch, changed, report.made, most, strict=True):
        # Exactly as many as asked for, or all the places there are.
        assert len(made) == min(severity, places)
        assert (new == text) == (len(made) == 0)
        check_edits(text, new, made)
        check_protected(text, new)
        check_kind(name, text, new, made)


def check_edits(text, new, made):
    """Each edit changes its span, no two overlap, and together they turn the text into the new one."""
    rebuilt, done = "", 0
    for edit in made:
        assert done <= edit.start <= edit.end <= len(text)
        assert text[edit.start : edit.end] != edit.new
        rebuilt += text[done : edit.start] + edit.new
        done = edit.end
    assert rebuilt + text[done:] == new


def check_protected(text, new):
    place = 0
    for found in text_edits._PROTECTED.finditer(text_edits._plain(text)):
        span = text[found.start() : found.end()]
        place = new.find(span, place)
        assert place >= 0
        place += len(span)


def check_kind(name, text, new, made):
    """What the other kinds change stays."""
    if name == "text.case":
        assert unicodedata.normalize("NFC", new).casefold() == unicodedata.normalize("NFC", text).casefold()
        assert len(new) == len(text)
    elif name == "text.whitespace":
        assert letters_of(new) == letters_of(text)
    elif name == "text.punctuation":
        marks = set(",.;:!?…،؛؟、。，！？；：")
        assert [c for c in new if c not in marks] == [c for c in text if c not in marks]
    elif name == "text.homoglyph":
        assert len(new) == len(text)
        assert sum(a != b for a, b in zip(text, new, strict=True)) == len(made)
    elif name == "text.order":
        assert sorted(new) == sorted(text)
        assert sorted(new.split()) == sorted(text.split()) or any(c in text for c in "-'’.,?;:!") or not text.isascii()
    elif name == "text.filler":
        assert all(edit.start == edit.end for edit in made)
    elif name == "text.typo":
        assert others_of(new) == others_of(text)
        assert len(new.split()) == len(text.split())


@pytest.mark.parametrize("name", NAMES)
def test_texts_without_a_place_are_counted(name):
    texts = [
        "",
        " ",
        "?!" if name != "text.punctuation" else "()",
        "👍",
        "{name}",
        "http://a.b/c",
        '"I am two, it\'s"',
        TEXTS[0],
    ]
    report = edits(name, texts, 3)
    assert report.counts.tolist() == [0] * 7 + [3]
    assert (report.short, report.untouched) == (7, 7)
    assert "7 of them for none" in str(report)
    assert get(name).apply(texts, 3)[:7] == texts[:7]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("piece", ["a", "a-", "a.", " ", "\u0301", "I am two "])
def test_long_texts_take_linear_time(name, piece):
    text = piece * (40_000 // len(piece))
    begin = time.process_time()
    report = edits(name, [text], 5)
    assert time.process_time() - begin < 0.8
    assert report.counts[0] in (0, 1, 5)


def test_draws_follow_the_number_of_the_input_and_the_seed():
    typo = get("text.typo")
    many = typo.apply([TEXTS[0]] * 200, 1)
    # About a hundred letters with several mistakes each: few of 200 coincide.
    assert len(set(many)) > 100
    assert typo.apply([TEXTS[0]] * 200, 1, seed=1) != many


@pytest.mark.parametrize("name", NAMES)
def test_every_place_is_about_equally_likely(name):
    text, count = TEXTS[0], 900
    starts = [made[0].start for made in edits(name, [text] * count, 1).made]
    seen = np.unique(starts, return_counts=True)[1]
    expected = count / len(seen)
    # Six standard deviations of a binomial count.
    assert np.abs(seen - expected).max() < 6 * np.sqrt(expected)


def test_arrays_of_objects_and_lists_agree():
    for name in NAMES:
        array = get(name).apply(np.array(TEXTS, dtype=object), 2, seed=3)
        assert array.dtype == object
        assert array.tolist() == get(name).apply(TEXTS, 2, seed=3)


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (np.array(["a b"]), "dtype object"),
        (np.zeros((2, 3)), "dtype object"),
        (np.array([["a", "b"]], dtype=object), "one text per input"),
        (np.array(["a", 3.5], dtype=object), r"texts\[1\]: 3.5 is a float"),
        (np.array([None, "a"], dtype=object), r"texts\[0\]: None is a NoneType"),
        (np.array([b"a"], dtype=object), "bytes"),
        (["a", None], "list of strings"),
        ([], "no inputs"),
    ],
)
def test_what_is_no_text_is_one_line(batch, words):
    for call in (lambda: get("text.typo").apply(batch, 1), lambda: edits("text.typo", batch, 1)):
        with pytest.raises(InputError, match=words) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_edits_of_other_perturbations_and_severities():
    with pytest.raises(InputError, match="suite 'text'"):
        edits("mnist_c.zoom", ["a"], 1)
    with pytest.raises(InputError, match="severity: must be a whole number, at least 0 and at most 5, got 6"):
        edits("text.typo", ["a"], 6)
    assert edits("text.typo", ["one two"], 0).counts.tolist() == [0]
    assert edits("text.typo", ["one two"], 0).untouched == 0


def test_the_result_is_close_to_the_original():
    """One edit of a question leaves most of it."""
    for name in NAMES:
        for text, new in zip(TEXTS, get(name).apply(TEXTS, 1), strict=True):
            assert difflib.SequenceMatcher(None, text, new, autojunk=False).ratio() > 0.9
