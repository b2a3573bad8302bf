"""Each kind of edit: what it finds, and what it puts there."""

from __future__ import annotations

import re
import unicodedata
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.perturb import get
from testifai.perturb import text as kinds
from testifai.perturb.text import KINDS, edits
from testifai.perturb.text_edits import pick, shadow_of

MANY = 400


def outcomes(name, text, severity=1, count=MANY):
    """Everything that comes out of many draws for one text."""
    return set(get(f"text.{name}").apply([text] * count, severity))


def test_typos_are_exactly_the_four_kinds():
    near = {c: set(kinds.NEIGHBOURS[c]) for c in "cat"}
    expected = {"act", "cta", "at", "ct", "ca", "ccat", "caat", "catt"}
    expected |= {"cat"[:i] + key + "cat"[i + 1 :] for i, c in enumerate("cat") for key in near[c]}
    assert outcomes("typo", "cat", count=4000) == expected


def test_keys_that_touch():
    assert set(kinds.NEIGHBOURS["s"]) == set("awedzx")
    assert set(kinds.NEIGHBOURS["P"]) == set("OL")
    assert all(letter in kinds.NEIGHBOURS[other] for letter, near in kinds.NEIGHBOURS.items() for other in near)


def test_a_typo_keeps_letters_and_their_marks_together():
    text = "cafe\u0301"
    for made in outcomes("typo", text):
        assert not unicodedata.combining(made[0])
        # The mark follows the letter it was on, wherever that is; a neighbouring key can only take its place whole.
        assert "\u0301" not in made or re.search("e\u0301", made)


def test_contractions_both_ways():
    pairs = {
        "I am here": "I'm here",
        "We do not": "We don't",
        "CANNOT STOP": "CAN'T STOP",
        "Men will not go": "Men won't go",
        "Let us go": "Let's go",
        "They have seen": "They've seen",
    }
    for long, short in pairs.items():
        assert outcomes("contraction", long, count=3) == {short}
        assert outcomes("contraction", short, count=3) == {long}
    assert outcomes("contraction", "It’s late", count=3) == {"It is late"}
    assert outcomes("contraction", "can not do", count=3) == {"can't do"}


@pytest.mark.parametrize("text", ["I know what it is.", "the dog's bone", "idon't", "xI am"])
def test_no_contraction_here(text):
    found = [text[start:end] for start, end in KINDS["contraction"][0].places(text, shadow_of(text))]
    assert found == []


def test_every_contraction_leads_back():
    for long, short in kinds.SHORT.items():
        for text in (long, short):
            assert len(KINDS["contraction"][0].places(f"{text} go", f"{text} go")) == 1
        assert kinds.SHORT[kinds.LONG[short]] == short


def test_punctuation_is_put_in_taken_out_and_replaced():
    made = outcomes("punctuation", "Why so?")
    marks = kinds.MARKS
    assert made == {"Why so"} | {f"Why so{m}" for m in marks if m != "?"} | {f"Why{m} so?" for m in marks}


def test_punctuation_inside_numbers_stays():
    assert outcomes("punctuation", "3.5 12:30", 5) == {f"3.5{a} 12:30{b}" for a in kinds.MARKS for b in kinds.MARKS}


def test_whitespace():
    assert outcomes("whitespace", "a b") == {"a  b", "a\tb", "a\u00a0b", "ab"}
    assert outcomes("whitespace", "1 2") == {"1  2", "1\t2", "1\u00a02"}
    assert outcomes("whitespace", "see {x}") == {"see  {x}", "see\t{x}", "see\u00a0{x}"}
    assert outcomes("whitespace", " a ") == {" a "}


def test_case():
    assert outcomes("case", "new") == {"NEW", "New"}
    assert outcomes("case", "iPhone") == {"iphone", "IPHONE", "Iphone"}
    assert outcomes("case", "straße") == {"STRAßE", "Straße"}
    assert outcomes("case", "日本") == {"日本"}


def test_homoglyphs_are_letters_of_another_script_with_the_same_shape():
    for code, twin in kinds.HOMOGLYPHS.items():
        latin, other = unicodedata.name(chr(code)), unicodedata.name(chr(twin))
        assert latin.startswith("LATIN")
        assert other.split()[0] in ("CYRILLIC", "GREEK")
        assert latin.split()[1] == other.split()[1]
    assert outcomes("homoglyph", "cat 日") == {"сat 日", "cаt 日"}


