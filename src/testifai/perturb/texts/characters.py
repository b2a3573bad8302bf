"""Typing mistakes: a neighbouring key, two letters swapped, one left out, one typed twice. At most one per word."""

from __future__ import annotations

import re
from collections.abc import Callable

from testifai.perturb.texts.edits import Kind, Place, Spans, clusters, words

# Pairs that Unicode's list of confusable characters (Technical Standard 39) maps to one form.
HOMOGLYPHS = str.maketrans(
    "aceijopsxyABCEHIJKMNOPSTXYZ",
    "асеіјорѕхуАВСЕНІЈКМΝОРЅТХΥΖ",
)
_ALIKE = re.compile("[" + "".join(map(chr, HOMOGLYPHS)) + "]")


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


HOMOGLYPH = Kind(Spans(_ALIKE), alike)
CASE = Kind(case_places, case)


_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
# How far, in widths of a key, a row of a common keyboard is to the right of the one above it.
_SHIFTS = (0.0, 0.25, 0.75)


def _neighbours() -> dict[str, str]:
    """The letters whose keys touch a letter's key, small and capital."""
    keys = {
        letter: (place + shift, row)
        for row, (letters, shift) in enumerate(zip(_ROWS, _SHIFTS, strict=True))
        for place, letter in enumerate(letters)
    }
    near = {
        letter: "".join(
            other for other, (x, y) in keys.items() if other != letter and abs(y - b) <= 1 and abs(x - a) <= 1
        )
        for letter, (a, b) in keys.items()
    }
    return near | {letter.upper(): others.upper() for letter, others in near.items()}


NEIGHBOURS = _neighbours()


def places(text: str, shadow: str) -> list[Place]:
    """Words of at least two characters: with one left out, something is left."""
    return [(start, end) for start, end in words(shadow) if end - start > 1]


def change(text: str, shadow: str, place: Place, draw: float) -> str:
    """The word with one mistake; each of the four is equally likely where the word has a place for it.

    >>> change("what", "what", (0, 4), 0.3), change("what", "what", (0, 4), 0.6), change("what", "what", (0, 4), 0.9)
    ('hwat', 'wat', 'whaat')
    """
    letters = clusters(text[place[0] : place[1]])
    own = [number for number, letter in enumerate(letters) if letter[0].isalnum()]
    kind, draw = divmod(draw * 4, 1)
    if kind == 0:
        keyed = [number for number in own if letters[number] in NEIGHBOURS]
        if keyed:
            number, rest = _choice(keyed, draw)
            near = NEIGHBOURS[letters[number]]
            letters[number] = near[int(rest * len(near))]
            return "".join(letters)
    if kind <= 1:
        pairs = [
            n for n in own if n + 1 < len(letters) and letters[n + 1][0].isalnum() and letters[n] != letters[n + 1]
        ]
        if pairs:
            number, _ = _choice(pairs, draw)
            letters[number : number + 2] = letters[number + 1], letters[number]
            return "".join(letters)
    number, _ = _choice(own, draw)
    # What has one letter only, with its marks, is doubled: nothing would be left of it.
    letters[number] = "" if kind <= 2 and len(letters) > 1 else letters[number] * 2
    return "".join(letters)


def _choice(numbers: list[int], draw: float) -> tuple[int, float]:
    """One of the numbers, and a fresh draw from what the choice has left over."""
    place, rest = divmod(draw * len(numbers), 1)
    return numbers[int(place)], rest


TYPO = Kind(places, change)


MARKS = ",.;:!?"
# A mark with no letter or digit right behind it (3.5 and 12:30 stay), or the end of a word before a gap.
_MARK = re.compile(r"[,.;:!?…،؛؟、。，！？；：](?!\w)|(?<=[^\W_])(?=\s|\Z)")
_GAP = re.compile(r"(?<=\S)\s+(?=\S)")


def mark(text: str, shadow: str, place: Place, draw: float) -> str:
    """A mark where there is none; where there is one, another or nothing.

    >>> mark("Why?", "Why?", (3, 4), 0.1), mark("Why?", "Why?", (3, 4), 0.9), mark("Why so", "Why so", (3, 3), 0.1)
    ('', '!', ',')
    """
    start, end = place
    if start == end:
        return MARKS[int(draw * len(MARKS))]
    # Taken out as often as replaced.
    others = MARKS.replace(text[start], "")
    return "" if draw < 0.5 else others[int((2 * draw - 1) * len(others))]


def gap(text: str, shadow: str, place: Place, draw: float) -> str:
    """The gap a space wider, with a tab or a no-break space for its last space, or a space less.

    Only two words can be joined: a number, a mark or a protected span keeps its gap.

    >>> gap("so what", "so what", (2, 3), 0.1), gap("so what", "so what", (2, 3), 0.9)
    ('  ', '')
    """
    start, end = place
    old = text[start:end]
    options = [old + " ", old[:-1] + "\t", old[:-1] + "\u00a0"]
    if len(old) > 1 or (shadow[start - 1].isalpha() and shadow[end].isalpha()):
        options.append(old[:-1])
    options = [made for made in options if made != old]
    return options[int(draw * len(options))]


PUNCTUATION = Kind(Spans(_MARK), mark)
WHITESPACE = Kind(Spans(_GAP), gap)
