"""Texts under a configuration: what was taken out of them and what was put in."""

from __future__ import annotations

import difflib
import re
from typing import Any

MOST_PARTS = 600  # words, spaces and signs of a text that are shown
SAME, TAKEN, PUT = "same", "taken", "put"
PARTS = re.compile(r"\s+|\w+|[^\w\s]")


def sides(text: Any) -> tuple[str, ...]:
    """A text, or both of a pair."""
    return (text,) if isinstance(text, str) else tuple(map(str, text))


def edits(original: str, changed: str) -> list[tuple[str, str]]:
    """The changed text in pieces: those that are the same, taken out, put in.

    >>> edits("a dark night", "a drak night")
    [('same', 'a '), ('taken', 'dark'), ('put', 'drak'), ('same', ' night')]
    """
    old, new = PARTS.findall(original), PARTS.findall(changed)
    cut = max(len(old), len(new)) > MOST_PARTS
    old, new = old[:MOST_PARTS], new[:MOST_PARTS]
    pieces: list[tuple[str, str]] = []
    for kind, start, end, begin, stop in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        taken, put = "".join(old[start:end]), "".join(new[begin:stop])
        pieces += [(SAME, put)] if kind == "equal" else [(TAKEN, taken), (PUT, put)]
    pieces = [(kind, words) for kind, words in pieces if words]
    return [*pieces, (SAME, " …")] if cut else pieces
