"""Edits of texts: typing, spelling, punctuation and choice of words.

Severity s is s edits of one kind, or as many as the text has places for; `edits` reports how many each text got.
Placeholders, addresses and quoted spans are unchanged. Tables are of English words and keyboards; texts in other
scripts get the edits that need none.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from itertools import groupby
from operator import itemgetter

from testifai.perturb.registry import perturbation
from testifai.perturb.text_edits import WORD, Kind, Place, Spans, TextEdits, clusters, edits, in_case_of, words

__all__ = ["KINDS", "edits"]

# Pairs that Unicode's list of confusable characters (Technical Standard 39) maps to one form.
HOMOGLYPHS = str.maketrans("aceijopsxyABCEHIJKMNOPSTXYZ", "асеіјорѕхуАВСЕНІЈКМΝОРЅТХΥΖ")
_ALIKE = re.compile("[" + "".join(map(chr, HOMOGLYPHS)) + "]")


def _alike(text: str, shadow: str, place: Place, draw: float) -> str:
    return text[place[0]].translate(HOMOGLYPHS)


def _case_places(text: str, shadow: str) -> list[Place]:
    found = words(shadow)
    return found if shadow.isascii() else [place for place in found if _variants(text[place[0] : place[1]])]


def _case(text: str, shadow: str, place: Place, draw: float) -> str:
    variants = _variants(text[place[0] : place[1]])
    return variants[int(draw * len(variants))]


def _variants(word: str) -> list[str]:
    """The word in lower case, in upper case and with a capital first, without the word itself."""
    lower, upper = _turned(word, str.lower), _turned(word, str.upper)
    return [made for made in dict.fromkeys((lower, upper, upper[0] + lower[1:])) if made != word]


def _turned(word: str, turn: Callable[[str], str]) -> str:
    """The word in another case, except letters such as "ß" and "ı", from which no single letter leads back."""
    if word.isascii():
        return turn(word)
    others = [(letter, turn(letter)) for letter in word]
    return "".join(other if letter in (other.lower(), other.upper()) else letter for letter, other in others)


_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_SHIFTS = (0.0, 0.25, 0.75)  # of the rows of a common keyboard to the right, in widths of a key


def _neighbours() -> dict[str, str]:
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


def _typo_places(text: str, shadow: str) -> list[Place]:
    return [(start, end) for start, end in words(shadow) if end - start > 1]


def _typo(text: str, shadow: str, place: Place, draw: float) -> str:
    """The word with one mistake; each of the four is equally likely if the word allows it."""
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
        before = [number for number in own if number + 1 < len(letters)]
        pairs = [n for n in before if letters[n + 1][0].isalnum() and letters[n] != letters[n + 1]]
        if pairs:
            number, _ = _choice(pairs, draw)
            letters[number : number + 2] = letters[number + 1], letters[number]
            return "".join(letters)
    number, _ = _choice(own, draw)
    # A single letter is doubled, not left out.
    letters[number] = "" if kind <= 2 and len(letters) > 1 else letters[number] * 2
    return "".join(letters)


def _choice(numbers: list[int], draw: float) -> tuple[int, float]:
    """One of the numbers, and the rest of the draw as a fresh one."""
    place, rest = divmod(draw * len(numbers), 1)
    return numbers[int(place)], rest


MARKS = ",.;:!?"
# A mark that no letter or digit follows (unlike in 3.5 and 12:30), or the end of a word before a gap.
_MARK = re.compile(r"[,.;:!?…،؛؟、。，！？；：](?!\w)|(?<=[^\W_])(?=\s|\Z)")
_GAP = re.compile(r"(?<=\S)\s+(?=\S)")


def _mark(text: str, shadow: str, place: Place, draw: float) -> str:
    """A mark if there is none; otherwise nothing or another mark, equally often."""
    start, end = place
    if start == end:
        return MARKS[int(draw * len(MARKS))]
    others = MARKS.replace(text[start], "")
    return "" if draw < 0.5 else others[int((2 * draw - 1) * len(others))]


def _gap(text: str, shadow: str, place: Place, draw: float) -> str:
    """The gap a space wider, with another last space, or a space less; only two words can be joined."""
    start, end = place
    old = text[start:end]
    options = [old + " ", old[:-1] + "\t", old[:-1] + "\u00a0"]
    if len(old) > 1 or (shadow[start - 1].isalpha() and shadow[end].isalpha()):
        options.append(old[:-1])
    options = [made for made in options if made != old]
    return options[int(draw * len(options))]


FILLERS = ("actually", "basically", "really", "just", "honestly", "kind of", "you know", "well", "like", "um")
# The start of a word with another word or number before it, and only a gap between them.
_BETWEEN = re.compile(r"(?<=[^\W_]\s)(?=[^\W\d_])")

_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = ("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
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


def _filler(text: str, shadow: str, place: Place, draw: float) -> str:
    return FILLERS[int(draw * len(FILLERS))] + " "


def _number(text: str, shadow: str, place: Place, draw: float) -> str:
    old = text[place[0] : place[1]]
    return NUMBERS[int(old)] if old.isdigit() else _VALUES["-".join(old.lower().split())]


def _runs(text: str, shadow: str) -> list[list[Place]]:
    """Words that follow each other with only a gap between them; two equal words are in separate runs."""
    found: list[list[Place]] = []
    last_end, last = -1, ""
    for match in WORD.finditer(shadow):
        start, end = match.span()
        word = text[start:end]
        if last_end >= 0 and word != last and shadow[last_end:start].isspace():
            found[-1].append((start, end))
        else:
            found.append([(start, end)])
        last_end, last = end, word
    return [run for run in found if len(run) > 1]


def _pairs(found: Sequence[list[Place]], number: int, draws: Sequence[float]) -> list[Place]:
    """A random choice of `number` pairs of neighbours, no word in two of them, or the largest possible number.

    A run of n words has n // 2 pairs. A pair costs one of them, or two if the run is even and an odd number of words
    is before it; such a pair is only taken while there are pairs to spare.
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


