"""Pairs of texts: which side is changed, and that a side's texts come out as they do alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import testifai as ta
from testifai import data
from testifai.engine.subject import ShownInputs
from testifai.errors import InputError
from testifai.perturb import apply, get
from testifai.perturb.text import KINDS, edits
from testifai.testing import check_perturbation

TYPO = get("text.typo")
PAIRS = [
    ("What is the best way to learn a language?", "How do I learn 7 languages quickly?"),
    ("Is it a car?", "Is it a car?"),
    ("", "I don't know what they are asking for."),
    ("Ünïcode 👍🏽 everywhere", "שלום עולם, מה שלומך היום"),
]
FIRSTS, SECONDS = map(list, zip(*PAIRS, strict=True))
# Whatever text there is: emoji, right to left, half characters, nothing at all.
texts = st.text(max_size=40) | st.text(st.characters(categories=("Cs", "Lu", "Zs")), max_size=5)


def test_one_side_is_changed_and_the_other_stays():
    first = TYPO.apply(PAIRS, 2, seed=3, side="first")
    assert [pair[1] for pair in first] == SECONDS
    assert [pair[0] for pair in first] == TYPO.apply(FIRSTS, 2, seed=3)
    second = TYPO.apply(PAIRS, 2, seed=3, side="second")
    assert [pair[0] for pair in second] == FIRSTS
    assert [pair[1] for pair in second] != SECONDS
    assert all(type(pair) is tuple for pair in first + second)


def test_both_sides_are_the_two_sides_together():
    both = TYPO.apply(PAIRS, 2, seed=3)
    first, second = (TYPO.apply(PAIRS, 2, seed=3, side=side) for side in ("first", "second"))
    assert both == [(one[0], other[1]) for one, other in zip(first, second, strict=True)]


def test_equal_texts_of_a_pair_are_changed_independently():
    text = "What is the best way to learn a foreign language in a short time?"
    changed = TYPO.apply([(text, text)] * 400, 1)
    alike = sum(one == other for one, other in changed)
    # Fourteen words with several mistakes each: two in the same place of the same kind are rare.
    assert alike < 40
    assert len({one for one, _ in changed}) > 30


def test_a_perturbation_of_ones_own_gets_plain_lists_of_strings():
    seen = []

    def shout(batch, factor, rng):
        seen.append((batch, len(rng)))
        return [text.upper() for text in batch]

    subject = ta.Perturbation("shout", shout, [0, 1], levels=(0, 1))
    assert subject.apply(PAIRS, 1, side="second") == [(one, other.upper()) for one, other in PAIRS]
    assert seen == [(SECONDS, len(PAIRS))]
    assert subject.apply_level(PAIRS, 0.5, side="first") == [(one.upper(), other) for one, other in PAIRS]
    assert subject.apply(PAIRS, 0) is PAIRS


def test_composites_take_a_side():
    composite = {"text.typo": 1, "text.case": 2}
    changed = apply(composite, PAIRS, seed=5, side="first")
    assert changed == get("text.case").apply(TYPO.apply(PAIRS, 1, seed=5, side="first"), 2, seed=5, side="first")
    assert [pair[1] for pair in changed] == SECONDS


@pytest.mark.parametrize("side", ["left", None, 1, ("first",)])
def test_other_sides_are_refused(side):
    with pytest.raises(InputError, match=r"^side: must be one of first, second, both"):
        TYPO.apply(PAIRS, 1, side=side)


@pytest.mark.parametrize("row", ["text", ("a",), ("a", "b", "c"), ("a", None), ["a", "b"], None])
def test_what_is_no_pair_is_named(row):
    with pytest.raises(InputError, match=r"^batch: its row 1 is .*; give a list of pairs \(first, second\)") as caught:
        TYPO.apply([("a", "b"), row], 1)
    assert "\n" not in str(caught.value)


def test_the_report_counts_pairs():
    pairs = [("What is it?", "Hello"), ("Hello", "Hi"), ("I don't know what is wrong.", "What's that? What is it?")]
    report = edits("text.contraction", pairs, 2)
    assert report.counts.tolist() == [1, 0, 4]
    assert (report.short, report.untouched) == (2, 1)
    assert "6 texts of pairs; 2 pairs had places for fewer, 1 of them for none" in str(report)
    first = edits("text.contraction", pairs, 2, side="first")
    assert first.made == edits("text.contraction", [pair[0] for pair in pairs], 2).made == report.made[::2]
    second = edits("text.contraction", pairs, 2, side="second")
    assert second.made == report.made[1::2]
    assert edits("text.contraction", pairs, 0).counts.tolist() == [0, 0, 0]


def write(text: str, made) -> str:
    for edit in reversed(made):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=6), st.sampled_from(sorted(KINDS)), st.integers(1, 5))
@settings(deadline=None, max_examples=25)
def test_any_pairs_are_changed_as_their_texts_alone_are(pairs, kind, severity):
    subject = get(f"text.{kind}")
    indices = 7 * np.arange(len(pairs)) + 3
    whole = subject.apply(pairs, severity, seed=1, indices=indices)
    assert [pair[0] for pair in whole] == subject.apply([pair[0] for pair in pairs], severity, seed=1, indices=indices)
    alone = [
        subject.apply([pair], severity, seed=1, indices=[index])[0] for pair, index in zip(pairs, indices, strict=True)
    ]
    assert alone == whole
    made = edits(subject, pairs, severity, seed=1, indices=indices).made
    flat = [text for pair in pairs for text in pair]
    assert [text for pair in whole for text in pair] == [write(*one) for one in zip(flat, made, strict=True)]


@pytest.mark.parametrize("kind", ["typo", "punctuation", "whitespace", "synonym"])
def test_very_long_texts(kind):
    long = "What is the best way to learn it? " * 1500
    changed = get(f"text.{kind}").apply([(long, "short text"), ("", long)], 5)
    assert changed[0][0] != long
    assert changed[1][0] == ""
    assert abs(len(changed[0][0]) - len(long)) < 200


def test_the_contract_holds_for_pairs():
    check_perturbation(TYPO, [(one * 3, other * 3) for one, other in PAIRS if one])


def test_a_composite_is_built_for_the_side_of_the_data():
    space = ta.Space({"typo": "text.typo", "again": "text.typo"})
    order = np.array([2, 0, 3, 1])
    for side in ("first", "second", "both"):
        subject = ShownInputs(data.from_arrays(PAIRS, side=side), space, order, seed=9)
        batch = subject.composite((2, 1), np.arange(4))
        shuffled = [PAIRS[row] for row in order]
        expected = TYPO.apply(shuffled, 2, seed=9, indices=order, side=side)
        assert batch == TYPO.apply(expected, 1, seed=9, indices=order, occurrence=1, side=side)


def test_results_do_not_depend_on_batches_or_threads():
    pairs = [(f"{one} {number}", f"{other} {number}") for number in range(30) for one, other in PAIRS]
    labels = np.arange(len(pairs)) % 2

    class Model:
        fingerprint, thread_safe, outputs, name = "lengths", True, "labels", "lengths"

        def __call__(self, batch):
            # Two strings in a tuple, as a user's model may unpack them.
            return np.array([(len(one) + 3 * len(other)) % 2 for one, other in batch])

    space = ta.Space({"typo": ("text.typo", [0, 1, 3]), "filler": ("text.filler", [0, 2])})
    grids = []
    for batch_size, workers in ((1, 1), (7, 2), (None, 1)):
        given_data = data.from_arrays(pairs, labels, side="second")
        tomogram = ta.scan(Model(), given_data, space, strategy="full", batch_size=batch_size, workers=workers)
        grids.append(tomogram.passes.tolist())
    assert grids[0] == grids[1] == grids[2]
    assert len({count for row in grids[0] for count in row}) > 2
