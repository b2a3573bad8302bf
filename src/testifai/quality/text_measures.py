"""What measures of texts have in common: pairs, sides, and texts that come again."""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein

from testifai.errors import InputError
from testifai.models.base import Model
from testifai.quality.base import FEWEST, SAMPLE, Measure, PerInputReference, sample_of
from testifai.support.batches import SIDES, Batch, Side, are_pairs
from testifai.support.types import Floats, Record
from testifai.support.validation import choice, whole

# A clean text and a perturbed version of it.
Change = tuple[str, str]
ScoreChanges = Callable[[list[Change]], Sequence[float]]
# Scores remembered between tests; composites repeat most texts.
_REMEMBERED = 200_000


class TextCompare:
    """Clean texts, or pairs of texts, to compare with.

    A text that did not change has score 1 and is not looked at; any other clean and perturbed text are scored once.
    A pair has the mean of its scores on the sides that are perturbed.
    """

    def __init__(self, name: str, clean: Batch, side: Side, score: ScoreChanges) -> None:
        self.name, self.side, self.score = name, side, score
        self.clean = sides_of(name, clean, side)
        self.pairs = are_pairs(_listed(clean))
        self._known: dict[Change, float] = {}

    def __call__(self, perturbed: Batch) -> Floats:
        texts = sides_of(self.name, perturbed, self.side)
        if are_pairs(_listed(perturbed)) != self.pairs:
            raise InputError(f"quality: {self.name}: clean inputs and perturbed ones must both be texts, or both pairs")
        values = [self._side(*both) for both in zip(self.clean, texts, strict=True)]
        return np.asarray(np.mean(values, axis=0))

    def _side(self, clean: list[str], perturbed: list[str]) -> list[float]:
        changes = list(zip(clean, perturbed, strict=True))
        missing = list({change: None for change in changes if change[0] != change[1] and change not in self._known})
        found = dict(zip(missing, self.score(missing), strict=True)) if missing else {}
        if len(self._known) + len(found) > _REMEMBERED:
            values = self._known | found
            self._known = found
        else:
            self._known |= found
            values = self._known
        return [1.0 if change[0] == change[1] else values[change] for change in changes]


class TextMeasure(Measure):
    """A measure that scores single texts: a subclass has a `name` and `scores(changes)`."""

    higher_is_better = True

    def __init__(self, *, sample: int = SAMPLE, side: Side = "both") -> None:
        self.sample = whole("quality: sample", sample, least=FEWEST)
        self.side = read_side(side)

    @abstractmethod
    def scores(self, changes: list[Change]) -> Sequence[float]:
        """A number for each changed text."""

    def describe(self) -> Record:
        return {"use": self.name, "sample": self.sample, "side": self.side}

    def reference(self, clean: Batch, model: Model | None, *, seed: int) -> PerInputReference:
        rows, texts = sample_of(self.name, clean, self.sample, seed)
        return PerInputReference(self.name, rows, TextCompare(self.name, texts, self.side, self.scores))


def sides_of(name: str, batch: Batch, side: Side) -> list[list[str]]:
    """The texts that may be perturbed: one list of single texts, or those of one or both sides of pairs.

    >>> sides_of("bleu", [("a", "b"), ("c", "d")], "both")
    [['a', 'c'], ['b', 'd']]
    """
    batch = _listed(batch)
    if not isinstance(batch, list):
        what = f"{batch.dtype} of shape {batch.shape}" if isinstance(batch, np.ndarray) else type(batch).__name__
        raise InputError(f"quality: {name} compares texts; these inputs are {what} (ssim and kid compare images)")
    if are_pairs(batch):
        if not all(isinstance(one, tuple) and [*map(type, one)] == [str, str] for one in batch):
            raise InputError(f"quality: {name} compares texts; some of these inputs are no pairs of texts")
        first, second = [one[0] for one in batch], [one[1] for one in batch]
        return {"first": [first], "second": [second], "both": [first, second]}[side]
    wrong = next((one for one in batch if not isinstance(one, str)), None)
    if wrong is not None:
        raise InputError(f"quality: {name} compares texts; one of these inputs is a {type(wrong).__name__}")
    return [[str(one) for one in batch]]


def _listed(batch: Batch) -> Batch:
    """Texts in an array of objects as a list."""
    if isinstance(batch, np.ndarray) and batch.dtype.kind == "O" and batch.ndim == 1:
        listed: list[str] = batch.tolist()
        return listed
    return batch


def read_side(side: Any) -> Side:
    """An option that names the side of pairs that is perturbed."""
    named: Side = choice("quality: side", side, SIDES)
    return named


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


# Where all of so many characters differ, a text takes about half a second; the time grows with the square.
LONGEST = 100_000
_FEW = 0.01  # edits for each character


class EditSimilarity(TextMeasure):
    """1 where no character changed, 0 where every one did."""

    name = "edit_similarity"

    def scores(self, changes: list[Change]) -> list[float]:
        return [edit_similarity(*change) for change in changes]

    def reference(self, clean: Batch, model: Model | None, *, seed: int) -> PerInputReference:
        _, texts = sample_of(self.name, clean, self.sample, seed)
        longest = max(len(text) for side in sides_of(self.name, texts, self.side) for text in side)
        if longest > LONGEST:
            raise InputError(
                f"quality: edit_similarity takes texts of up to {LONGEST:,} characters; one has {longest:,} (try bleu)"
            )
        return super().reference(clean, model, seed=seed)


def edit_similarity(clean: str, perturbed: str) -> float:
    """1 - distance / length of the longer text.

    >>> round(edit_similarity("kitten", "sitting"), 3)
    0.571
    """
    longer = max(len(clean), len(perturbed))
    return 1 - distance(clean, perturbed) / longer if longer else 1.0


def distance(first: str, second: str) -> int:
    """Levenshtein's distance in characters.

    >>> distance("kitten", "sitting")
    3
    """
    # Tried with few edits first: a perturbation seldom makes more, and these are found much faster.
    return Levenshtein.distance(first, second, score_hint=int(_FEW * max(len(first), len(second))))
