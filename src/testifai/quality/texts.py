"""What measures of texts have in common: pairs, sides, and texts that come again."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from testifai.errors import InputError
from testifai.models.base import Model
from testifai.quality.base import Measure
from testifai.quality.per_input import FEWEST, SAMPLE, Floats, PerInputReference, sample_of
from testifai.support.batches import SIDES, Batch, Side, are_pairs
from testifai.support.checks import choice, whole

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

    def describe(self) -> dict[str, Any]:
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
