"""What was edited: how many edits each text got, and which texts had no place for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.errors import InputError
from testifai.perturb.base import Perturbation, second
from testifai.perturb.handed import check_batch, check_indices, check_seed, check_side
from testifai.perturb.registry import resolve
from testifai.perturb.rng import Rng
from testifai.perturb.texts.edits import Edit, TextEdits, check_texts
from testifai.support.batches import Side, are_pairs


@dataclass(frozen=True, eq=False)
class Edits:
    """The edits of each text by one perturbation at one severity.

    Where both texts of pairs are edited, `made` has two entries for each input: its first text's, its second's.
    """

    name: str
    asked: int
    made: tuple[tuple[Edit, ...], ...]
    texts_each: int = 1  # of an input, that are edited

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many edits each input got."""
        counts: NDArray[np.int64] = self._by_text().sum(axis=1)
        return counts

    @property
    def short(self) -> int:
        """How many inputs have a text that got fewer edits than asked for, for want of places."""
        return int((self._by_text() < self.asked).any(axis=1).sum())

    @property
    def untouched(self) -> int:
        """How many inputs have no place at all and stay as they are."""
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
    key = (severity, numbers, occurrence)
    number = subject.severities[severity] if severity else 0
    plans = []
    for name, given in _parts(subject.name, texts, check_side(side)):
        rng = Rng(check_seed(seed), name, *key)
        plans.append(subject.function.plan(given, number, rng) if severity else iter([[]] * len(given)))
    made = tuple(tuple(edits) for row in zip(*plans, strict=True) for edits in row)
    return Edits(subject.name, number, made, len(plans))


def _parts(name: str, texts: Any, side: Side) -> list[tuple[str, list[str]]]:
    """The texts that are edited, with the name that their draws go by."""
    if not are_pairs(texts):
        return [(name, check_texts(texts))]
    firsts, seconds = [pair[0] for pair in texts], [pair[1] for pair in texts]
    parts = {"first": (name, firsts), "second": (second(name), seconds)}
    return [part for which, part in parts.items() if side in (which, "both")]
