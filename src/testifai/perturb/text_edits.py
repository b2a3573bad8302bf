"""Edits of one kind in each text of a batch: their number, places and replacements.

The places for a kind of edit do not overlap, so that a text allows as many edits as it has places; each edit is a span
of the original text and its replacement.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.errors import InputError
from testifai.perturb.base import Perturbation, second
from testifai.perturb.registry import resolve
from testifai.perturb.rng import Rng
from testifai.perturb.validation import check_batch, check_indices
from testifai.support.batches import SIDES, Batch, Side, are_pairs
from testifai.support.types import Array
from testifai.support.validation import choice, whole

Place = tuple[int, int]

# A letter that replaces a combining mark or joiner in the shadow: a part of the word, but in no table of letters.
_MARK = "ª"

# A word has letters only, with single apostrophes or hyphens inside; "3rd" and "B2B" are not words.
WORD = re.compile(r"(?<!\w)[^\W\d_]++(?:['’-][^\W\d_]++)*+(?!\w)")

# A text without a match, as most, has nothing protected.
_HINT = re.compile(r"""[{<%$\[@#"“”„«»`‘/\\]|(?<!\w)'|\w\.\w""")

# Every repetition stops at a possible start of the next span, so that the search is linear in the length of the text.
_PROTECTED = re.compile(
    r"""
      \{\{[^{}]*\}\} | \$?\{[^{}]*\}                                  # {name}, {{name}}, ${name}
    | <[^<>\s][^<>]*>                                                 # <tag>
    | %(?:\([^()\s]*\))?[-+0\#]*\d*(?:\.\d+)?(?:\d\$)?[sdifgrxeouc]\b  # %s, %(name)s, %.2f, %1$s
    | \[/?[^\W\d]\w*\]                                                # [MASK], [/math]
    | \$\w+                                                           # $name, and amounts of money
    | (?<!\w)(?:[a-z][a-z0-9+.-]{1,15}://|www\.)[^\s<>"“”]+           # addresses of pages
    | (?<![\w.+-])[\w.+-]++@[\w.-]+                                   # addresses of mail
    | (?<![\w.-])(?:[\w-]++\.)+(?:com|org|net|edu|gov|io|co\.\w\w)\b(?:/[^\s<>"“”]*)?
    | (?<!\w)[@\#]\w+                                                 # @mention, #topic
    | "[^"]*" | “[^“”]*” | „[^„“”]*[“”] | «[^«»]*» | `[^`]*`
    | ‘(?:[^‘’]|(?<=\w)’(?=\w))*’ | (?<!\w)'(?:[^'\n]|(?<=\w)'(?=\w))++'(?!\w)
    """,
    re.VERBOSE | re.IGNORECASE,
)


# A mark that follows no letter, such as the variation selector of an emoji, belongs to no word.
_STRAY = re.compile(rf"(?<![^\W_]){_MARK}++")


class _Marks(dict[int, int | None]):
    """A table for str.translate that is filled as characters occur."""

    def __missing__(self, code: int) -> int:
        joined = unicodedata.category(chr(code))[0] == "M" or code in (0x200C, 0x200D)
        made = self[code] = ord(_MARK) if joined else code
        return made


_marks = _Marks()


def shadow_of(text: str) -> str:
    """The text with protected spans replaced by underscores."""
    shadow = _plain(text)
    return shadow if _HINT.search(shadow) is None else _PROTECTED.sub(_covered, shadow)


def words(shadow: str) -> list[Place]:
    return [found.span() for found in WORD.finditer(shadow)]


def clusters(word: str) -> list[str]:
    if word.isascii():
        return list(word)
    found: list[str] = []
    for character in word:
        if found and (_marks[ord(character)] != ord(character) or found[-1][-1] == "\u200d"):
            found[-1] += character
        else:
            found.append(character)
    return found


def _plain(text: str) -> str:
    """The text with marks as letters, or as underscores if they follow no letter."""
    return text if text.isascii() else _STRAY.sub(_covered, text.translate(_marks))


def _covered(found: re.Match[str]) -> str:
    return "_" * (found.end() - found.start())


def in_case_of(new: str, old: str) -> str:
    if len(old) > 1 and old.isupper():
        return new.upper()
    return new[0].upper() + new[1:] if old[0].isupper() else new


MOST = 8  # edits, with two draws each: at most FEW


class Edit(NamedTuple):
    start: int
    end: int
    new: str


def pick(places: Sequence[Place], number: int, draws: Sequence[float]) -> list[Place]:
    """Return a random choice of `number` places in the order of the text, or all of them if there are fewer."""
    count = len(places)
    if number == 1:
        return [places[int(draws[0] * count)]] if count else []
    if number >= count:
        return list(places)
    # The first steps of Fisher and Yates's shuffle; only moved positions are stored.
    moved: dict[int, int] = {}
    chosen = []
    for step in range(number):
        other = step + int(draws[step] * (count - step))
        chosen.append(moved.get(other, other))
        moved[other] = moved.get(step, step)
    return [places[place] for place in sorted(chosen)]


@dataclass(frozen=True)
class Spans:
    pattern: re.Pattern[str]

    def __call__(self, text: str, shadow: str) -> list[Place]:
        return [found.span() for found in self.pattern.finditer(shadow)]


@dataclass(frozen=True)
class Kind:
    """One kind of edit.

    `places(text, shadow)` are the spans that can be changed, none overlapping another; `change(text, shadow, place,
    draw)` is the replacement, from a number between 0 and 1. `picked` chooses spans from the places.
    """

    places: Callable[[str, str], Sequence[Any]]
    change: Callable[[str, str, Place, float], str]
    picked: Callable[[Sequence[Any], int, Sequence[float]], list[Place]] = pick


@dataclass(frozen=True, eq=False)
class TextEdits:
    """The function of a perturbation of texts: the parameter is the number of edits, if there are enough places."""

    kind: Kind

    def __call__(self, batch: Batch, number: int, rng: Rng) -> Batch:
        texts = check_texts(batch)
        plans = zip(texts, self.plan(texts, number, rng), strict=True)
        changed = [_edited(text, made) for text, made in plans]
        if isinstance(batch, list):
            return changed
        result: Array = np.empty(len(changed), dtype=object)
        result[:] = changed
        return result

    def plan(self, texts: Sequence[str], number: int, rng: Rng) -> Iterator[list[Edit]]:
        if not 1 <= number <= MOST:
            raise InputError(f"number of edits: {number!r} is not accepted; give 1 to {MOST}")
        # One call draws for all texts: separate generators would cost more than the edits.
        table = rng.uniform((2, number)).tolist()
        places, change, picked = self.kind.places, self.kind.change, self.kind.picked
        for text, (where, what) in zip(texts, table, strict=True):
            shadow = shadow_of(text)
            chosen = picked(places(text, shadow), number, where)
            yield [Edit(*place, change(text, shadow, place, draw)) for place, draw in zip(chosen, what, strict=False)]


def check_texts(batch: Any) -> list[str]:
    if not isinstance(batch, list | np.ndarray) or (isinstance(batch, np.ndarray) and batch.dtype.kind != "O"):
        kind = f"an array of {batch.dtype}" if isinstance(batch, np.ndarray) else f"a {type(batch).__name__}"
        raise InputError(f"texts: {kind} is not accepted; give a list of strings or an array of dtype object")
    if isinstance(batch, np.ndarray) and batch.ndim != 1:
        raise InputError(f"texts: an array of shape {batch.shape} is not accepted; give one text per input")
    texts = list(batch)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            shown = " ".join(repr(text).split())[:40]
            raise InputError(f"texts[{place}]: {shown} is a {type(text).__name__}; give a string")
    return texts


def _edited(text: str, made: list[Edit]) -> str:
    for start, end, new in reversed(made):
        text = text[:start] + new + text[end:]
    return text


@dataclass(frozen=True, eq=False)
class Edits:
    """The edits of each text by one perturbation and severity; `made` has two entries per pair if both are edited."""

    name: str
    asked: int
    made: tuple[tuple[Edit, ...], ...]
    texts_each: int = 1  # of an input, that are edited

    @property
    def counts(self) -> NDArray[np.int64]:
        return np.asarray(self._by_text().sum(axis=1))

    @property
    def short(self) -> int:
        """Number of inputs with a text that has fewer places than edits were requested."""
        return int((self._by_text() < self.asked).any(axis=1).sum())

    @property
    def untouched(self) -> int:
        """Number of inputs without any place, which are unchanged."""
        return int((self.counts == 0).sum()) if self.asked else 0

    def _by_text(self) -> NDArray[np.int64]:
        return np.array([len(edits) for edits in self.made], dtype=np.int64).reshape(-1, self.texts_each)

    def __str__(self) -> str:
        what = "texts" if self.texts_each == 1 else "texts of pairs"
        texts = f"{self.name}: {self.asked} edits asked for in each of {len(self.made)} {what}"
        inputs = "" if self.texts_each == 1 else " pairs"
        return f"{texts}; {self.short}{inputs} had places for fewer, {self.untouched} of them for none"


def edits(
    perturbation: str | Perturbation,
    texts: Any,
    severity: int,
    *,
    seed: int = 0,
    indices: ArrayLike | None = None,
    occurrence: int = 0,
    side: Side = "both",
) -> Edits:
    """The edits that `apply` makes with the same arguments.

    >>> from testifai.perturb.text import edits
    >>> report = edits("text.contraction", ["What is it?", "I don't know what is wrong.", "Hello"], 2)
    >>> report.counts.tolist(), report.short, report.untouched
    ([1, 2, 0], 2, 1)
    """
    subject = resolve(perturbation)
    if not isinstance(subject.function, TextEdits):
        raise InputError(f"perturbation '{subject.name}' makes no edits of texts; give one of the suite 'text'")
    severity = subject.check_severity(severity)
    numbers = check_indices(indices, check_batch(texts))
    number = subject.severities[severity] if severity else 0
    choice("side", side, SIDES)
    edited = {subject.name: texts}
    if are_pairs(texts):
        names = {"first": subject.name, "second": second(subject.name)}
        sides = [one for one in names if side in (one, "both")]
        edited = {names[one]: [pair[one == "second"] for pair in texts] for one in sides}
    plans = []
    for name, given in edited.items():
        rng, given = Rng(whole("seed", seed), name, severity, numbers, occurrence), check_texts(given)
        plans.append(subject.function.plan(given, number, rng) if severity else iter([[]] * len(given)))
    made = tuple(tuple(edits) for row in zip(*plans, strict=True) for edits in row)
    return Edits(subject.name, number, made, len(plans))
