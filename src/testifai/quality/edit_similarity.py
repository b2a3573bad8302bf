"""Edit similarity: how few characters must be inserted, deleted or replaced to undo a perturbation.

Levenshtein's distance divided by the length of the longer text, subtracted from 1.
"""

from __future__ import annotations

from rapidfuzz.distance import Levenshtein

from testifai.errors import InputError
from testifai.models.base import Model
from testifai.quality.per_input import PerInputReference, sample_of
from testifai.quality.texts import Change, TextMeasure, sides_of
from testifai.support.batches import Batch

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
