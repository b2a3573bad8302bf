"""Two versions of a text, with what differs marked: in both, or in one that shows what was taken out and put in."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

MOST_TEXT = 400  # characters of a text that are shown
AROUND = 60  # characters shown on either side of an edit, where the text is longer
MOST_COMPARED = 20_000  # characters: what is compared of a very long text
MOST_PARTS = 600  # words, spaces and signs of a text that are shown with its edits in it
SAME, TAKEN, PUT = "same", "taken", "put"
WORDS = re.compile(r"\w+|\s+|.", re.DOTALL)


class Piece(NamedTuple):
    """A stretch of a text; `edited` where the other version does not have it."""

    text: str
    edited: bool = False


def marked(original: str, changed: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Both texts in pieces, word by word; of long ones, what is around the edits.

    >>> old, new = marked("the cat sat", "the cta sat")
    >>> old
    (Piece(text='the ', edited=False), Piece(text='cat', edited=True), Piece(text=' sat', edited=False))
    >>> [piece.text for piece in new if piece.edited]
    ['cta']
    """
    one, two = (WORDS.findall(text[:MOST_COMPARED]) for text in (original, changed))
    found: tuple[list[Piece], list[Piece]] = [], []
    for taken, put, edited in _stretches(one, two):
        for pieces, words in zip(found, (taken, put), strict=True):
            if words:
                pieces.append(Piece(words, edited))
    left, right = (_shortened(pieces) for pieces in found)
    return left, right


def edits(original: str, changed: str) -> list[tuple[str, str]]:
    """The changed text in pieces: those that are the same, taken out, put in.

    >>> edits("a dark night", "a drak night")
    [('same', 'a '), ('taken', 'dark'), ('put', 'drak'), ('same', ' night')]
    """
    old, new = WORDS.findall(original), WORDS.findall(changed)
    cut = max(len(old), len(new)) > MOST_PARTS
    pieces: list[tuple[str, str]] = []
    for taken, put, edited in _stretches(old[:MOST_PARTS], new[:MOST_PARTS]):
        pieces += [(TAKEN, taken), (PUT, put)] if edited else [(SAME, put)]
    pieces = [(kind, words) for kind, words in pieces if words]
    return [*pieces, (SAME, " …")] if cut else pieces


def sides(text: Any) -> tuple[str, ...]:
    """A text, or both of a pair."""
    return (text,) if isinstance(text, str) else tuple(map(str, text))


def unmarked(text: str) -> tuple[Piece, ...]:
    """A text by itself, as far as it is shown."""
    return _limited([Piece(text)])


def _stretches(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    """What stands in the old text, in the new one at the same place, and whether the two differ."""
    for kind, start, end, begin, stop in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        yield "".join(old[start:end]), "".join(new[begin:stop]), kind != "equal"


def _shortened(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """The pieces with long stretches that are the same left out."""
    if sum(len(piece.text) for piece in pieces) <= MOST_TEXT:
        return tuple(pieces)
    kept = []
    for place, piece in enumerate(pieces):
        text = piece.text
        if not piece.edited and len(text) > 2 * AROUND:
            before = text[:AROUND] if place else ""
            after = text[-AROUND:] if place < len(pieces) - 1 else ""
            # A text without any edit begins as it does.
            text = f"{before} … {after}" if before or after else text
        kept.append(Piece(text, piece.edited))
    return _limited(kept)


def _limited(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """As many characters as are shown."""
    left, kept = MOST_TEXT, []
    for piece in pieces:
        if len(piece.text) > left:
            kept.append(Piece(piece.text[: max(left - 1, 0)] + "…", piece.edited))
            break
        kept.append(piece)
        left -= len(piece.text)
    return tuple(kept)
