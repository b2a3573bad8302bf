"""Edits of letters that leave the word what it is: its case, and letters of other scripts that look alike."""

from __future__ import annotations

import re
from collections.abc import Callable

from testifai.perturb.texts.edits import Kind
from testifai.perturb.texts.tokens import Place, words

# Pairs that Unicode's list of confusable characters (Technical Standard 39) maps to one form.
HOMOGLYPHS = str.maketrans(
    "aceijopsxyABCEHIJKMNOPSTXYZ",
    "асеіјорѕхуАВСЕНІЈКМΝОРЅТХΥΖ",
)
_ALIKE = re.compile("[" + "".join(map(chr, HOMOGLYPHS)) + "]")


def alike_places(text: str, shadow: str) -> list[Place]:
    """Letters that have a twin in the Cyrillic or Greek script."""
    return [found.span() for found in _ALIKE.finditer(shadow)]


def alike(text: str, shadow: str, place: Place, draw: float) -> str:
    """The letter's twin.

    >>> alike("cat", "cat", (1, 2), 0.5) == "\\N{CYRILLIC SMALL LETTER A}"
    True
    """
    return text[place[0]].translate(HOMOGLYPHS)


def case_places(text: str, shadow: str) -> list[Place]:
    """Words whose case can change."""
    found = words(shadow)
    return found if shadow.isascii() else [place for place in found if _variants(text[place[0] : place[1]])]


def case(text: str, shadow: str, place: Place, draw: float) -> str:
    """The word in another case: small, capital, or with a capital first.

    >>> case("new", "new", (0, 3), 0.1), case("new", "new", (0, 3), 0.9)
    ('NEW', 'New')
    """
    variants = _variants(text[place[0] : place[1]])
    return variants[int(draw * len(variants))]


def _variants(word: str) -> list[str]:
    small, capital = (
        (word.lower(), word.upper()) if word.isascii() else (_turned(word, str.lower), _turned(word, str.upper))
    )
    return [made for made in dict.fromkeys((small, capital, capital[0] + small[1:])) if made != word]


def _turned(word: str, turn: Callable[[str], str]) -> str:
    """Letter by letter, as far as each has one letter of the other case that leads back: "ß" stays, and so does "ı"."""
    others = [(letter, turn(letter)) for letter in word]
    return "".join(other if letter in (other.lower(), other.upper()) else letter for letter, other in others)


HOMOGLYPH = Kind(alike_places, alike)
CASE = Kind(case_places, case)