def test_fillers():
    assert outcomes("filler", "Is it so?") == {f"Is {f} it so?" for f in kinds.FILLERS} | {
        f"Is it {f} so?" for f in kinds.FILLERS
    }
    assert outcomes("filler", "Why?") == {"Why?"}


def test_numbers_both_ways():
    for value, word in enumerate(kinds.NUMBERS):
        assert outcomes("number", f"{value} men", count=2) == {f"{word} men"}
        if word != "one":
            assert outcomes("number", f"{word.capitalize()} men", count=2) == {f"{value} men"}
    assert len(kinds.NUMBERS) == 100 == len(set(kinds.NUMBERS))
    assert outcomes("number", "twenty two men", count=2) == {"22 men"}


@pytest.mark.parametrize(
    "text",
    ["no one", "3.5", "$5", "5%", "12:30", "1/2", "2016", "007", "3rd", "5-6", "v2", "twofold", "1,000", "½", "٣"],
)
def test_these_are_no_numbers_to_write_out(text):
    assert outcomes("number", text, count=5) == {text}


def test_order():
    assert outcomes("order", "a b c d") == {"b a c d", "a c b d", "a b d c"}
    assert outcomes("order", "a b c d", 2) == outcomes("order", "a b c d", 5) == {"b a d c"}
    assert outcomes("order", "a, b") == {"a, b"}
    assert outcomes("order", "that that") == {"that that"}
    assert outcomes("order", "one  two") == {"two  one"}


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(2, 6), max_size=3), st.integers(1, 5), st.lists(st.floats(0, 0.999), min_size=5, max_size=5)
)
def test_as_many_swaps_as_a_brute_force_finds(lengths, number, draws):
    found, place = [], 0
    for length in lengths:
        found.append([(place + 2 * i, place + 2 * i + 1) for i in range(length)])
        place += 2 * length
    pairs = [(a[0], b[1]) for run in found for a, b in pairwise(run)]
    apart = [
        size
        for size in range(number + 1)
        if any(all(x[1] < y[0] for x, y in pairwise(some)) for some in combinations(pairs, size))
    ]
    chosen = kinds._pairs(found, number, draws[:number])
    assert len(chosen) == max(apart)
    assert set(chosen) <= set(pairs)
    assert all(x[1] < y[0] for x, y in pairwise(chosen))


@given(st.integers(0, 9), st.integers(1, 5), st.lists(st.floats(0, 0.999999), min_size=5, max_size=5))
def test_pick_takes_different_places_in_order(count, number, draws):
    places = [(i, i) for i in range(count)]
    chosen = pick(places, number, draws)
    assert len(chosen) == min(number, count)
    assert chosen == sorted(set(chosen))
    assert set(chosen) <= set(places)


def test_every_set_of_places_is_picked():
    report = edits("text.homoglyph", ["aceo"] * MANY, 2)
    pairs = {tuple(edit.start for edit in made) for made in report.made}
    assert pairs == set(combinations(range(4), 2))


def test_synonyms_come_from_the_table():
    known = kinds.synonyms()
    assert 30_000 < len(known) < 40_000
    assert outcomes("synonym", "buy") == {"purchase"}
    assert outcomes("synonym", "a car.") == {f"a {other}." for other in known["car"][1]}
    assert outcomes("synonym", "Car") == {other.capitalize() for other in known["car"][1]}


@pytest.mark.parametrize("text", ["the Car", "CAR", "cars", "can you see it", "car2", "{car}", "un-car"])
def test_these_have_no_synonym(text):
    assert outcomes("synonym", text, count=5) == {text}


def test_the_table_is_of_single_words_by_part_of_speech():
    for word, (part, others) in kinds.synonyms().items():
        assert part in ("n", "v", "a", "r")
        assert len({word, *others}) == 1 + len(others) > 1
        assert all(re.fullmatch("[a-z]{3,}", one) for one in (word, *others))
    assert not {"can", "will", "have", "with", "who", "what"} & set(kinds.synonyms())


def test_the_licence_of_the_table_is_shipped():
    from importlib.resources import files

    text = (files("testifai.perturb") / "assets" / "WORDNET-LICENSE.txt").read_text()
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in text
