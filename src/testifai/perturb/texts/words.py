"""Edits of whole words: neighbours swapped, fillers put in, numbers written the other way."""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from itertools import groupby
from operator import itemgetter

from testifai.perturb.texts.edits import WORD, Kind, Place, Spans, in_case_of

FILLERS = ("actually", "basically", "really", "just", "honestly", "kind of", "you know", "well", "like", "um")
# The start of a word with another word or number before it, and only a gap between them.
_BETWEEN = re.compile(r"(?<=[^\W_]\s)(?=[^\W\d_])")

_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = (
    "ten",
    "eleven",
    "twelve",
    *(f"{stem}teen" for stem in ("thir", "four", "fif", "six", "seven", "eigh", "nine")),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
NUMBERS = (*_DIGITS, *_TEENS, *(f"{ten}-{one}" if value else ten for ten in _TENS for value, one in enumerate(_DIGITS)))
# "one" is as often a pronoun as a number.
_VALUES = {word: str(value) for value, word in enumerate(NUMBERS) if word != "one"}
# Numbers that stand alone: no part of a date, an amount, a range, a version or a longer number.
_NUMBER = re.compile(
    r"(?<![\w.,:/$€£¥%+'’-])(?=[0-9efnstzEFNSTZ])"
    r"(?:(?:[1-9][0-9]?|0)(?![\w%°€$£'’]|[.,:/-]\w)"
    rf"|(?ai:(?:{'|'.join(_TENS)})(?:[-\s](?:{'|'.join(_DIGITS[1:])}))?|{'|'.join((*_TEENS, 'zero', *_DIGITS[2:]))})"
    r"(?![\w'’-]))"
)


def filler(text: str, shadow: str, place: Place, draw: float) -> str:
    """A filler and a space.

    >>> filler("how so", "how so", (4, 4), 0.0)
    'actually '
    """
    return FILLERS[int(draw * len(FILLERS))] + " "


def number(text: str, shadow: str, place: Place, draw: float) -> str:
    """The number in words, or in digits.

    >>> number("21 men", "21 men", (0, 2), 0.5), number("Forty men", "Forty men", (0, 5), 0.5)
    ('twenty-one', '40')
    """
    old = text[place[0] : place[1]]
    return NUMBERS[int(old)] if old.isdigit() else _VALUES["-".join(old.lower().split())]


def runs(text: str, shadow: str) -> list[list[Place]]:
    """Words that follow each other with nothing but a gap between them.

    Two equal words end a run between them: to swap them would change nothing.
    """
    found: list[list[Place]] = []
    last_end = -1
    last = ""
    for match in WORD.finditer(shadow):
        start, end = match.span()
        word = text[start:end]
        if last_end >= 0 and word != last and shadow[last_end:start].isspace():
            found[-1].append((start, end))
        else:
            found.append([(start, end)])
        last_end, last = end, word
    return [run for run in found if len(run) > 1]


def neighbours(found: Sequence[list[Place]], number: int, draws: Sequence[float]) -> list[Place]:
    """So many pairs of neighbours, no word in two of them; as many as there can be where that is fewer.

    A run of n words has n // 2 pairs. A pair costs one of them, or two where the run is even and an odd number of
    words stays before it; such a pair is only taken while there are pairs to spare.

    >>> neighbours([[(0, 1), (2, 3), (4, 5), (6, 7)]], 2, [0.4, 0.4])
    [(0, 3), (4, 7)]
    """
    left = list(found)
    spare = sum(len(run) // 2 for run in left) - number
    chosen: list[Place] = []
    for draw in draws[: min(number, number + spare)]:
        pairs = [
            (which, before)
            for which, run in enumerate(left)
            for before in range(len(run) - 1)
            if spare > 0 or len(run) % 2 or not before % 2
        ]
        which, before = pairs[int(draw * len(pairs))]
        run = left[which]
        spare -= int(len(run) % 2 == 0 and before % 2 == 1)
        chosen.append((run[before][0], run[before + 1][1]))
        left[which : which + 1] = [run[:before], run[before + 2 :]]
    return sorted(chosen)


def swapped(text: str, shadow: str, place: Place, draw: float) -> str:
    """The two words in the other order, with the gap between them as it was.

    >>> swapped("is it", "is it", (0, 5), 0.5)
    'it is'
    """
    first, second = WORD.finditer(shadow, *place)
    return text[second.start() : second.end()] + text[first.end() : second.start()] + text[first.start() : first.end()]


FILLER = Kind(Spans(_BETWEEN), filler)
NUMBER = Kind(Spans(_NUMBER), number)
ORDER = Kind(runs, swapped, neighbours)


_NEGATED = "is are was were do does did have has had could would should must might need"
_SUBJECTS = {
    "am": "i",
    "are": "you we they",
    "is": "he she it that there what who where how when why",
    "have": "i you we they",
    "will": "i you he she it we they that there who",
    "would": "i you he she we they who",
}
_ENDINGS = {"am": "'m", "are": "'re", "is": "'s", "have": "'ve", "will": "'ll", "would": "'d"}

_NOT = {f"{verb} not": f"{verb}n't" for verb in _NEGATED.split()} | {
    "cannot": "can't",
    "can not": "can't",
    "will not": "won't",
    "shall not": "shan't",
}
_VERB = {f"{who} {verb}": who + _ENDINGS[verb] for verb, subjects in _SUBJECTS.items() for who in subjects.split()} | {
    "let us": "let's"
}
SHORT = {**_NOT, **_VERB}
LONG = {short: long for long, short in SHORT.items() if long != "can not"} | {"can't": "cannot"}


def _any_of(phrases: dict[str, str]) -> str:
    """A pattern for all of them, by first letter: most words of a text are given up after looking at one."""
    patterns = [phrase.replace(" ", r"\s").replace("'", "['’]") for phrase in sorted(phrases, key=len, reverse=True)]
    by_letter = groupby(sorted(patterns, key=itemgetter(0)), key=itemgetter(0))
    return "|".join(f"{letter}(?:{'|'.join(one[1:] for one in group)})" for letter, group in by_letter)


# A verb is only contracted before another word: nobody says "I know what it's".
_PHRASE = re.compile(
    rf"(?<![\w'’-])(?:(?:(?ai:{_any_of(_NOT)}|{_any_of(LONG)}))(?![\w'’-])|(?ai:{_any_of(_VERB)})(?=\s[^\W_]))"
)


def change(text: str, shadow: str, place: Place, draw: float) -> str:
    """The phrase contracted, or the contraction written out; the apostrophe is a straight one.

    >>> change("What is it", "What is it", (0, 7), 0.5), change("Don't go", "Don't go", (0, 5), 0.5)
    ("What's", 'Do not')
    """
    old = text[place[0] : place[1]]
    plain = " ".join(old.lower().replace("’", "'").split())
    return in_case_of(SHORT.get(plain) or LONG[plain], old)


CONTRACTION = Kind(Spans(_PHRASE), change)


@cache
def table() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Each word with its part of speech (n, v, a, r) and its synonyms.

    >>> table()["car"]
    ('n', ('auto', 'automobile', 'machine', 'motorcar'))
    """
    packed = (files("testifai.perturb") / "assets" / "synonyms.txt.gz").read_bytes()
    rows = (line.split("\t") for line in gzip.decompress(packed).decode("ascii").splitlines())
    return {word: (part, tuple(synonyms.split(","))) for word, part, synonyms in rows}


def synonym_places(text: str, shadow: str) -> list[Place]:
    """Words that have a synonym. One with a capital that does not begin the text may be a name, and stays."""
    known = table()
    found = [match.span() for match in WORD.finditer(shadow) if match[0] in known]
    first = WORD.search(shadow)
    if first and first[0] not in known and first[0].istitle() and first[0].lower() in known:
        return [first.span(), *found]
    return found


def to_synonym(text: str, shadow: str, place: Place, draw: float) -> str:
    """A synonym, with the word's capital.

    >>> to_synonym("Car sales", "Car sales", (0, 3), 0.3)
    'Automobile'
    """
    old = text[place[0] : place[1]]
    synonyms = table()[old.lower()][1]
    return in_case_of(synonyms[int(draw * len(synonyms))], old)


SYNONYM = Kind(synonym_places, to_synonym)
