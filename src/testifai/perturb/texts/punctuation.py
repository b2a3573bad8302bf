"""Edits between words: punctuation put in, taken out or replaced, and whitespace widened, replaced or left out."""

from __future__ import annotations

import re

from testifai.perturb.texts.edits import Kind
from testifai.perturb.texts.tokens import Place

MARKS = ",.;:!?"
# A mark with no letter or digit right behind it (3.5 and 12:30 stay), or the end of a word before a gap.
_MARK = re.compile(r"[,.;:!?…،؛؟、。，！？；：](?!\w)|(?<=[^\W_])(?=\s|\Z)")
_GAP = re.compile(r"(?<=\S)\s+(?=\S)")


def mark_places(text: str, shadow: str) -> list[Place]:
    """Punctuation marks, and the ends of words that have none."""
    return [found.span() for found in _MARK.finditer(shadow)]


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


def gap_places(text: str, shadow: str) -> list[Place]:
    """The gaps between words."""
    return [found.span() for found in _GAP.finditer(shadow)]


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


PUNCTUATION = Kind(mark_places, mark)
WHITESPACE = Kind(gap_places, gap)
