"""Sentence BLEU: how many runs of one to four words of a perturbed text are those of the clean one.

Papineni, Roukos, Ward and Zhu, "BLEU: a method for automatic evaluation of machine translation" (ACL 2002). For
single sentences: the k-th order without a match counts as 1 / 2^k of a match (Chen and Cherry, "A systematic
comparison of smoothing techniques for sentence-level BLEU", WMT 2014, method 3), and orders longer than the
perturbed text are left out.
"""

from __future__ import annotations

import math
import re
from collections import Counter

from testifai.quality.texts import Change, TextMeasure

ORDERS = 4
# Words, and every other character that is not white space, by itself.
_TOKEN = re.compile(r"\w+|[^\w\s]")


class Bleu(TextMeasure):
    """1 where no word or mark changed, 0 where none is left."""

    name = "bleu"

    def scores(self, changes: list[Change]) -> list[float]:
        return [bleu(*change) for change in changes]


def bleu(clean: str, perturbed: str) -> float:
    """The BLEU of a perturbed text against the clean one, from 0 to 1.

    >>> round(bleu("the cat sat on the mat", "the cat sat on a mat"), 3)
    0.537
    """
    return _of_tokens(_TOKEN.findall(clean), _TOKEN.findall(perturbed))


def _of_tokens(clean: list[str], perturbed: list[str]) -> float:
    if not clean and not perturbed:
        return 1.0
    logarithms, halvings = [], 0
    for order in range(1, min(ORDERS, len(perturbed)) + 1):
        wanted, found = _runs(clean, order), _runs(perturbed, order)
        matches = (found & wanted).total()
        if not matches and order == 1:
            return 0.0
        halvings += not matches
        logarithms.append(math.log((matches or 0.5**halvings) / found.total()))
    if not logarithms:
        return 0.0
    brevity = min(0.0, 1 - len(clean) / len(perturbed))
    return math.exp(brevity + sum(logarithms) / len(logarithms))


def _runs(tokens: list[str], length: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[start:] for start in range(length)), strict=False))
