"""Measures of texts: BLEU, edit similarity, and the base class that handles pairs and repeated texts."""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from rapidfuzz.distance import Levenshtein

from testifai.errors import InputError
from testifai.quality.base import SAMPLE, Compare, PerInputMeasure
from testifai.support.batches import SIDES, Batch, Side, are_pairs
from testifai.support.types import Floats, Record
from testifai.support.validation import choice

Change = tuple[str, str]  # a clean text and a perturbed version of it
ScoreChanges = Callable[[list[Change]], Sequence[float]]
_REMEMBERED = 200_000  # scores cached between tests; composites repeat most texts
ORDERS = 4  # of BLEU's n-grams
_TOKEN = re.compile(r"\w+|[^\w\s]")  # words, and every other character that is not white space
LONGEST = 100_000  # characters that differ take about half a second; the time is quadratic
_FEW = 0.01  # edits for each character


class TextCompare:
    """Clean texts or pairs to compare with: each change is scored once, a pair has the mean of its sides."""

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


class TextMeasure(PerInputMeasure):
    """A measure that scores single texts: a subclass has a `name` and a `scorer`."""

    def __init__(self, *, sample: int = SAMPLE, side: Side = "both") -> None:
        super().__init__(sample=sample)
        self.side: Side = choice("quality: side", side, SIDES)

    @abstractmethod
    def scorer(self, texts: set[str], seed: int) -> ScoreChanges:
        """Return a function of changes of the clean texts to a number each."""

    def describe(self) -> Record:
        return {"use": self.name, "sample": self.sample, "side": self.side}

    def compare(self, clean: Batch, seed: int) -> Compare:
        texts = {text for side in sides_of(self.name, clean, self.side) for text in side}
        return TextCompare(self.name, clean, self.side, self.scorer(texts, seed))


def _each(score: Callable[[str, str], float], changes: list[Change]) -> list[float]:
    return [score(*change) for change in changes]


def sides_of(name: str, batch: Batch, side: Side) -> list[list[str]]:
    """Return the texts that may be perturbed: one list of single texts, or one for each such side of pairs."""
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
    if isinstance(batch, np.ndarray) and batch.dtype.kind == "O" and batch.ndim == 1:
        listed: list[str] = batch.tolist()
        return listed
    return batch


class Bleu(TextMeasure):
    """1 if no word or punctuation mark changed, 0 if none is left."""

    name = "bleu"

    def scorer(self, texts: set[str], seed: int) -> ScoreChanges:
        return partial(_each, bleu)


def bleu(clean: str, perturbed: str) -> float:
    wanted, found = _TOKEN.findall(clean), _TOKEN.findall(perturbed)
    if not found:
        return float(not wanted)
    logarithms, halvings = [], 0
    for order in range(1, min(ORDERS, len(found)) + 1):
        runs = _runs(found, order)
        matches = (runs & _runs(wanted, order)).total()
        if not matches and order == 1:
            return 0.0
        halvings += not matches
        logarithms.append(math.log((matches or 0.5**halvings) / runs.total()))
    brevity = min(0.0, 1 - len(wanted) / len(found))
    return math.exp(brevity + sum(logarithms) / len(logarithms))


def _runs(tokens: list[str], length: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[start:] for start in range(length)), strict=False))


class EditSimilarity(TextMeasure):
    """1 if no character changed, 0 if every one did."""

    name = "edit_similarity"

    def scorer(self, texts: set[str], seed: int) -> ScoreChanges:
        longest = max(map(len, texts))
        if longest > LONGEST:
            raise InputError(
                f"quality: edit_similarity takes texts of up to {LONGEST:,} characters; one has {longest:,} (try bleu)"
            )
        return partial(_each, edit_similarity)


def edit_similarity(clean: str, perturbed: str) -> float:
    # The hint is the similarity that is tried first: few edits are found much faster.
    return float(Levenshtein.normalized_similarity(clean, perturbed, score_hint=1 - _FEW))
