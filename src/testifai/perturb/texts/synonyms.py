"""Synonyms from WordNet 3.0, by a table of single words; see assets/WORDNET-LICENSE.txt for its licence.

The table (made by benchmarks/make_synonyms.py) gives a word the part of speech that it mostly has, and the synonyms
of its common senses there. Words with endings ("cars", "asked") are not in it, so that number and tense stay right.
"""

from __future__ import annotations

import gzip
from functools import cache
from importlib.resources import files

from testifai.perturb.texts.edits import Kind
from testifai.perturb.texts.tokens import WORD, Place, in_case_of


@cache
def table() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Each word with its part of speech (n, v, a, r) and its synonyms.

    >>> table()["car"]
    ('n', ('auto', 'automobile', 'machine', 'motorcar'))
    """
    packed = (files("testifai.perturb") / "assets" / "synonyms.txt.gz").read_bytes()
    rows = (line.split("\t") for line in gzip.decompress(packed).decode("ascii").splitlines())
    return {word: (part, tuple(synonyms.split(","))) for word, part, synonyms in rows}


def places(text: str, shadow: str) -> list[Place]:
    """Words that have a synonym. One with a capital that does not begin the text may be a name, and stays."""
    known = table()
    found = [match.span() for match in WORD.finditer(shadow) if match[0] in known]
    first = WORD.search(shadow)
    if first and first[0] not in known and first[0].istitle() and first[0].lower() in known:
        return [first.span(), *found]
    return found


def change(text: str, shadow: str, place: Place, draw: float) -> str:
    """A synonym, with the word's capital.

    >>> change("Car sales", "Car sales", (0, 3), 0.3)
    'Automobile'
    """
    old = text[place[0] : place[1]]
    synonyms = table()[old.lower()][1]
    return in_case_of(synonyms[int(draw * len(synonyms))], old)


SYNONYM = Kind(places, change)
