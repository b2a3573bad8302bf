"""BERTScore: how well the tokens of a perturbed text match those of the clean one, as an encoder sees them in context.

Zhang, Kishore, Wu, Weinberger and Artzi, "BERTScore: evaluating text generation with BERT" (ICLR 2020), §3: F1 of
greedy matching by cosine similarity, without weights for rare words.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

from testifai.errors import InputError
from testifai.models.base import Model
from testifai.quality.base import Measure
from testifai.quality.encoders import TokenEncoder, Vectors, load_encoder
from testifai.quality.per_input import FEWEST, SAMPLE, PerInputReference, sample_of
from testifai.quality.texts import Change, TextCompare, read_side, sides_of
from testifai.support.batches import Batch, Side
from testifai.support.checks import choice, number, whole

# Random pairs of texts that a baseline is measured on.
_PAIRS = 250
# Bytes of clean texts' vectors that are kept from test to test.
_KEPT = 256 << 20


class Bertscore(Measure):
    """1 where nothing changed; how low it falls depends on the encoder, which `rescale` undoes.

    `encoder` is the path of a folder of transformers or of a sentence encoder, or a function texts → a table of
    token vectors each. `rescale` b turns F1 into (F1 - b) / (1 - b), so that texts with nothing in common have about
    0 (Zhang et al. 2020, §5); "measured" takes for b the mean F1 of random pairs of the clean texts. Pairs of texts
    have the mean over the sides that are perturbed.
    """

    name = "bertscore"
    higher_is_better = True

    def __init__(
        self,
        *,
        encoder: Any,
        sample: int = SAMPLE,
        side: Side = "both",
        layer: int = -1,
        rescale: float | Literal["measured"] | None = None,
        max_length: int | None = None,
        folder: str | Path = ".",
    ) -> None:
        self.sample = whole("quality: sample", sample, least=FEWEST)
        self.side, self.rescale, self.layer = read_side(side), _read_rescale(rescale), layer
        self.max_length = None if max_length is None else whole("quality: max_length", max_length, least=3)
        self.encoder = load_encoder(encoder, layer=layer, max_length=self.max_length, folder=folder)

    def describe(self) -> dict[str, Any]:
        return {
            "use": self.name,
            "sample": self.sample,
            "side": self.side,
            "layer": self.layer,
            "rescale": self.rescale,
            "max_length": self.max_length,
            "encoder": self.encoder.fingerprint,
        }

    def reference(self, clean: Batch, model: Model | None, *, seed: int) -> PerInputReference:
        rows, texts = sample_of(self.name, clean, self.sample, seed)
        sides = sides_of(self.name, texts, self.side)
        scores = _Scores(self.encoder, {text for side in sides for text in side})
        if self.rescale == "measured":
            scores.baseline = _measured(scores, seed)
        elif self.rescale is not None:
            scores.baseline = self.rescale
        return PerInputReference(self.name, rows, TextCompare(self.name, texts, self.side, scores))


def match(clean: Vectors, perturbed: Vectors) -> float:
    """F1 of two texts' token vectors of length 1 (Zhang et al. 2020, §3); 0 where only one of them has tokens.

    >>> round(match(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])), 3)
    0.667
    """
    if not len(clean) or not len(perturbed):
        return float(len(clean) == len(perturbed))
    similar = clean.astype(np.float64) @ perturbed.T
    recall, precision = float(similar.max(axis=1).mean()), float(similar.max(axis=0).mean())
    # Vectors that point away from all of the other text's: nothing is matched.
    if recall <= 0 or precision <= 0:
        return 0.0
    return 2 * precision * recall / (precision + recall)


class _Scores:
    """Scores of changes; each distinct text is encoded once for all changes asked for at a time."""

    def __init__(self, encoder: TokenEncoder, clean: set[str]) -> None:
        self.encoder, self.clean, self.baseline = encoder, clean, 0.0
        self._kept: dict[str, Vectors] = {}
        self._bytes = 0

    def __call__(self, changes: list[Change]) -> list[float]:
        texts = dict.fromkeys(text for change in changes for text in change)
        missing = [text for text in texts if text not in self._kept]
        found = dict(zip(missing, self.encoder(missing), strict=True)) if missing else {}
        known = {**self._kept, **found}
        self._keep(found)
        return [(match(known[a], known[b]) - self.baseline) / (1 - self.baseline) for a, b in changes]

    def _keep(self, found: dict[str, Vectors]) -> None:
        for text, vectors in found.items():
            if text in self.clean and self._bytes + vectors.nbytes <= _KEPT:
                self._kept[text] = vectors
                self._bytes += vectors.nbytes


def _measured(scores: _Scores, seed: int) -> float:
    """The mean score of clean texts with other clean texts."""
    texts = sorted(scores.clean)
    if len(texts) < 2:
        raise InputError("quality: rescale = 'measured' needs at least 2 different texts; give a number")
    order = np.random.default_rng([seed, 0xBA5E]).permutation(len(texts))[:_PAIRS].tolist()
    pairs = [(texts[a], texts[b]) for a, b in zip(order, order[1:] + order[:1], strict=True)]
    baseline = float(np.mean(scores(pairs)))
    if baseline > 0.999:
        raise InputError(
            f"quality: rescale: random pairs of texts have score {baseline:.4f}; nothing is left to rescale"
        )
    return baseline


def _read_rescale(given: Any) -> float | Literal["measured"] | None:
    if given is None:
        return None
    if isinstance(given, str):
        choice("quality: rescale", given, ("measured",))
        return "measured"
    return number("quality: rescale", given, above=-1, below=1)
