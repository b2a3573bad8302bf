"""Edits of texts: typing, spelling, punctuation and choice of words.

Severity s is s edits of the one kind, or as many as the text has places for; `edits` tells how many each text got.
Placeholders, addresses and quoted spans stay as they are. Tables are of English words and keyboards; texts in other
scripts get the edits that need none.
"""

from __future__ import annotations

from testifai.perturb.registry import perturbation
from testifai.perturb.texts.characters import CASE, HOMOGLYPH, PUNCTUATION, TYPO, WHITESPACE
from testifai.perturb.texts.edits import Edit, Edits, Kind, TextEdits, edits
from testifai.perturb.texts.words import CONTRACTION, FILLER, NUMBER, ORDER, SYNONYM

__all__ = ["KINDS", "Edit", "Edits", "edits"]

KINDS: dict[str, tuple[Kind, str]] = {
    "case": (CASE, "Words in another case"),
    "contraction": (CONTRACTION, "Phrases contracted, contractions written out"),
    "filler": (FILLER, "Filler words put in"),
    "homoglyph": (HOMOGLYPH, "Letters replaced by look-alikes of another script"),
    "number": (NUMBER, "Numbers below 100 in words instead of digits, or the reverse"),
    "order": (ORDER, "Neighbouring words swapped, each moved once at most"),
    "punctuation": (PUNCTUATION, "Marks put in, taken out or replaced"),
    "synonym": (SYNONYM, "Words replaced by a synonym from WordNet"),
    "typo": (TYPO, "Typing mistakes: a neighbouring key, letters swapped, left out or doubled"),
    "whitespace": (WHITESPACE, "Gaps wider, of another kind or left out"),
}

for _name, (_kind, _what) in KINDS.items():
    perturbation(f"text.{_name}", [0, 1, 2, 3, 4, 5], f"{_what}; the parameter is the number of edits.")(
        TextEdits(_kind)
    )
