"""Typing mistakes: a neighbouring key, two letters swapped, one left out, one typed twice. At most one per word."""

from __future__ import annotations

from testifai.perturb.texts.edits import Kind
from testifai.perturb.texts.tokens import Place, clusters, words

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
