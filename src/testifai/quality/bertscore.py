"""BERTScore: the match of the tokens of a perturbed text with those of the clean one, as encoded in context.

Zhang, Kishore, Wu, Weinberger and Artzi, "BERTScore: evaluating text generation with BERT" (ICLR 2020), §3: F1 of
greedy matching by cosine similarity, without weights for rare words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from testifai.engine.inference import attempt
from testifai.errors import InputError
from testifai.quality.base import SAMPLE
from testifai.quality.text_measures import Change, ScoreChanges, TextMeasure
from testifai.support import optional_imports
from testifai.support.batches import Side
from testifai.support.types import Array, Record
from testifai.support.validation import choice, number, whole

Vectors = NDArray[np.float32]
_PAIRS = 250  # random pairs of texts that a baseline is measured on
_KEPT = 256 << 20  # bytes of clean texts' vectors that are cached


class TokenEncoder(Protocol):
    """A function of texts to a table each: a row per token, scaled to length 1."""

    fingerprint: str

    def __call__(self, texts: Sequence[str]) -> list[Vectors]: ...


class FolderEncoder:
    """A network of transformers in a local folder; `layer` counts from 0, the embeddings, or back from the last.

    Special tokens such as [CLS] and [SEP] are excluded. Texts longer than `max_length` tokens, by default the most that
    the network accepts, are truncated.
    """

    def __init__(self, folder: Path, *, layer: int = -1, max_length: int | None = None) -> None:
        from testifai.models.texts.encoder import Encoder

        try:
            encoder = Encoder(folder, max_length=max_length)
        except InputError as problem:
            raise InputError(f"quality: encoder: {str(problem).removeprefix('model: ')}") from None
        self._network, self.fingerprint, self._layer = encoder.network, encoder.fingerprint, layer
        self._special = sorted(set(self._network.tokenizer([""])[0].ids))
        layers = int(getattr(self._network.module.config, "num_hidden_layers", 0))
        if layers and not -layers - 1 <= layer <= layers:
            raise InputError(f"quality: layer = {layer} is not accepted; the encoder's are 0 to {layers} (or -1, …)")

    def __call__(self, texts: Sequence[str]) -> list[Vectors]:
        from testifai.models.texts.base import of_equal_length

        torch: Any = optional_imports.load("torch", extra="text")
        ids = [one.ids for one in self._network.tokenizer(texts)]
        found: list[Vectors] = [np.empty((0, 0), np.float32)] * len(ids)
        with torch.inference_mode():
            for places in of_equal_length([len(one) for one in ids]):
                tokens = np.array([ids[place] for place in places.tolist()])
                inputs = torch.from_numpy(tokens).to(self._network.device)
                states = self._network.module(input_ids=inputs, output_hidden_states=True).hidden_states[self._layer]
                counted = ~np.isin(tokens, self._special)
                for place, vectors, kept in zip(places.tolist(), states.float().cpu().numpy(), counted, strict=True):
                    found[place] = unit_rows(vectors[kept])
        return found


class FunctionEncoder:
    def __init__(self, function: Callable[[list[str]], Any]) -> None:
        from testifai.models.python import PythonModel

        self.function, self.fingerprint = function, PythonModel(function).fingerprint

    def __call__(self, texts: Sequence[str]) -> list[Vectors]:
        tables = [np.asarray(table, np.float32) for table in attempt(cast(Any, self.function), list(texts))]
        if len(tables) != len(texts) or any(table.ndim != 2 for table in tables):
            raise InputError("quality: encoder: its function must give a table (tokens, numbers) for each text")
        return [unit_rows(table) for table in tables]


def load_encoder(
    given: Any, *, layer: int = -1, max_length: int | None = None, folder: str | Path = "."
) -> TokenEncoder:
    whole("quality: layer", layer)
    if isinstance(given, str | Path):
        return FolderEncoder(Path(folder, given), layer=layer, max_length=max_length)
    if isinstance(given, type) or not callable(given):
        raise InputError(f"quality: encoder = {given!r} is not accepted; the path of a folder of transformers is")
    return FunctionEncoder(given)


def unit_rows(table: Array) -> Vectors:
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    return np.asarray((table / np.where(lengths > 0, lengths, 1)).astype(np.float32))


class Bertscore(TextMeasure):
    """1 if nothing changed; the lowest values depend on the encoder, which `rescale` corrects.

    `encoder` is the path of a folder of transformers or of a sentence encoder, or a function of texts to a table of
    token vectors each. `rescale` b turns F1 into (F1 - b) / (1 - b), so that unrelated texts have about 0 (Zhang et al.
    2020, §5); "measured" sets b to the mean F1 of random pairs of the clean texts.
    """

    name = "bertscore"

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
        super().__init__(sample=sample, side=side)
        if isinstance(rescale, str):
            choice("quality: rescale", rescale, ("measured",))
        elif rescale is not None:
            rescale = number("quality: rescale", rescale, above=-1, below=1)
        self.rescale, self.layer = rescale, layer
        self.max_length = None if max_length is None else whole("quality: max_length", max_length, least=3)
        self.encoder = load_encoder(encoder, layer=layer, max_length=self.max_length, folder=folder)

    def describe(self) -> Record:
        return {
            **super().describe(),
            "layer": self.layer,
            "rescale": self.rescale,
            "max_length": self.max_length,
            "encoder": self.encoder.fingerprint,
        }

    def scorer(self, texts: set[str], seed: int) -> ScoreChanges:
        scores = _Scores(self.encoder, texts)
        if self.rescale is not None:
            scores.baseline = _measured(scores, seed) if self.rescale == "measured" else self.rescale
        return scores


def match(clean: Vectors, perturbed: Vectors) -> float:
    """Return F1 of two texts' token vectors of length 1 (Zhang et al. 2020, §3); 0 if only one of them has tokens."""
    if not len(clean) or not len(perturbed):
        return float(len(clean) == len(perturbed))
    similar = clean.astype(np.float64) @ perturbed.T
    recall, precision = float(similar.max(axis=1).mean()), float(similar.max(axis=0).mean())
    if recall <= 0 or precision <= 0:
        return 0.0
    return 2 * precision * recall / (precision + recall)


class _Scores:
    def __init__(self, encoder: TokenEncoder, clean: set[str]) -> None:
        self.encoder, self.clean, self.baseline = encoder, clean, 0.0
        self._kept: dict[str, Vectors] = {}
        self._bytes = 0

    def __call__(self, changes: list[Change]) -> list[float]:
        texts = dict.fromkeys(text for change in changes for text in change)
        missing = [text for text in texts if text not in self._kept]
        found = dict(zip(missing, self.encoder(missing), strict=True)) if missing else {}
        known = {**self._kept, **found}
        for text, vectors in found.items():
            if text in self.clean and self._bytes + vectors.nbytes <= _KEPT:
                self._kept[text] = vectors
                self._bytes += vectors.nbytes
        return [(match(known[a], known[b]) - self.baseline) / (1 - self.baseline) for a, b in changes]


def _measured(scores: _Scores, seed: int) -> float:
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
