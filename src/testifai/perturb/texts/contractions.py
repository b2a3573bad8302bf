"""Contractions, in both directions: "do not" becomes "don't", and "don't" becomes "do not"."""

from __future__ import annotations

import re
from itertools import groupby
from operator import itemgetter

from testifai.perturb.texts.edits import Kind
from testifai.perturb.texts.tokens import Place, in_case_of

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


def places(text: str, shadow: str) -> list[Place]:
    """Phrases that can be contracted, and contractions."""
    return [found.span() for found in _PHRASE.finditer(shadow)]


def change(text: str, shadow: str, place: Place, draw: float) -> str:
    """The phrase contracted, or the contraction written out; the apostrophe is a straight one.

    >>> change("What is it", "What is it", (0, 7), 0.5), change("Don't go", "Don't go", (0, 5), 0.5)
    ("What's", 'Do not')
    """
    old = text[place[0] : place[1]]
    plain = " ".join(old.lower().replace("’", "'").split())
    return in_case_of(SHORT.get(plain) or LONG[plain], old)


CONTRACTION = Kind(places, change)
