"""What was edited: how many edits each text got, and which texts had no place for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.errors import InputError
from testifai.perturb.base import Perturbation, check_batch, check_indices, check_seed
from testifai.perturb.registry import resolve
from testifai.perturb.rng import Rng
from testifai.perturb.texts.edits import Edit, TextEdits, check_texts


@dataclass(frozen=True, eq=False)
class Edits:
    """The edits of each text by one perturbation at one severity."""

    name: str
    asked: int
    made: tuple[tuple[Edit, ...], ...]

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many edits each text got."""
        return np.array([len(edits) for edits in self.made], dtype=np.int64)

    @property
    def short(self) -> int:
        """How many texts got fewer edits than asked for, for want of places."""
        return int((self.counts < self.asked).sum())

    @property
    def untouched(self) -> int:
        """How many texts have no place at all and stay as they are."""
        return int((self.counts == 0).sum()) if self.asked else 0

    def __str__(self) -> str:
        texts = f"{self.name}: {self.asked} edits asked for in each of {len(self.made)} texts"
        return f"{texts}; {self.short} had places for fewer, {self.untouched} of them for none"


def edits(
    perturbation: str | Perturbation,
    texts: Any,
    severity: int,
    *,
    seed: int = 0,
    indices: ArrayLike | None = None,
    occurrence: int = 0,
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
    count = check_batch(texts)
    given = check_texts(texts)
    rng = Rng(check_seed(seed), subject.name, severity, check_indices(indices, count), occurrence)
    if severity == 0:
        return Edits(subject.name, 0, ((),) * count)
    number = subject.severities[severity]
    return Edits(subject.name, number, tuple(map(tuple, subject.function.plan(given, number, rng))))