def _swapped(text: str, shadow: str, place: Place, draw: float) -> str:
    first, second = WORD.finditer(shadow, *place)
    return text[second.start() : second.end()] + text[first.end() : second.start()] + text[first.start() : first.end()]


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
    """A pattern for all phrases, grouped by first letter for speed."""
    patterns = [phrase.replace(" ", r"\s").replace("'", "['’]") for phrase in sorted(phrases, key=len, reverse=True)]
    by_letter = groupby(sorted(patterns, key=itemgetter(0)), key=itemgetter(0))
    return "|".join(f"{letter}(?:{'|'.join(one[1:] for one in group)})" for letter, group in by_letter)


# A verb is only contracted before another word: nobody says "I know what it's".
_PHRASE = re.compile(
    rf"(?<![\w'’-])(?:(?:(?ai:{_any_of(_NOT)}|{_any_of(LONG)}))(?![\w'’-])|(?ai:{_any_of(_VERB)})(?=\s[^\W_]))"
)


def _contraction(text: str, shadow: str, place: Place, draw: float) -> str:
    old = text[place[0] : place[1]]
    plain = " ".join(old.lower().replace("’", "'").split())
    return in_case_of(SHORT.get(plain) or LONG[plain], old)


@cache
def synonyms() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Each word with its part of speech (n, v, a, r) and its synonyms."""
    packed = (files("testifai.perturb") / "assets" / "synonyms.txt.gz").read_bytes()
    rows = (line.split("\t") for line in gzip.decompress(packed).decode("ascii").splitlines())
    return {word: (part, tuple(synonyms.split(","))) for word, part, synonyms in rows}


def _synonym_places(text: str, shadow: str) -> list[Place]:
    """Words that have a synonym. One with a capital that does not begin the text may be a name, and is unchanged."""
    known = synonyms()
    found = [match.span() for match in WORD.finditer(shadow) if match[0] in known]
    first = WORD.search(shadow)
    if first and first[0] not in known and first[0].istitle() and first[0].lower() in known:
        return [first.span(), *found]
    return found


def _synonym(text: str, shadow: str, place: Place, draw: float) -> str:
    old = text[place[0] : place[1]]
    found = synonyms()[old.lower()][1]
    return in_case_of(found[int(draw * len(found))], old)


KINDS: dict[str, tuple[Kind, str]] = {
    "case": (Kind(_case_places, _case), "Words in another case"),
    "contraction": (Kind(Spans(_PHRASE), _contraction), "Phrases contracted, contractions written out"),
    "filler": (Kind(Spans(_BETWEEN), _filler), "Filler words put in"),
    "homoglyph": (Kind(Spans(_ALIKE), _alike), "Letters replaced by look-alikes of another script"),
    "number": (Kind(Spans(_NUMBER), _number), "Numbers below 100 in words instead of digits, or the reverse"),
    "order": (Kind(_runs, _swapped, _pairs), "Neighbouring words swapped, each moved once at most"),
    "punctuation": (Kind(Spans(_MARK), _mark), "Marks put in, taken out or replaced"),
    "synonym": (Kind(_synonym_places, _synonym), "Words replaced by a synonym from WordNet"),
    "typo": (Kind(_typo_places, _typo), "Typing mistakes: a neighbouring key, letters swapped, left out or doubled"),
    "whitespace": (Kind(Spans(_GAP), _gap), "Gaps wider, of another kind or left out"),
}

for _name, (_kind, _what) in KINDS.items():
    perturbation(f"text.{_name}", [0, 1, 2, 3, 4, 5], f"{_what}; the parameter is the number of edits.")(
        TextEdits(_kind)
    )
